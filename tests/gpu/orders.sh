#!/bin/bash
# orders.sh BUILD [SECONDS]: every order of events on a real GPU. The driver's answers about the ends of contexts, threads and pools
# are compared with the recorded ones; then the torture program of tests/programs runs natively and in each mode, with other seeds
# until SECONDS (20 where it is not given) are over in each. Its data is verified, and it says whether all memory is back at the end.
set -u
build=$(cd "${1:-build}" && pwd) seconds=${2:-20}
here=$(cd "$(dirname "$0")" && pwd)
passed=0 failed=0
pass() { echo "  ok      $1"; passed=$((passed + 1)); }
fail() { echo "  FAILED  $1"; failed=$((failed + 1)); }
if ! nvidia-smi -L >/dev/null 2>&1; then echo "  skipped no GPU here: nothing was checked"; echo "0 passed, 0 failed, 1 skipped"; exit 0; fi
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT

if diff "$here/lifetimes.expected" <(timeout 60 "$build/gpu/lifetimes" 2>/dev/null) > "$work/diff"; then pass "lifetimes: the driver's answers are the recorded ones"
else fail "lifetimes: the driver's answers are not the recorded ones"; cat "$work/diff"; fi

torture() {  # torture NAME [VARIABLE=VALUE...]
  local name=$1 seed=0 good=0 bad=0 out; shift
  local end=$((SECONDS + seconds))
  while [ "$SECONDS" -lt "$end" ]; do
    seed=$((seed + 1))
    out=$(env "$@" timeout -s KILL 120 "$build/programs/torture" "$seed" 10 4 2> "$work/err"; echo "exit $?")
    if [ "$(grep -v '^free as' <<< "$out")" = "$(printf '0 bad\nexit 0')" ]; then good=$((good + 1))
    else bad=$((bad + 1)); [ "$bad" -gt 3 ] || { echo "  seed $seed: $out" | head -6; tail -2 "$work/err"; }; fi
  done
  local memory; memory=$(grep '^free as' <<< "$out")
  if [ "$bad" = 0 ] && [ "$good" != 0 ]; then pass "torture $name: $good runs, none bad; $memory"; else fail "torture $name: $bad of $((good + bad)) runs bad"; fi
}
while IFS=$'\t' read -r name variables; do
  # shellcheck disable=SC2086 # several variables
  case $name in
    \#*) ;;
    natively) torture natively UNUSED=1 ;;
    *) torture "$name" "LD_PRELOAD=$build/libxlog.so" ${variables//\{folder\}/$work/log} ;;
  esac
done < "$here/../support/modes.tsv"
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
