#!/bin/bash
# build-samples.sh CHECKOUT OUT: NVIDIA's CUDA samples (github.com/NVIDIA/cuda-samples), those of samples.tsv, each by one call
# of nvcc. They are run at the side; nothing of theirs is part of this repository.
set -u
samples=$(cd "$1" && pwd) && mkdir -p "$2" && out=$(cd "$2" && pwd) || exit 1
here=$(cd "$(dirname "$0")" && pwd)
arch=${XLOG_SAMPLES_ARCH:-sm_90}
nvcc=${CUDA_HOME:-/usr/local/cuda}/bin/nvcc
export samples out arch nvcc
build() {
  local name=$1 folder libraries="-lcuda"
  [ -x "$out/$name" ] && return
  folder=$(find "$samples/Samples" -mindepth 2 -maxdepth 2 -type d -name "$name" | head -1)
  [ -n "$folder" ] && cd "$folder" || { echo "no $name"; return; }
  case $name in
    *CUBLAS* | conjugateG* | batch* | UnifiedMemoryStreams) libraries+=" -lcublas -lcusparse" ;;
    *FFT*) libraries+=" -lcufft" ;;
    cuSolver*) libraries+=" -lcusolver -lcublas -lcusparse" ;;
    Mersenne* | MonteCarlo*) libraries+=" -lcurand" ;;
  esac
  local all some more=()
  all=$(ls ./*.cu ./*.cpp src/*.cu src/*.cpp 2>/dev/null)
  some=$(grep -v -e '_kernel64' -e 'kernel\.cu$' <<< "$all")
  grep -lq helper_multiprocess $all && more=("$samples/Common/helper_multiprocess.cpp")
  # Some samples include their kernels, some link them; cooperative ones want relocatable code.
  for sources in "$some" "$all"; do
    for code in "-rdc=false" "-rdc=true -lcudadevrt"; do
      "$nvcc" -O1 -std=c++17 -arch="$arch" -Xcompiler -fopenmp -I"$samples/Common" -I. -Iinc -o "$out/$name" $sources "${more[@]}" $code \
        $libraries -L"${CUDA_HOME:-/usr/local/cuda}/lib64/stubs" > /dev/null 2>&1 && strip "$out/$name" && return
    done
  done
  echo "$name could not be built"
}
export -f build
grep -v '^#' "$here/samples.tsv" | cut -f1 | xargs -P "$(nproc)" -I{} bash -c 'build {}'
echo "$(find "$out" -type f | wc -l) programs in $out"
