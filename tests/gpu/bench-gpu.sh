#!/bin/bash
# bench-gpu.sh BUILD [backend|guard|log [PROGRAMS]]: an unmodified program on the real driver, natively and under the library, as ratios in one run.
set -eu
build=$(cd "${1:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
nvidia-smi -L >/dev/null 2>&1 || { echo "skipped: no GPU here"; exit 0; }
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
under() {  # under MODE COMMAND...
  local mode=$1; shift
  local -a with=(LD_PRELOAD="$build/libxlog.so" XLOG_ASYNC_ALWAYS=1)
  case $mode in native) with=() ;; async*) with+=(XLOG_BACKEND=async) ;; cache*) with+=(XLOG_BACKEND=cache) ;; esac
  case $mode in *ordered*) with+=(XLOG_ASYNC_FREE=ordered) ;; esac
  case $mode in *canary*) with+=(XLOG_GUARD=canary) ;; *fence/100*) with+=(XLOG_GUARD=fence:1/100) ;; *fence*) with+=(XLOG_GUARD=fence) ;; esac
  case $mode in *launch*) with+=(XLOG_GUARD_CHECK=launch) ;; esac
  case $mode in *log*) with+=(XLOG_LOG="$work/log/") ;; esac
  rm -rf "$work/log"
  env "${with[@]}" "$@" 2> "$work/err"
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN{printf "%.2f", a/b}'; }
times() { awk -v a="$1" -v b="$2" 'BEGIN{printf "%6.1f times", a/b}'; }
backend=$build/bench/gpu/backend
all="async async+ordered cache cache+ordered"
least_of() { local n=$1 i; shift; for ((i = 0; i < n; ++i)); do "$@"; done | sort -n | head -1; }
sanitized() { timeout 150 compute-sanitizer "$@" 2> /dev/null | grep -v '^====' | head -1; }
only=${3:-}  # of the programs that compute, a regular expression
guard() {
  local bytes mode native
  echo "the guard: cudaMalloc + cudaFree, least of two, microseconds"
  for bytes in 65536 1048576; do
    printf '  %9s bytes' $bytes
    for mode in native canary fence async+canary; do
      printf '  %s %.2f' $mode "$(least_of 2 under $mode "$backend" pair $bytes 1)"
    done
    echo
  done
  native=$(least_of 2 under native "$build/bench/gpu/launches")
  printf 'kernels of 20 us beside 100 live blocks: %.2f us a launch natively' "$native"
  for mode in canary canary+launch; do printf '  %s %s' $mode "$(ratio "$(least_of 2 under $mode "$build/bench/gpu/launches")" "$native")"; done
  printf '  memcheck %s\n' "$(ratio "$(sanitized "$build/bench/gpu/launches")" "$native")"
  echo "the guard: wall time of programs that compute, of native, least of two"
  wall() { local from=$EPOCHREALTIME; under "$@" > /dev/null; echo "$EPOCHREALTIME $from" | awk '{print $1 - $2}'; }
  local -a programs=("$build/bench/gpu/sort 10000000 kept" "$build/bench/gpu/sort 10000000")
  python3 -c 'import cupy' 2>/dev/null && programs+=("python3 $here/../bench/gpu/products.py 8192 60")
  python3 -c 'import torch' 2>/dev/null && programs+=("python3 $here/../bench/gpu/training.py 8192 4096 12 40")
  for program in "${programs[@]}"; do
    [[ $program =~ ${only:-.} ]] || continue
    native=$(least_of 2 wall native $program)
    printf '  %s: %.2f s' "${program##*/}" "$native"
    for mode in canary fence/100 fence; do printf '  %s %s' $mode "$(awk -v a="$(least_of 2 wall $mode $program)" -v b="$native" 'BEGIN{printf "%.3f", a/b}')"; done
    if command -v compute-sanitizer > /dev/null; then
      printf '  memcheck %s' "$(awk -v a="$(wall native timeout 10 compute-sanitizer $program || true)" -v b="$native" 'BEGIN{printf "%s%.1f", (a > 9 ? "more than " : ""), a/b}')"
    fi
    echo
  done
}
log() {
  local mode best=""
  printf 'the log: 64 threads, each 200 times cudaMallocAsync and cudaFreeAsync of 256 KiB: milliseconds, least of two'
  for mode in native log; do printf '  %s %.1f' $mode "$(least_of 2 under $mode "$backend" storm 262144 64 | awk '{print $1 / 1000}')"; done
  printf '\n'
  python3 -c 'import torch' 2>/dev/null || return 0
  echo "the log: PyTorch training step without PyTorch's caching, async ordered; milliseconds, least of two runs in turn"
  export PYTORCH_NO_CUDA_MEMORY_CACHING=1
  for _ in 1 2; do
    for mode in async+ordered async+ordered+log; do
      best+="$mode $(under $mode python3 "$here/../bench/gpu/training.py" 8192 4096 12 20)"$'\n'
    done
  done
  echo "  $(tail -qn +2 "$work"/log/*[0-9].csv | wc -l) rows in $(du -sbL "$work/log" | cut -f1) bytes"
  unset PYTORCH_NO_CUDA_MEMORY_CACHING
  awk 'NF {if (!($1 in least) || $2 < least[$1]) least[$1] = $2} END {
    printf "  without the log %.3f, with it %.3f: %.4f\n", least["async+ordered"], least["async+ordered+log"], least["async+ordered+log"] / least["async+ordered"]}' <<< "$best"
}
[ "${2:-guard}" = guard ] && guard
[ "${2:-log}" = log ] && log
[ "${2:-backend}" = backend ] || exit 0
row() {  # row TITLE COMMAND...: microseconds natively, and how many times faster
  local title=$1; shift
  local native; native=$(under native "$@")
  printf '%-44s %9.2f us natively' "$title" "$native"
  for mode in $all; do printf '  %s%s' "$mode" "$(times "$native" "$(under $mode "$@")")"; done
  echo
}
row "cudaMalloc + cudaFree, 64 KiB" "$backend" pair 65536 1
row "cudaMalloc + cudaFree, 1 MiB" "$backend" pair 1048576 1
row "cudaMalloc + cudaFree, 16 MiB" "$backend" pair 16777216 1
row "cudaMalloc + cudaFree, 1 GiB" "$backend" pair 1073741824 1
row "cudaMalloc + cudaFree, 1 MiB, 16 threads" "$backend" pair 1048576 16
row "cudaMalloc + small kernel + cudaFree, 4 KiB" "$backend" kernel 4096
row "thrust sequence, vector and sort of 1e6" "$build/bench/gpu/sort"
echo "16 threads against one, 1 MiB, an iteration of all threads together"
for mode in native $all; do echo "  $mode: $(ratio "$(under $mode "$backend" pair 1048576 16)" "$(under $mode "$backend" pair 1048576 1)")"; done
echo "cuMemAlloc + cuMemFree against the driver calls of a pool allocation and its free, alternating, least of three"
for free in wait ordered; do
  mode=async; [ $free = ordered ] && mode=async+ordered
  for bytes in 65536 16777216 67108864; do
    ours=$(for _ in 1 2 3; do under $mode "$backend" driver $bytes; done | sort -n | head -1)
    calls=$(for _ in 1 2 3; do under native "$backend" calls $free $bytes; done | sort -n | head -1)
    echo "  $free, $bytes bytes: $ours us, $(ratio "$ours" "$calls") of the calls' $calls us"
  done
