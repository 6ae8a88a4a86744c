#!/bin/bash
# long-run.sh KIT [EVENTS]: a training run of about EVENTS allocations and frees of tensors (ten million), and its log read on two
# cores.
set -eu
kit=$(cd "$1" && pwd) apps=$(cd "$(dirname "$0")/apps" && pwd) events=${2:-10000000}
work=$(mktemp -d "${TMPDIR:-/tmp}/long.XXXXXX"); trap 'rm -rf "$work"' EXIT; cd "$work"
rows() { "$kit/xlog" report --json "$1" | python3 -c 'import json, sys; print(json.load(sys.stdin)["rows"])'; }
train() { rm -rf "$2"; "$kit/xlog" run --per-tensor -- python3 "$apps/train_long.py" "$1"; mv xlog.python3* "$2"; }
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
train 100 few 2> /dev/null; train 200 more 2> /dev/null
few=$(rows few) more=$(rows more)
steps=$(((events - few) / ((more - few) / 100) + 101))
echo "\$ xlog run --per-tensor -- python3 tests/gpu/apps/train_long.py $steps"
time train "$steps" long 2>&1
ls -l long | awk '{print $5, $9}'
cat long/*.csv > /dev/null
echo "\$ taskset -c 0,1 xlog report"
time taskset -c 0,1 "$kit/xlog" report long > report.txt
head -40 report.txt
time taskset -c 0,1 "$kit/xlog" report --verify long
