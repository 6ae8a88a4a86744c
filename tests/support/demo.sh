#!/bin/bash
# demo.sh BUILD: the main job, on the GPU if there is one, else on the simulated driver.
set -eu
build=$(cd "$1" && pwd)
if nvidia-smi -L >/dev/null 2>&1; then echo "On $(nvidia-smi --query-gpu=name --format=csv,noheader | head -1):"
else echo "No GPU here: on the simulated driver."; export LD_LIBRARY_PATH="$build/sim"; fi
mkdir -p "$build/demo" && cd "$build/demo" && rm -rf xlog.demo.*
echo "\$ xlog run --limit 1G -- demo"
"$build/xlog" run --limit 1G -- "$build/programs/demo"
echo; echo "\$ xlog report"
"$build/xlog" report
