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

#ifdef __cplusplus
}
#endif

#endif
