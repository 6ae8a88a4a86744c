#!/bin/bash
# out-of-memory.sh KIT [KEEP]: what is told when memory is refused, beside a neighbour on the GPU: by a limit, with and without
# PyTorch's cache, by the driver, by a process that is killed then, and in a pid namespace of its own, as in a container.
set -u
kit=$(cd "$1" && pwd) apps=$(cd "$(dirname "$0")/apps" && pwd) keep=${2:-} xlog=$(cd "$1" && pwd)/xlog
work=$(mktemp -d); cd "$work"
preload() { env LD_PRELOAD="$kit/libxlog.so" XLOG_BUDGET=100M "$@"; }
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
python3 -c "
import time, torch
x = torch.empty(1 << 30, dtype=torch.uint8, device='cuda'); print('neighbour is there', flush=True); time.sleep(300)" > neighbour & neighbour=$!
trap 'kill $neighbour; rm -rf "$work"' EXIT
until [ -s neighbour ]; do sleep 0.5; done
passed=0 failed=0
expect() {  # expect WHAT PATTERN FILE
  if grep -qE "$2" "$3"; then passed=$((passed + 1)); echo "  ok      $1"; else failed=$((failed + 1)); echo "  FAILED  $1"; sed 's/^/    /' "$3" | head -40; fi
}
run() {  # run NAME XLOG-OPTIONS... -- COMMAND
  local name=$1; shift
  "$xlog" run "$@" > "$name.out" 2> "$name.err"; echo "exit $?" >> "$name.err"
  mv xlog.python3* "$name"; "$xlog" report --oom "$name" > "$name.oom"
  echo "\$ xlog run $* ; xlog report --oom"; cat "$name.err"; head -30 "$name.oom"
}
run driver -- python3 "$apps/fill_gpu.py"
expect "the driver's refusal, and the program's own exit" '^exit 3$' driver.err
expect "what it died of" 'out of memory at the end: asked for 3.00 GiB .* refused by the driver' driver.err
expect "the neighbour, with its bytes and its name" 'also on this GPU: 1\.[0-9]+ GiB, pid [0-9]+, .*python3' driver.oom
expect "the context" 'of this process beside its blocks .*: [0-9.]+ MiB' driver.oom
# Without its cache PyTorch raises another exception, which the program does not expect.
run tensors --per-tensor --limit 3G -- python3 "$apps/train_until_full.py"
expect "where a program died of it" 'out of memory at the end: asked for 64.00 MiB .* refused by the limit' tensors.err
expect "the limit's refusal" 'refused by the limit of 3.00 GiB' tensors.oom
expect "who held it, by line" 'gather  train_until_full.py' tensors.oom
run cached --limit 2G -- python3 "$apps/train_until_full.py" 12
expect "a program that recovers" '^exit 0$' cached.err
expect "is told what was refused, and no more" 'requests refused for want of memory; the first asked for' cached.err
expect "PyTorch's cache is told as such" "PyTorch's caching allocator" cached.oom
expect "at most five" '^[1-5]$' <(ls cached/*.oom.*.json | wc -l)
preload XLOG_SUMMARY="$work/why" XLOG_LOG="$work/killed/" "$kit/programs/script" +80 +200 kill > /dev/null 2>&1
cat why
expect "a summary outlives SIGKILL" 'asked for 200.00 MiB on GPU 0' why
unshare -Urpf --mount-proc env LD_PRELOAD="$kit/libxlog.so" XLOG_BUDGET=100M XLOG_SUMMARY=stderr "$kit/programs/script" +80 +200 > /dev/null 2> container
cat container
expect "in a container the others are a sum" 'also on this GPU: 1\.[0-9]+ GiB of processes that cannot be seen' container
[ -z "$keep" ] || cp -r driver tensors cached "$keep/"
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
