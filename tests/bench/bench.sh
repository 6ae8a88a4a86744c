#!/bin/bash
# bench.sh BUILD: what the library adds to a call, on a driver that does nothing. Figures are differences and ratios
# within this run; the first column of each is measured again beside it. Best of three, as on a shared machine the
# smallest time is the one with the least disturbance.
set -eu
build=$(cd "$1" && pwd)
work=$(mktemp -d "${BENCH_DIR:-$build}/bench.XXXXXX"); trap 'rm -rf "$work"' EXIT
export LD_LIBRARY_PATH="$build/noop"
best() { for _ in 1 2 3; do rm -rf "$work/log"; env "$@"; done | sort -n | head -1; }
pairs() { best "${@:4}" "$build/bench/bench_pairs" "$1" "$2" "$3"; }
with=(LD_PRELOAD="$build/libxlog.so")
minus() { awk -v a="$1" -v b="$2" 'BEGIN{printf "%.0f", a-b}'; }
echo "nanoseconds a pair (allocate + free), driver that does nothing, $(nproc) cores"
bare=$(pairs 1 2000000 0); idle=$(pairs 1 2000000 0 "${with[@]}")
budget=$(pairs 1 2000000 0 "${with[@]}" XLOG_BUDGET=8G)
echo "  without the library                    $bare"
echo "  preloaded, nothing on     adds $(minus "$idle" "$bare") a pair (at most 150)"
echo "  with a budget             adds $(minus "$budget" "$bare") a pair (at most 250)"
for threads in 1 8; do
  bare=$(pairs $threads $((400000 / threads)) 32)
  log=$(pairs $threads $((400000 / threads)) 32 "${with[@]}" XLOG_LOG="$work/log/")
  none=$(pairs $threads $((400000 / threads)) 32 "${with[@]}" XLOG_LOG="$work/log/" XLOG_BACKTRACE=off)
  echo "  log, 32-deep stacks, $threads thread(s)   adds $(awk -v a="$log" -v b="$bare" 'BEGIN{printf "%.0f", (a-b)/2}') an event (at most 1000); without stacks $(awk -v a="$none" -v b="$bare" 'BEGIN{printf "%.0f", (a-b)/2}')"
done
# The peers, where they are installed: an event of theirs is a row without a stack, or half a pair with one.
peer() { ${CXX:-g++} -O2 -std=c++20 "$(dirname "$0")/peers/$1.cpp" -o "$work/$1" "${@:2}" 2> /dev/null; }
if peer spdlog_rows -DSPDLOG_FMT_EXTERNAL -DSPDLOG_SHARED_LIB -lspdlog -lfmt; then
  echo "  beside it: a row of RMM's logger, no stack   $(best "$work/spdlog_rows" 400000 "$work/rmm.csv") an event"
fi
if command -v heaptrack > /dev/null && peer heap_pairs; then
  tracked() { "$@" | sed -n 's/^pair //p'; }
  bare=$(best bash -c "'$work/heap_pairs' 1000000 32 | cut -d' ' -f2")
  heap=$(for _ in 1 2 3; do tracked heaptrack --raw -o "$work/heap" "$work/heap_pairs" 200000 32; done | sort -n | head -1)
  echo "  beside it: heaptrack, 32-deep stacks, 1 thread adds $(awk -v a="$heap" -v b="$bare" 'BEGIN{printf "%.0f", (a-b)/2}') an event"
fi
rm -rf "$work/log"
env "${with[@]}" XLOG_LOG="$work/log/" "$build/bench/bench_pairs" 1 500000 32 > /dev/null
bytes=$(cat "$work"/log/* | wc -c)
echo "  a log of one million events: $((bytes / 1000000)) MB, stacks included (at most 150)"
/usr/bin/env bash -c "TIMEFORMAT=%R; time '$build/xlog' report '$work/log' > '$work/report.txt'" 2> "$work/time"
echo "  xlog report reads it in $(cat "$work/time") s (at most 0.6)"
python3 - "$build/xlog" "$work/log" <<'P' 2>/dev/null || true
import resource, subprocess, sys
subprocess.run([sys.argv[1], "report", sys.argv[2]], stdout=subprocess.DEVNULL)
print("  and in %d MB of memory, mapped file pages included" % (resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))
P
# What a program that knows nothing of CUDA pays at its start.
start() { bash -c 'TIMEFORMAT=%R; time for i in $(seq 200); do '"$1"' /bin/true; done' 2>&1; }
bare=$(start ""); preloaded=$(start "LD_PRELOAD=$build/libxlog.so")
echo "  /bin/true starts $(awk -v a="$preloaded" -v b="$bare" 'BEGIN{printf "%.2f", (a-b)*1000/200}') ms later (at most 3)"
echo "resources of the stack"
for driver in noop sim; do
  echo " on $([ $driver = noop ] && echo "the driver that does nothing" || echo "the simulated driver")"
  LD_LIBRARY_PATH="$build/$driver" "$build/bench/bench_stack" cpu
done
