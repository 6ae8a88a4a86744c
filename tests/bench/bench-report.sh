#!/bin/bash
# bench-report.sh BUILD [EVENTS]: a log of ten million events read by `xlog report`, beside DuckDB that computes the peak and the
# totals by stack of the same file, and beside heaptrack_print that reads what heaptrack recorded of the same allocations by malloc;
# ratios within this run, the best of five rounds in which each has its turn.
set -eu
here=$(cd "$(dirname "$0")" && pwd) build=$(cd "$1" && pwd) events=${2:-10000000}
work=$(mktemp -d "${BENCH_DIR:-$build}/bench.XXXXXX"); trap 'rm -rf "$work"' EXIT
once() { bash -c 'TIMEFORMAT=%R; time "$@" > /dev/null 2> /dev/null' _ "$@" 2>&1; }
best() { sort -n "$work/$1.seconds" | head -1; }
ratio() { awk -v a="$1" -v b="$2" 'BEGIN{printf "%.1f", a / b}'; }
LD_LIBRARY_PATH="$build/noop" LD_PRELOAD="$build/libxlog.so" XLOG_LOG="$work/" "$build/bench/bench_live" "$events" 100000
log=$(ls "$work"/*.csv | grep -v stacks) rows=$(grep -c . "$log")
echo "a log of $rows rows, $(($(stat -c %s "$log") / 1000000)) MB, 100,000 blocks live, on $(nproc) cores"
cat "$log" > /dev/null
web=$build/tests-web interpret=$(ls /usr/lib*/heaptrack/libexec/heaptrack_interpret /usr/lib/*/heaptrack/libexec/heaptrack_interpret 2> /dev/null | head -1)
# heaptrack reads in two steps: names and stacks of the raw record are found once, by a program beside the recorded one, then
# heaptrack_print reads the shorter file; `xlog report` does both.
if [ -n "$interpret" ]; then
  LD_LIBRARY_PATH="$build/noop" heaptrack --raw -o "$work/heap" "$build/bench/bench_live" "$events" 100000 host > /dev/null 2>&1
  zstdcat "$work"/heap.raw.zst > "$work/raw"
  "$interpret" < "$work/raw" > "$work/heap.interpreted" 2> "$work/heaptrack"
fi
[ ! -d "$web/node_modules" ] || cp "$here/duckdb_peak.mjs" "$web/"
for _ in 1 2 3 4 5; do
  once "$build/xlog" report "$log" >> "$work/xlog.seconds"
  [ ! -d "$web/node_modules" ] || node "$web/duckdb_peak.mjs" "$log" 2> "$work/duck" >> "$work/duck.seconds"
  [ -z "$interpret" ] || once heaptrack_print "$work/heap.interpreted" >> "$work/print.seconds"
done
ours=$(best xlog)
echo "  xlog report                   $ours s (at most 4), $(awk -v n="$rows" -v s="$ours" 'BEGIN{printf "%.1f", n / s / 1e6}') million rows a second"
python3 - "$build/xlog" "$log" <<'P'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "report", sys.argv[2]], stdout=subprocess.DEVNULL)
print("    in %d MiB of memory, mapped file pages included (at most 512)" % (resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024))
P
"$build/xlog" report --html "$work/page.html" "$log"
echo "  xlog report --html            $(($(stat -c %s "$work/page.html") / 1000)) kB (at most 5000)"
if [ -d "$web/node_modules" ]; then
  echo "  DuckDB, peak and totals only  $(best duck) s ($(cat "$work/duck")): $(ratio "$(best duck)" "$ours") times as long (at least 2)"
else echo "  DuckDB: not here (make check fetches it)"; fi
if [ -n "$interpret" ]; then
  once sh -c "'$interpret' < '$work/raw'" >> "$work/interpret.seconds"
  # By its own numbers: allocations, and as many frees but for what was left.
  events=$(awk '/\tallocations:/ {n += 2 * $2} /leaked allocations:/ {n -= $3} END {print n}' "$work/heaptrack")
  times() { awk -v n="$rows" -v s="$ours" -v m="$events" -v t="$1" 'BEGIN{printf "%.1f", n / s / (m / t)}'; }
  echo "  heaptrack_print               $(best print) s for $events events: xlog reads $(times "$(best print)") times as many a second (at least 3)"
  echo "    after heaptrack_interpret   $(best interpret) s: together $(times "$(awk -v a="$(best interpret)" -v b="$(best print)" 'BEGIN{print a + b}')") times"
else echo "  heaptrack: not here"; fi
