#!/bin/bash
# fuzz.sh BUILD SECONDS: libFuzzer with AddressSanitizer and UndefinedBehaviorSanitizer over what reads logs (report.cpp), on all
# cores, from tests/fuzz/corpus; ends with what it ran. What it finds is left in BUILD/fuzz.
set -eu
build=$1 seconds=$2 out=$1/fuzz
command -v clang++ >/dev/null || { echo "fuzz: skipped: no clang++"; exit 0; }
mkdir -p "$out/obj" "$out/corpus"
flags="-std=c++20 -O1 -g -w -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -D__CUDA_API_VERSION_INTERNAL -I. -I$build/gen -isystem ${CUDA_HOME:-/usr/local/cuda}/include"
[ -z "$(find tools runtime -name "*.h" -newer "$out/report" 2> /dev/null)" ] || rm -f "$out"/obj/*.o
sources=$(ls tools/*/*.cpp tests/fuzz/report.cpp | grep -v tools/command/main.cpp)
printf '%s\n' $sources | xargs -P"$(nproc)" -I{} sh -c 'o='"$out"'/obj/$(echo {} | tr / _).o; [ "$o" -nt {} ] || clang++ '"$flags"' -c {} -o "$o"'
clang++ -fsanitize=fuzzer,address,undefined -o "$out/report" "$out"/obj/*.o "$build/obj/tools/report/page.S.o" "$build/libxlog_runtime.a" -pthread -ldw -lelf -liberty -lz -ldl
cd "$out"
# Two of our own threads a process: jobs are processes.
ASAN_OPTIONS=allocator_may_return_null=1 ./report -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -malloc_limit_mb=256 -max_len=60000 -jobs="$(nproc)" -workers="$(nproc)" \
  -print_final_stats=1 corpus "$OLDPWD/tests/fuzz/corpus" > fuzz.log 2>&1 || { grep -hE 'ERROR|SUMMARY|Test unit' fuzz-*.log | head; echo "fuzz: failed"; exit 1; }
grep -hE 'number_of_executed_units' fuzz-*.log | awk '{n += $2} END {print "fuzz: " n " runs in " '"$seconds"' " s on each core, nothing found"}'
