#!/bin/bash
# check-stack.sh BUILD: the stack that C++ programs link, on a real GPU: its conformance suite, its example, and what
# compute-sanitizer sees of a write that a kernel plants in memory of each resource.
set -u
build=$(cd "${1:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
passed=0 failed=0 skipped=0
pass() { echo "  ok      $1"; passed=$((passed + 1)); }
fail() { echo "  FAILED  $1"; failed=$((failed + 1)); }
skip() { echo "  skipped $1"; skipped=$((skipped + 1)); }
finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" = 0 ]; exit; }
if ! nvidia-smi -L >/dev/null 2>&1; then skip "no GPU here: nothing was checked"; finish; fi
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work" || exit 1

if "$build/stack_tests" --color_output=no --log_level=error --report_level=short > stack.txt 2>&1; then
  pass "the stack's tests: $(grep -oE '[0-9]+ test cases out of [0-9]+ passed' stack.txt | tail -1), $(grep -oE '[0-9]+ assertions out of [0-9]+ passed' stack.txt | tail -1)"
else fail "the stack's tests"; grep -E 'error: in|which|fatal' stack.txt | head -20; fi
out=$(XLOG_BUDGET=1M XLOG_LOG="$work/log/" "$build/programs/stack/two_streams")
[ "$out" = "sum 110, outstanding 0" ] && pass "two_streams" || fail "two_streams: $out"

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -z "$sanitizer" ]; then skip "compute-sanitizer is not here"; finish; fi
"$sanitizer" --version | sed -n 's/^Version/  compute-sanitizer/p'
while read -r resource where expected; do
  case $resource in '' | '#'*) continue ;; esac
  "$sanitizer" --tool memcheck "$build/programs/stack/planted_write" "$resource" "$where" > memcheck.txt 2>&1
  errors=$(sed -nE 's/.*ERROR SUMMARY: ([0-9]+) error.*/\1/p' memcheck.txt)
  seen=silent; grep -q 'Invalid __global__ write' memcheck.txt && seen=write
  if [ "$seen" = "$expected" ]; then pass "memcheck, $resource, $where: $seen"; else fail "memcheck, $resource, $where: $seen, expected $expected"; fi
  sed -nE "s/^========= +(Invalid __global__ write.*|.*and is [0-9].*|Access .*|Address .*|and is .*)/            \1/p" memcheck.txt | head -4
  grep -E '^(direct|async|pool|raw) ' memcheck.txt | sed 's/^/            /'
  echo "            errors: ${errors:-none reported}"
done < "$here/memcheck.expected"
finish
