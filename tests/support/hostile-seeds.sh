#!/bin/bash
# hostile-seeds.sh BUILD COUNT [FIRST]: the torture program on the hostile simulated driver, on all cores, with the seeds from FIRST
# (1 where it is not given) on, COUNT of them in each mode of modes.tsv. The last line is "N passed, N failed"; a seed that failed is
# printed with the command that repeats it.
set -u
here=$(cd "$(dirname "$0")" && pwd)
try_seeds() {  # try_seeds BUILD FOLDER NAME VARIABLES SEED...: prints what went wrong, and the number of good runs
  local build=$1 folder=$2 name=$3 variables=${4//\{folder\}/$2} good=0 out; shift 4
  [ "$name" = natively ] || variables="LD_PRELOAD=$build/libxlog.so $variables"
  for seed in "$@"; do
    local command="env $variables LD_LIBRARY_PATH=$build/sim XLOG_SIM_SEED=$seed XLOG_SIM_HOSTILE=$seed $build/programs/torture $seed 6 4"
    # shellcheck disable=SC2086 # the command is made of words
    out=$(timeout -s KILL 120 $command 2> "$folder/err"; echo "exit $?"; grep -v '^xlog: guard: 0 findings' "$folder/err")
    if [ "$out" = $'0 bad\nfree as at the start: 1\nexit 0' ]; then good=$((good + 1)); else printf 'FAILED %s\n%s\n' "$command" "$out"; fi
  done
  rm -r "$folder"
  echo "good $good"
}
if [ "$1" = --seeds ]; then shift; try_seeds "$@"; exit; fi

build=$(cd "$1" && pwd) count=$2 first=${3:-1}
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
grep -v '^#' "$here/modes.tsv" | while IFS=$'\t' read -r name variables; do
  for ((seed = first; seed < first + count; seed += 20)); do
    last=$((seed + 19 < first + count ? seed + 19 : first + count - 1))
    folder=$work/${name//[ ,]/-}.$seed; mkdir "$folder"
    # shellcheck disable=SC2016 # the started shell expands it
    printf '%s\0' bash -c '"$@" $(seq '"$seed $last"')' seeds "$here/$(basename "$0")" --seeds "$build" "$folder" "$name" "$variables"
  done
done | xargs -0 -n 10 -P "$(nproc)" env > "$work/out"
good=$(awk '/^good /{n += $2} END {print n + 0}' "$work/out")
all=$((count * $(grep -vc '^#' "$here/modes.tsv")))
grep -v '^good ' "$work/out" | head -40
echo "$good passed, $((all - good)) failed"
[ "$good" = "$all" ]
