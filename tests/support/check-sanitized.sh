#!/bin/bash
# check-sanitized.sh BUILD SANITIZED: the tests of SANITIZED, on the simulated driver of BUILD; any report fails them.
set -u
build=$(cd "$1" && pwd) sanitized=$(cd "$2" && pwd) failed=0
export XLOG_BUILD=$build LD_LIBRARY_PATH=$build/sim XLOG_SIM_BASE=7e8000000000 XLOG_SIM_MEMORY=17179869184
export ASAN_OPTIONS=detect_leaks=1:halt_on_error=1:exitcode=66:allocator_may_return_null=1
echo 'leak:libcuda.so.1' > "$sanitized/leaks"  # the simulated driver keeps what a thread had current
export LSAN_OPTIONS=suppressions=$sanitized/leaks:print_suppressions=0
# A child of fork has threads of its parent's that it never joins.
export UBSAN_OPTIONS=halt_on_error=1:print_stacktrace=1 TSAN_OPTIONS=halt_on_error=1:exitcode=66:report_thread_leaks=0
for tests in unit_tests stack_tests; do
  if timeout 1200 "$sanitized/$tests" --color_output=no --log_level=error --report_level=short > "$sanitized/$tests.log" 2>&1; then
    echo "$tests under ${sanitized##*/}: $(grep -oE '[0-9]+ test cases out of [0-9]+ passed' "$sanitized/$tests.log" | tail -1)"
  else
    failed=1; echo "$tests under ${sanitized##*/}: failed"; grep -vE '^$|No errors detected' "$sanitized/$tests.log" | head -60
  fi
done
exit $failed
