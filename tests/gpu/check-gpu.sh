#!/bin/bash
# check-gpu.sh BUILD [PARTS [PROGRAMS [MODES]]]: the same programs and real applications, natively and under the library, on a real
# GPU. A difference in output or exit status is a failure; so is a log that does not agree with an independent count.
# PARTS: some of `facts limits guard memcheck frameworks programs`, as one word of an argument; PROGRAMS: names of the programs part; MODES: its modes.
set -u
build=$(cd "${1:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
parts=${2:-facts limits guard memcheck frameworks programs} only=${3:-} modes=${4:-}
wants() { [[ " $parts " == *" $1 "* ]]; }
passed=0 failed=0 skipped=0
pass() { echo "  ok      $1"; passed=$((passed + 1)); }
fail() { echo "  FAILED  $1"; failed=$((failed + 1)); }
skip() { echo "  skipped $1"; skipped=$((skipped + 1)); }
finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" = 0 ]; exit; }
if ! nvidia-smi -L >/dev/null 2>&1; then skip "no GPU here: nothing was checked"; finish; fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work" || exit 1

has() { python3 -c "import $1" >/dev/null 2>&1; }

facts() {
  local name
  for name in conformance surface captures first_drivers past_the_end free_waits beside_a_kernel; do
    if ! diff <(grep -v '^$' "$here/$name.expected") <("$build/programs/$name") > facts.diff; then
      fail "$name: the driver's answers are not the recorded ones"; head -20 facts.diff
    else pass "$name: the driver's answers are the recorded ones"; fi
  done
  local refused
  refused=$(env LD_PRELOAD="$build/libxlog.so" XLOG_BACKEND=async "$build/gpu/ipc" 2> ipc.err)
  if [ "$refused" = "$(printf 'handle: cudaErrorInvalidValue\nrounds: 0\nchild: 0')" ] && grep -q 'XLOG_BACKEND=cache serves memory that does' ipc.err; then
    pass "ipc under async: refused, and the remedy named"
  else fail "ipc under async: $(cat ipc.err)"; fi
}

# Every kind of memory: a limit refuses it, a thousand rounds leave nothing, and what is counted is what the driver takes.
limits() {
  kinds=$(env LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=64M XLOG_HOST_BUDGET=64M "$build/programs/kinds" 1000)
  if [ "$(grep -c '100 MiB: 2; of 1000 rounds failed: 0; lost of the limit: 0$' <<< "$kinds")" = 15 ]; then
    pass "every kind of memory under a limit of 64 MiB: 100 MiB refused, 1000 rounds, nothing lost"
  else fail "kinds under a limit"; echo "$kinds"; fi
  "$build/programs/kinds" taken > taken.native
  env LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=60G XLOG_BUDGET_COUNT=taken "$build/programs/kinds" taken > taken.ours
  # A pool and the memory of graphs grow by 32 MiB. The driver of managed memory keeps what was freed and takes up to 128 MiB
  # at once (seen: 512 KiB took 128 MiB, 100 MiB after it took nothing). Everything else is made of 2 MiB.
  if paste taken.native taken.ours | awk -F'\t' '{granule = $1 ~ /async|pool|graph/ ? 33554432 : $1 == "managed" ? 134217728 : 2097152
      d = $3 - $6; if (d < 0) d = -d; if ($1 != $4 || $2 != $5 || d > granule) {print; bad = 1}} END {exit bad || NR < 30}'; then
    pass "what is counted is within a granule of what cuMemGetInfo lost, for $(wc -l < taken.native) blocks of every kind"
  else fail "counted and taken differ by more than a granule"; fi
  jax_limit=$(has jax && env LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=8G XLOG_LOG="$work/log.jax-limit.log/" python3 "$here/apps/jax_limit.py" 2> jax.err)
  if ! has jax; then skip "jax under a limit"
  elif [ "$jax_limit" = "$(printf 'sum 1000000000.0\nbytes_limit 6442450944')" ]; then
    pass "JAX preallocates 75 % of a limit of 8 GiB"
    [ "$(cat log.jax-limit.log/*[0-9].csv | awk -F, '$3=="allocate" && $12=="vmm" {sum += $5} END {print sum}')" = 6442450944 ] &&
      pass "and what is counted for it is as much" || fail "what is counted for JAX's pool"
  else fail "JAX under 8 GiB: $jax_limit"; tail -3 jax.err; fi
  if has torch; then
    export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True
    want=$(python3 "$here/apps/torch_expandable.py" taken)
    got=$(env LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=60G XLOG_BUDGET_COUNT=taken python3 "$here/apps/torch_expandable.py" taken)
    unset PYTORCH_CUDA_ALLOC_CONF
    [ "${want:-0}" -gt 1000000000 ] && [ $((want - got)) -le 2097152 ] && [ $((got - want)) -le 2097152 ] && pass "expandable segments: counted $got, taken $want" || fail "expandable segments: counted $got, taken $want"
    if [ "$(nvidia-smi -L | wc -l)" -ge 2 ]; then
      want=$(python3 "$here/apps/torch_nccl.py" 2 taken 2> /dev/null | grep -v exits)
      got=$(env LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=60G XLOG_BUDGET_COUNT=taken python3 "$here/apps/torch_nccl.py" 2 taken 2> /dev/null | grep -v exits)
      paste <(echo "$want") <(echo "$got") | awk '{d = $2 - $4; if (d < 0) d = -d; if ($2 <= 0 || d > 2097152) bad = 1} END {exit bad || NR != 2}' &&
        pass "an NCCL communicator with its all-to-all: counted, taken by each GPU: ${got//$'\n'/ }, ${want//$'\n'/ }" || fail "NCCL: counted, taken by each GPU: $got, $want"
    else skip "an NCCL communicator: needs two GPUs"; fi
    held=$(env LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=8G python3 "$here/apps/probe_limit.py" 2> probe.err)
    [ "${held%%$'\n'*}" = "held at least 0.9 of what was free: True, not more: True" ] && pass "PyTorch fills a limit of 8 GiB, is refused, and goes on" || { fail "PyTorch under 8 GiB: $held"; tail -3 probe.err; }
  fi
  # Under a limit of 1 GiB the real driver and the simulated one give the same answers.
  limited="budget_threads reset ordered"
  [ "$(nvidia-smi -L | wc -l)" -ge 2 ] && limited="$limited devices" || skip "devices: needs two GPUs"
  export XLOG_SIM_DEVICES=2
  for name in $limited; do
    env LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=1G "$build/programs/$name" > real.out 2> real.err
    env LD_PRELOAD="$build/libxlog.so" XLOG_BUDGET=1G LD_LIBRARY_PATH="$build/sim" "$build/programs/$name" 2>&1 | grep -v 'the driver refused' > sim.out
    if cmp -s real.out sim.out; then pass "$name at its limit, as on the simulated driver"; else fail "$name at its limit"; diff sim.out real.out | head -5; fi
  done
  unset XLOG_SIM_DEVICES
}

