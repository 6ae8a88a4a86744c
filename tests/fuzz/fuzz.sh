#!/bin/bash
# fuzz.sh BUILD SECONDS: libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer, on all cores, from tests/fuzz/corpus: for SECONDS
# over what reads logs (report.cpp), and for as long over names, suppressions, JSON and options (texts.cpp). It ends with what it ran.
# What it finds is left in BUILD/fuzz.
set -eu
build=$1 seconds=$2 out=$1/fuzz here=$PWD
command -v clang++ >/dev/null || { echo "fuzz: skipped: no clang++"; exit 0; }
mkdir -p "$out/obj"
flags="-std=c++20 -O1 -g -w -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -D__CUDA_API_VERSION_INTERNAL -I. -I$build/gen -isystem ${CUDA_HOME:-/usr/local/cuda}/include"
[ -z "$(find tools runtime -name "*.h" -newer "$out/report" 2> /dev/null)" ] || rm -f "$out"/obj/*.o
sources=$(ls tools/*/*.cpp tools/*/*/*.cpp tests/fuzz/*.cpp | grep -v tools/command/main.cpp)
printf '%s\n' $sources | xargs -P"$(nproc)" -I{} sh -c 'o='"$out"'/obj/$(echo {} | tr / _).o; [ "$o" -nt {} ] || clang++ '"$flags"' -c {} -o "$o"'
cd "$out"
for target in report texts; do
  objects=$(ls obj/*.o | grep -v obj/tests_fuzz)
  # shellcheck disable=SC2086 # a list
  clang++ -fsanitize=fuzzer,address,undefined -o $target $objects obj/tests_fuzz_$target.cpp.o "$here/$build/obj/tools/report/page.S.o" "$here/$build/libxlog_runtime.a" -pthread -ldw -lelf -liberty -lz -ldl
  mkdir -p corpus-$target log-$target
  # Two of our own threads a process: jobs are processes.
  (cd log-$target && ASAN_OPTIONS=allocator_may_return_null=1 ../$target -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=256 -max_len=60000 -jobs="$(nproc)" -workers="$(nproc)" \
    -print_final_stats=1 ../corpus-$target "$here/tests/fuzz/corpus/$target" > fuzz.log 2>&1) || { grep -hE 'ERROR|SUMMARY|Test unit' log-$target/fuzz-*.log | head; echo "fuzz: $target failed"; exit 1; }
  grep -hE 'number_of_executed_units' log-$target/fuzz-*.log | awk '{n += $2} END {print "fuzz: '$target': " n " runs in '"$seconds"' s on each core, nothing found"}'
done
