#!/bin/bash
# check-long.sh BUILD [SEEDS]: what `make check` tries a little of, for as long as it takes: SEEDS (20,000) seeds of the hostile driver in
# each mode, each of the driver's calls failing once, many schedules, storms and kills. It says how far it is after each thousand seeds.
set -u
build=$(cd "$1" && pwd) seeds=${2:-20000} failed=0
here=$(cd "$(dirname "$0")" && pwd)
export XLOG_BUILD=$build
run() {  # run NAME COMMAND...: one line, and the end of what was said where it failed
  local name=$1 log=$build/long.log; shift
  if "$@" --color_output=no > "$log" 2>&1; then echo "$name: $(tail -1 "$log")"; else failed=1; echo "$name: failed"; tail -40 "$log"; fi
}
run "every call failing once" env XLOG_HOSTILE_SEEDS=1000 "$build/preload_tests" --run_test='every_call_failing_once*,threads_that_do_everything'
run "schedules of the stack" env XLOG_STACK_SEEDS=100000 LD_LIBRARY_PATH="$build/sim" "$build/stack_tests"
run "storms and kills" env XLOG_STORMS=200 XLOG_KILLS=2000 "$build/preload_tests" --run_test='*storm*,*kill*'
for ((first = 1; first <= seeds; first += 1000)); do
  echo -n "hostile seeds from $first: "
  "$here/hostile-seeds.sh" "$build" "$((seeds - first + 1 < 1000 ? seeds - first + 1 : 1000))" "$first" || failed=1
done
exit $failed
