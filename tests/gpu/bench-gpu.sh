#!/bin/bash
# bench-gpu.sh BUILD: an allocate/free pair of the real driver, natively and under the library, as ratios in one run.
set -eu
build=$(cd "${1:-build}" && pwd)
nvidia-smi -L >/dev/null 2>&1 || { echo "skipped: no GPU here"; exit 0; }
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
best() { for _ in 1 2 3; do rm -rf "$work/log"; env "$@"; done | sort -n | head -1; }
with=(LD_PRELOAD="$build/libxlog.so")
for threads in 1 8; do
  run=("$build/bench/bench_pairs" $threads $((16000 / threads)) 32)
  native=$(best "${run[@]}")
  echo "cuMemAlloc + cuMemFree of 1 KiB, $threads thread(s): $native ns natively"
  for mode in "nothing on:" "limit: XLOG_BUDGET=8G" "log: XLOG_LOG=$work/log/" "log and limit: XLOG_BUDGET=8G XLOG_LOG=$work/log/"; do
    ours=$(best "${with[@]}" ${mode#*:} "${run[@]}")
    echo "  ${mode%%:*}: $(awk -v a="$ours" -v b="$native" 'BEGIN{printf "%.3f", a/b}') of that"
  done
done
echo "the stack that C++ programs link"
"$build/bench/bench_stack" gpu
