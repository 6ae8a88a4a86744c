#!/bin/bash
# stress.sh BUILD SECONDS: 8 threads of kernels that verify their data, under every backend at once, on the GPUs there are.
# Wrong words, bytes outstanding at the end and a hang are failures.
set -u
build=$(cd "${1:-build}" && pwd)
seconds=${2:-600}
failed=0
nvidia-smi -L >/dev/null 2>&1 || { echo "skipped: no GPU here"; exit 0; }
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
gpus=$(nvidia-smi -L | wc -l)
[ "$gpus" -gt 1 ] && gpus=$((gpus - 1)) first=1  # the first is left to what runs beside
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
modes=(async:wait async:ordered cache:wait cache:ordered)
for i in "${!modes[@]}"; do
  mode=${modes[$i]}
  env CUDA_VISIBLE_DEVICES=$((${first:-0} + i % gpus)) LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=10G XLOG_BACKEND=${mode%:*} XLOG_ASYNC_FREE=${mode#*:} \
    timeout $((seconds + 60)) "$build/gpu/stress" $seconds > "$work/$mode" 2>&1 &
done
wait
for mode in "${modes[@]}"; do
  if grep -qx 'wrong words: 0' "$work/$mode" && grep -qx 'left of the limit, end - start: 0' "$work/$mode"; then echo "  ok      $mode: $(tr '\n' ' ' < "$work/$mode")"
  else echo "  FAILED  $mode: $(tr '\n' ' ' < "$work/$mode")"; failed=1; fi
done
exit $failed
