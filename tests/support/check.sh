#!/bin/bash
# check.sh BUILD: every test that needs no GPU; ends with "N passed, N failed, N skipped".
set -u
build=$(cd "$1" && pwd); export XLOG_BUILD=$build
passed=0 failed=0 skipped=0 faults=
suite() {  # suite NAME COMMAND...: a Boost.Test program; each test case counts
  local name=$1; shift
  local log=$build/$name.log
  timeout 1200 "$@" --color_output=no --report_level=detailed --log_level=message > "$log" 2>&1
  local ok bad
  ok=$(grep -cE '^ +Test case ".*" has passed' "$log"); bad=$(grep -cE '^ +Test case ".*" (has failed|was aborted)' "$log")
  skipped=$((skipped + $(grep -c 'skipped:' "$log")))
  passed=$((passed + ok)); failed=$((failed + bad))
  echo "$name: $ok passed, $bad failed"
  [ "$ok" != 0 ] || failed=$((failed + 1))
  # Said again at the end, where a build log that keeps only its tail still has it.
  [ "$bad" = 0 ] && [ "$ok" != 0 ] || faults+=$(echo; echo "$name:"; faults_in "$log")
}
faults_in() {  # which cases failed, and what each said
  grep -E '^ +Test case ".*" (has failed|was aborted)' "$1"
  grep -E -A 6 'error: in|fatal error|Failure occurred' "$1" | cut -c1-300 | head -60
}
suite unit "$build/unit_tests"
suite oracle "$build/oracle_tests"
suite stack env LD_LIBRARY_PATH="$build/sim" "$build/stack_tests"
suite preload "$build/preload_tests"
web=$("$(dirname "$0")/check-web.sh" "$build"); echo "web: $(tail -1 <<< "$web")"
read -r p _ f _ k _ <<< "$(tail -1 <<< "$web")"; passed=$((passed + p)); failed=$((failed + f)); skipped=$((skipped + k))
[ "$f$k" = 00 ] || faults+=$(echo; echo "web:"; head -n -1 <<< "$web")
hostile=$("$(dirname "$0")/hostile-seeds.sh" "$build" "${XLOG_HOSTILE_SEEDS:-200}"); echo "hostile seeds: $(tail -1 <<< "$hostile")"
read -r p _ f _ <<< "$(tail -1 <<< "$hostile")"; passed=$((passed + p)); failed=$((failed + f))
[ "$f" = 0 ] || faults+=$(echo; echo "hostile seeds:"; head -n -1 <<< "$hostile")
if "$(dirname "$0")/lint.sh" "$build" binary > "$build/lint.log" 2>&1; then passed=$((passed + 1)); echo "lint: the library is what it says it is"
else failed=$((failed + 1)); cat "$build/lint.log"; fi
[ -z "$faults" ] || echo "$faults"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
