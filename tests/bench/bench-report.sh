#!/bin/bash
# bench-report.sh BUILD [EVENTS]: a log of ten million events read by `xlog report`, beside DuckDB that computes the peak and the
# totals by stack of the same file, and beside heaptrack_print that reads what heaptrack recorded of the same allocations by malloc;
# ratios within this run, the best of three.
set -eu
here=$(cd "$(dirname "$0")" && pwd) build=$(cd "$1" && pwd) events=${2:-10000000}
work=$(mktemp -d "${BENCH_DIR:-$build}/bench.XXXXXX"); trap 'rm -rf "$work"' EXIT
seconds() { for _ in 1 2 3; do bash -c 'TIMEFORMAT=%R; time "$@" > /dev/null 2> /dev/null' _ "$@" 2>&1; done | sort -n | head -1; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN{printf "%.1f", a / b}'; }
LD_LIBRARY_PATH="$build/noop" LD_PRELOAD="$build/libxlog.so" XLOG_LOG="$work/" "$build/bench/bench_live" "$events" 100000
log=$(ls "$work"/*.csv | grep -v stacks) rows=$(grep -c . "$log")
echo "a log of $rows rows, $(($(stat -c %s "$log") / 1000000)) MB, 100,000 blocks live, on $(nproc) cores"
cat "$log" > /dev/null
ours=$(seconds "$build/xlog" report "$log")
echo "  xlog report                   $ours s (at most 4), $(awk -v n="$rows" -v s="$ours" 'BEGIN{printf "%.1f", n / s / 1e6}') million rows a second"
python3 - "$build/xlog" "$log" <<'P'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "report", sys.argv[2]], stdout=subprocess.DEVNULL)
print("    in %d MiB of memory, mapped file pages included (at most 512)" % (resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))
P
"$build/xlog" report --html "$work/page.html" "$log"
echo "  xlog report --html            $(($(stat -c %s "$work/page.html") / 1000)) kB (at most 5000)"
if [ -d "$build/tests-web/node_modules" ]; then
  cp "$here/duckdb_peak.mjs" "$build/tests-web/"
  duck=$(for _ in 1 2 3; do node "$build/tests-web/duckdb_peak.mjs" "$log" 2> "$work/duck"; done | sort -n | head -1)
  echo "  DuckDB, peak and totals only  $duck s ($(cat "$work/duck")): $(ratio "$duck" "$ours") times as long (at least 2)"
else echo "  DuckDB: not here (make check fetches it)"; fi
# heaptrack reads in two steps: names and stacks of the raw record are found once, as a program beside the recorded one, then
# heaptrack_print reads the shorter file; `xlog report` does both. Events by its own numbers: allocations, and as many frees but for
# what was left.
interpret=$(ls /usr/lib*/heaptrack/libexec/heaptrack_interpret /usr/lib/*/heaptrack/libexec/heaptrack_interpret 2> /dev/null | head -1)
if [ -n "$interpret" ] && command -v heaptrack_print > /dev/null; then
  LD_LIBRARY_PATH="$build/noop" heaptrack --raw -o "$work/heap" "$build/bench/bench_live" "$events" 100000 host > /dev/null 2>&1
  zstdcat "$work"/heap.raw.zst > "$work/raw"
  first=$(seconds sh -c "'$interpret' < '$work/raw'")
  "$interpret" < "$work/raw" > "$work/heap.interpreted" 2> "$work/heaptrack"
  events=$(awk '/\tallocations:/ {n += 2 * $2} /leaked allocations:/ {n -= $3} END {print n}' "$work/heaptrack")
  second=$(seconds heaptrack_print "$work/heap.interpreted")
  times() { awk -v n="$rows" -v s="$ours" -v m="$events" -v t="$1" 'BEGIN{printf "%.1f", n / s / (m / t)}'; }
  echo "  heaptrack_print               $second s for $events events: xlog reads $(times "$second") times as many a second (at least 3)"
  echo "    after heaptrack_interpret   $first s: together $(times "$(awk -v a="$first" -v b="$second" 'BEGIN{print a + b}')") times"
else echo "  heaptrack: not here"; fi