done
if python3 -c 'import torch' 2>/dev/null; then
  echo "PyTorch training step, batch 8192 x 4096, 12 layers; peak of the GPU as nvidia-smi sees it"
  train() {  # train NAME MODE
    nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits -lms 50 > "$work/smi" 2>/dev/null & local sampler=$!
    local result; result=$(under $2 python3 "$here/../bench/gpu/training.py" 8192 4096 12 20 || echo "failed: $(tail -1 "$work/err")")
    kill $sampler; wait $sampler 2>/dev/null || true
    local peak; peak=$(sort -n "$work/smi" | tail -1)
    [ "$1" = caching ] && base=${result% *} base_peak=$peak
    echo "  $1: ${result% *} ms ($(awk -v a="${result% *}" -v b="$base" 'BEGIN{printf "%.4f", a/b}')), loss ${result#* }, peak $peak MiB ($(ratio "$peak" "$base_peak"))"
  }
  train caching native
  export PYTORCH_NO_CUDA_MEMORY_CACHING=1
  train "no caching, native" native
  for mode in $all async+ordered+log cache+ordered+log; do train "no caching, $mode" $mode; done
  unset PYTORCH_NO_CUDA_MEMORY_CACHING
fi
best() { for _ in 1 2 3; do rm -rf "$work/log"; env "$@"; done | sort -n | head -1; }
run=("$build/bench/bench_pairs" 1 16000 32)
native=$(best "${run[@]}")
echo "cuMemAlloc + cuMemFree of 1 KiB: $native ns natively"
for mode in "nothing on:" "limit: XLOG_BUDGET=8G" "log: XLOG_LOG=$work/log/" "log and limit: XLOG_BUDGET=8G XLOG_LOG=$work/log/"; do
  echo "  ${mode%%:*}: $(ratio "$(best LD_PRELOAD="$build/libxlog.so" ${mode#*:} "${run[@]}")" "$native") of that"
done
echo "the stack that C++ programs link"
"$build/bench/bench_stack" gpu
