#!/bin/bash
# check-gpu.sh BUILD: the same programs and real applications, natively and under the library, on a real GPU.
# A difference in output or exit status is a failure; so is a log that does not agree with an independent count.
set -u
build=$(cd "${1:-build}" && pwd)
here=$(cd "$(dirname "$0")" && pwd)
passed=0 failed=0 skipped=0
pass() { echo "  ok      $1"; passed=$((passed + 1)); }
fail() { echo "  FAILED  $1"; failed=$((failed + 1)); }
skip() { echo "  skipped $1"; skipped=$((skipped + 1)); }
finish() { echo "$passed passed, $failed failed, $skipped skipped"; [ "$failed" = 0 ]; exit; }
if ! nvidia-smi -L >/dev/null 2>&1; then skip "no GPU here: nothing was checked"; finish; fi
nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT; cd "$work" || exit 1

# What the reviewed file lists for a program and a mode is left out on both sides.
without_listed() {
  local lines
  lines=$(awk -F'\t' -v p="$1" -v m="$2" '$1==p && index(m, $2)==1 {print $3}' "$here/differences.tsv")
  if [ -n "$lines" ]; then grep -vE "$lines" "$3"; else cat "$3"; fi
}
# same NAME COMMAND...: natively, then with the library in several modes.
same() {
  local name=$1; shift
  "$@" > native.out 2> native.err; local native=$?
  local mode
  for mode in ${modes:-nothing log budget log+budget direct+log async async+ordered cache cache+ordered+log}; do
    grep -qE "^$name	${mode%%+*}	\.	" "$here/differences.tsv" && continue
    local -a with=(LD_PRELOAD="$build/libxlog.so")
    case $mode in *log*) with+=(XLOG_LOG="$work/log.$name.$mode/") ;; esac
    case $mode in *budget*) with+=(XLOG_BUDGET=100%) ;; esac
    case $mode in direct*) with+=(XLOG_BACKEND=direct) ;; async*) with+=(XLOG_BACKEND=async XLOG_ASYNC_ALWAYS=1) ;; cache*) with+=(XLOG_BACKEND=cache) ;; esac
    case $mode in *ordered*) with+=(XLOG_ASYNC_FREE=ordered) ;; esac
    env "${with[@]}" "$@" > ours.out 2> ours.err; local ours=$?
    if [ $native != $ours ] || ! cmp -s <(without_listed $name $mode native.out) <(without_listed $name $mode ours.out); then
      fail "$name, $mode: exit $native and $ours"; diff native.out ours.out | head -5; head -5 ours.err
    else pass "$name, $mode"; fi
  done
}
has() { python3 -c "import $1" >/dev/null 2>&1; }
rows() { cat "$work/log.$1.log/"*[0-9].csv | grep -c "$2"; }

if ! diff <(grep -v '^$' "$here/conformance.expected") <("$build/programs/conformance") > facts.diff; then
  fail "conformance: the driver's answers are not the recorded ones"; head -20 facts.diff
else pass "conformance: the driver's answers are the recorded ones"; fi
same conformance "$build/programs/conformance"
if ! diff "$here/captures.expected" <("$build/programs/captures") > facts.diff; then
  fail "captures: the driver's answers are not the recorded ones"; head -20 facts.diff
else pass "captures: the driver's answers are the recorded ones"; fi
# Plain memory under the backends: captures, contexts that end, what is held, random programs.
backends="budget async async+ordered async+budget cache cache+ordered"
modes=$backends same captures "$build/programs/captures"
modes=$backends same plain_memory "$build/programs/plain_memory" 20
modes=$backends same schedules "$build/programs/schedules" 300
[ "$(nvidia-smi -L | wc -l)" -ge 2 ] && modes=$backends same peers "$build/programs/peers" || skip "peers: needs two GPUs"
modes="nothing cache cache+ordered async async+ordered" same ipc "$build/gpu/ipc"
if [ "$(env LD_PRELOAD="$build/libxlog.so" XLOG_BACKEND=async "$build/gpu/ipc" 2> ipc.err)" = "$(printf 'handle: cudaErrorInvalidValue\nrounds: 0\nchild: 0')" ] &&
  grep -q 'XLOG_BACKEND=cache serves memory that does' ipc.err; then pass "ipc under async: refused, and the remedy named"
else fail "ipc under async: $(cat ipc.err)"; fi
for name in resolver reset info threads demo unwind plugins_in_turn; do
  case $name in threads) args=(4 500) ;; *) args=("$build/programs/plugins") ;; esac
  same $name "$build/programs/$name" "${args[@]}"
done
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
same cudart-static "$build/gpu/cuda_runtime_static"
same cudart-shared "$build/gpu/cuda_runtime_shared"
if has torch; then
  same torch-train python3 "$here/apps/torch_train.py"
  want=$(python3 "$here/apps/torch_train.py" | sed -n 's/^num_device_alloc \([0-9]*\).*/\1/p')
  # PyTorch counts what its caching allocator asked for; cuBLAS's own workspaces are others' rows.
  got=$(cat log.torch-train.log/*.stacks.csv log.torch-train.log/*[0-9].csv | awk -F, '
    NF==8 && $3 ~ /libc10_cuda.so/ {torch[$1]=1}  NF>=19 && $3=="allocate" && $14=="ok" {all++; if (torch[$18]) n++}
    END {print n " of " all}')
  [ "$want" = "${got%% *}" ] && pass "torch: $got allocate rows are its allocator's, as num_device_alloc says" || fail "torch: num_device_alloc $want, rows $got"
  export PYTORCH_NO_CUDA_MEMORY_CACHING=1
  env LD_PRELOAD="$build/libxlog.so" XLOG_LOG="$work/nocache/" python3 "$here/apps/torch_nocache.py" > nocache.out 2> nocache.err
  unset PYTORCH_NO_CUDA_MEMORY_CACHING
  want=$(sed -n 's/^cudaMalloc \([0-9]*\) cudaFree \([0-9]*\)/\1 \2/p' nocache.out)
  got=$(cat nocache/*[0-9].csv | awk -F, '$3=="allocate" && $5==7654321 {inside=!inside; if (!inside) {print a+2, d; exit} next}
    inside && $3=="allocate" && $14=="ok" {a++} inside && $3=="deallocate" && $14=="ok" {d++}')
  [ "${want% *}" = "${got% *}" ] && [ -n "$got" ] && pass "torch without caching: rows $got (allocate deallocate), profiler $want" || { fail "torch without caching: profiler $want, rows $got"; tail -3 nocache.err; }
else skip "torch"; fi
if has jax; then same jax python3 "$here/apps/jax_step.py"; else skip "jax"; fi
if has cupy; then same cupy python3 "$here/apps/cupy_ops.py"; else skip "cupy"; fi
if has numba.cuda; then same numba python3 "$here/apps/numba_kernel.py"; else skip "numba"; fi

if has torch; then
  echo "  \$ xlog run -- python3 torch_train.py"
  "$build/xlog" run -- python3 "$here/apps/torch_train.py" 2>&1 >/dev/null | sed 's/^/  /'
fi
# Every log: each pointer alternates, live bytes end where the sums end, and the report reads it.
for folder in log.*.log nocache; do
  if "$build/xlog" report --verify "$folder" > verify.out 2>&1; then pass "log of $folder: $(tail -1 verify.out)"
  else fail "log of $folder: $(tail -1 verify.out)"; fi
done
finish