# One misuse a program: what the guard says of it, that the program does not notice, and nothing of the same program done right.
# The quarantine is tried where there is something for it to find, or to be silent about.
misuse() {  # misuse NAME CANARY QUARANTINE FENCE
  local mode options native ours found same try
  native=$(timeout 60 "$build/programs/misuse/$1" 2> /dev/null; echo "exit $?")
  for mode in "$2:XLOG_GUARD=canary XLOG_GUARD_CHECK=launch" "$3:XLOG_QUARANTINE=256M" "$4:XLOG_GUARD=fence" \
    "-:correct XLOG_GUARD=canary XLOG_QUARANTINE=256M XLOG_POISON=alloc,free" "-:correct XLOG_GUARD=fence"; do
    if [[ $mode == *QUARANTINE=256M && $3 == - && $1 != *free* ]]; then echo right; continue; fi
    options=${mode#*:} same=no
    for try in 1 2 3 4 5; do  # again where the guard itself says that a kernel overtook a zone: many processes take turns here
      ours=$(env LD_PRELOAD="$build/libxlog.so" ${options#correct } timeout 150 "$build/programs/misuse/$1" $([[ $options == correct* ]] && echo correct) 2> "$1.err"; echo "exit $?")
      found=$(sed -n 's/^xlog: guard: \([a-z-]*\): .*/\1/p' "$1.err" | paste -sd' ')
      grep -q 'written late' "$1.err" || break
    done
    if [ "$found" = fault ]; then [[ $ours == *": 700"* ]] && same=yes
    elif [[ $mode == *correct* ]]; then [[ $ours == *"exit 0" ]] && same=yes
    elif [ "$ours" = "$native" ] && ! grep -q 'not checked' "$1.err"; then same=yes; fi
    if [ "${found:--}" = "${mode%%:*}" ] && [ $same = yes ]; then echo right; else
      echo "$1, ${mode#*:}: found '${found:--}'"; diff <(echo "$native") <(echo "$ours") | head -4; head -3 "$1.err"
    fi
  done > "$1.misuse"
  grep -v '^right$' "$1.misuse"
}
# COMMAND... in the background, so many at once as the processors allow, on one GPU after another.
turn=0
beside() {
  CUDA_VISIBLE_DEVICES=$((turn++ % $(nvidia-smi -L | wc -l))) "$@" &
  while [ "$(jobs -r | wc -l)" -ge $(($(nproc) * 3 / 4)) ]; do wait -n; done
}
guard() {
  local name canary quarantine fence rest programs=0
  while IFS=$'\t' read -r name canary quarantine fence rest; do
    [[ $name == \#* ]] && continue
    programs=$((programs + 1))
    beside misuse "$name" "$canary" "$quarantine" "$fence"
  done < "$build/programs/misuse.tsv"
  wait
  if [ "$(cat ./*.misuse | grep -c '^right$')" = $((programs * 5)) ] && [ $programs -ge 40 ]; then
    pass "$programs programs with a misuse, and the same done right: found by the guard what the table says, and no more"
  else fail "programs with a misuse"; fi
  for mode in XLOG_GUARD=canary "XLOG_GUARD=canary XLOG_BACKEND=async" "XLOG_GUARD=canary:4096 XLOG_QUARANTINE=64M XLOG_POISON=alloc,free" XLOG_GUARD=fence \
    XLOG_GUARD=fence:before; do
    if diff <(grep -v '^$' "$here/past_the_end.expected") <(env LD_PRELOAD="$build/libxlog.so" $mode "$build/programs/past_the_end" 2>&1) > past.diff; then
      pass "past_the_end, $mode: as the driver answers"
    else fail "past_the_end, $mode"; head -5 past.diff; fi
  done
}

# What compute-sanitizer finds in the same programs, without the library and with a zone behind each block, which it takes for
# a part of the block.
memcheck_one() {  # memcheck_one NAME CANARY PLAIN PADDED
  local found program=$build/programs/misuse/$1
  seen() { compute-sanitizer "$@" 2> /dev/null | grep -q 'ERROR SUMMARY: 0 errors' && echo - || echo yes; }
  {
    [ "$(seen "$program")" = "$3" ] || echo "$1: memcheck: not $3"
    [ "$(seen --padding 64 "$program")" = "$4" ] || echo "$1: memcheck --padding 64: not $4"
    found=$(LD_PRELOAD="$build/libxlog.so" XLOG_GUARD=canary compute-sanitizer "$program" 2>&1 |
      sed -n 's/^xlog: guard: \([a-z-]*\): .*/\1/p' | paste -sd' ')
    echo "$1	under memcheck	${found:--}	alone	$2"
  } > "$1.memcheck"
  grep ': memcheck' "$1.memcheck"
}
memcheck() {
  local name canary plain padded rest
  command -v compute-sanitizer > /dev/null || { skip "memcheck: no compute-sanitizer"; return; }
  while IFS=$'\t' read -r name canary rest rest plain padded; do
    [[ $name == \#* ]] && continue
    beside memcheck_one "$name" "$canary" "$plain" "$padded"
  done < "$build/programs/misuse.tsv"
  wait
  if cat ./*.memcheck | grep -q ': memcheck'; then fail "memcheck and the table differ"
  else pass "compute-sanitizer finds in the programs with a misuse what the table says"; fi
  cat ./*.memcheck | awk -F'\t' 'NF == 5 && $3 != $5 {print "    " $1 ": the canary under memcheck: " $3 ", alone: " $5} NF == 5 && $3 == $5 {same++}
    END {print "    the canary under memcheck finds the same in " same " programs"}'
}

frameworks() {
  if has torch; then
    env LD_PRELOAD="$build/libxlog.so" XLOG_LOG="$work/log.torch-train.log/" python3 "$here/apps/torch_train.py" > /dev/null
    want=$(python3 "$here/apps/torch_train.py" | sed -n 's/^num_device_alloc \([0-9]*\).*/\1/p')
    # PyTorch counts what its caching allocator asked for; cuBLAS's own workspaces are others' rows.
    got=$(cat log.torch-train.log/*.stacks.csv log.torch-train.log/*[0-9].csv | awk -F, '
      NF==8 && $3 ~ /libc10_cuda.so/ {torch[$1]=1}  NF>=19 && $3=="allocate" && $12=="plain" && $14=="ok" {all++; if (torch[$18]) n++}
      END {print n " of " all}')
    [ "$want" = "${got%% *}" ] && pass "torch: $got allocate rows are its allocator's, as num_device_alloc says" || fail "torch: num_device_alloc $want, rows $got"
    export PYTORCH_NO_CUDA_MEMORY_CACHING=1
    env LD_PRELOAD="$build/libxlog.so" XLOG_LOG="$work/nocache/" python3 "$here/apps/torch_nocache.py" > nocache.out 2> nocache.err
    unset PYTORCH_NO_CUDA_MEMORY_CACHING
    want=$(sed -n 's/^cudaMalloc \([0-9]*\) cudaFree \([0-9]*\)/\1 \2/p' nocache.out)
    got=$(cat nocache/*[0-9].csv | awk -F, '$12=="plain" && $3=="allocate" && $5==7654321 {inside=!inside; if (!inside) {print a+2, d; exit} next}
      inside && $12=="plain" && $3=="allocate" && $14=="ok" {a++} inside && $12=="plain" && $3=="deallocate" && $14=="ok" {d++}')
    [ "${want% *}" = "${got% *}" ] && [ -n "$got" ] && pass "torch without caching: rows $got (allocate deallocate), profiler $want" || { fail "torch without caching: profiler $want, rows $got"; tail -3 nocache.err; }
  else skip "torch"; fi
  if has torch; then
    echo "  \$ xlog run -- python3 torch_train.py"
    "$build/xlog" run -- python3 "$here/apps/torch_train.py" 2>&1 >/dev/null | sed 's/^/  /'
  fi
}

# Every log: each pointer alternates, live bytes end where the sums end, and the report reads it.
logs() {
  for folder in log.*.log nocache; do
    [ -d "$folder" ] || continue
    if "$build/xlog" report --verify "$folder" > verify.out 2>&1; then pass "log of $folder: $(tail -1 verify.out)"
    else fail "log of $folder: $(tail -1 verify.out)"; fi
  done
}

# Programs that were not written for the library, natively and under it.
programs() {
  local p f k
  python3 "$here/differential.py" "$build" ${only:+--only "$only"} ${modes:+--modes "$modes"} "$here/programs.tsv" "$here/applications.tsv" "$here/samples.tsv" | tee differential.out
  read -r p f k < <(sed -n 's/.*programs; \([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped/\1 \2 \3/p' differential.out)
  [ -n "${p:-}" ] || fail "the differential runner ended before its end"
  passed=$((passed + ${p:-0})) failed=$((failed + ${f:-0})) skipped=$((skipped + ${k:-0}))
}

for part in facts limits guard memcheck frameworks programs; do
  wants $part && $part
done
logs
finish
