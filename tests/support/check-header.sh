#!/bin/bash
# check-header.sh [CUDA_HOME]: every function of cuda.h that begins or ends a life is intercepted or excused (shim/lifetime.def).
set -u
header=${1:-${CUDA_HOME:-/usr/local/cuda}}/include/cuda.h
[ -r "$header" ] || { echo "check-header: no $header" >&2; exit 1; }
families=$(sed -nE 's/^XLOG_FAMILY\(([A-Za-z0-9]+)\)$/\1/p' shim/lifetime.def | paste -sd'|')
# By ABI name: what is declared, and what the header's macros make of it.
names=$({ grep -oE 'CUDAAPI +cu[A-Z][A-Za-z0-9_]*' "$header" | awk '{print $2}'
  sed -nE 's/^ *# *define +cu[A-Za-z0-9_]+ +(cu[A-Za-z0-9_]+) *$/\1/p
    s/^ *# *define +cu[A-Za-z0-9_]+ +__CUDA_API_PT[SD][ZS]\((cu[A-Za-z0-9_]+)\).*/\1/p
    s/^ *# *define +cu[A-Za-z0-9_]+ +__CUDA_API_PTSZ\((cu[A-Za-z0-9_]+)\).*/\1_ptsz/p' "$header"; } | sort -u)
[ "$(wc -l <<< "$names")" -gt 400 ] || { echo "check-header: $header is not read as it should be" >&2; exit 1; }
hooked=$(sed -nE 's/^XLOG_ROW\([a-z]+, ([A-Za-z0-9_]+)\)$/\1/p' shim/intercepted.def)
excused=$(sed -nE 's/^XLOG_EXCUSED\(([A-Za-z0-9]+), "[A-Z].*\."\)$/\1/p' shim/lifetime.def)
bad=0
for name in $(grep -E "^($families)" <<< "$names"); do
  base=$(sed -E 's/_(ptsz|ptds)$//; s/_v[0-9]+$//' <<< "$name")
  grep -qx "$name" <<< "$hooked" || grep -qx "$base" <<< "$excused" ||
    { echo "check-header: $name begins or ends a life and is neither in shim/intercepted.def nor excused in shim/lifetime.def" >&2; bad=1; }
done
for name in $excused; do
  grep -qx "$name" <<< "$hooked" && { echo "check-header: $name is excused, and intercepted as well" >&2; bad=1; }
done
exit $bad
