# What is changed in Debian's libunwind before it is built into the library: sed -f over the files that are named here.

# Ginit.c: addresses are validated without a pipe (xlog_is_readable in backtrace_libunwind.cpp says why).
/^static int mem_validate_pipe/i\
extern int xlog_is_readable (unsigned long);
s/unlikely (validate_mem (addr))/unlikely (!xlog_is_readable (addr))/
s/^validate_mem (unw_word_t addr)/__attribute__((unused)) &/
s/^  open_pipe ();$/  (void) open_pipe;/

# Gtrace.c: a thread's cached frames are dropped when a library was unloaded, since another may lie at its addresses by
# now; and a thread's cache starts small.
s/^#define HASH_MIN_BITS 14/#define HASH_MIN_BITS 10/
/^static _Thread_local  int tls_cache_destroyed;/a\
extern _Atomic unsigned xlog_unwind_epoch;\
static _Thread_local unsigned tls_epoch;\
static void drop_stale_frames (unw_trace_cache_t *cache)\
{\
  unsigned epoch = xlog_unwind_epoch;\
  if (likely (epoch == tls_epoch))\
    return;\
  tls_epoch = epoch;\
  if (! cache)\
    return;\
  for (size_t i = 0; i < (1u << cache->log_size); ++i)\
    cache->frames[i] = empty_frame;\
  cache->used = 0;\
}
s/^    if (! (cache = tls_cache))/    drop_stale_frames (tls_cache);\n&/

# Gfind_proc_info-lsb.c: a fork waits until no thread walks the loaded files (runtime/base/loaded_files.h).
/^struct dwarf_callback_data$/i\
extern int xlog_walk_loaded_files (int (*) (struct dl_phdr_info *, size_t, void *), void *);
s/= dl_iterate_phdr (dwarf_callback,/= xlog_walk_loaded_files (dwarf_callback,/
