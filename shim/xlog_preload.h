/* What a program may ask of libxlog.so when it runs under it. The functions are weak: without the library their address is
   NULL, and no link against it is needed. C and C++. */
#ifndef XLOG_PRELOAD_H
#define XLOG_PRELOAD_H

#ifdef __cplusplus
extern "C" {
#endif

/* With XLOG_GUARD: looks at the zones of all live blocks that are not stream-ordered, as they are now (it waits for no work
   of the program's, so synchronise before), and reports what it finds. Returns the number of findings of the process so
   far; 0 without a guard. Any thread, but not while one of its streams captures. Does not change the CUDA error state. */
unsigned xlog_guard_check(void) __attribute__((weak));

/* Names what the calling thread does from here to the matching pop: the column `tag` of its rows, as a path of the ranges
   that it is in, `outer/inner`, behind XLOG_TAG. At most 96 bytes of a name are kept. Returns how many ranges of these
   functions the thread was in before; the pop, in how many it is now, or -1 when it was in none. NVTX ranges
   nest with them. Any thread, also without a log. */
int xlog_tag_push(const char* name) __attribute__((weak));
int xlog_tag_pop(void) __attribute__((weak));

/* The column `query_id` of the calling thread's rows from here on; at most 40 bytes. NULL or "": XLOG_QUERY_ID again. */
void xlog_query_id(const char* id) __attribute__((weak));

#ifdef __cplusplus
}
#endif

#endif
