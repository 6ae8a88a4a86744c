#!/bin/bash
# lint.sh BUILD [binary]: what the library may depend on and export, which folder may include which, format, clang-tidy.
# With `binary`, only what can be said of the built library and of the sources without further tools.
set -u
build=$1 only=${2:-all} bad=0
complain() { echo "lint: $*" >&2; bad=1; }
so=$build/libxlog.so

needed=$(readelf -d "$so" | sed -nE 's/.*NEEDED.*\[(.*)\]/\1/p')
[ "$needed" = libc.so.6 ] || complain "libxlog.so needs more than libc: $needed"
listed=$(sed -nE 's/^XLOG_(ROW\([a-z]+, |LOADER\(|OWN\()([A-Za-z0-9_]+)\)$/\2/p' shim/intercepted.def shim/loader.def | sort)
exported=$(nm -D --defined-only "$so" | awk '{print $NF}' | sort)
[ "$listed" = "$exported" ] || complain "exports are not the lists: $(diff <(echo "$listed") <(echo "$exported") | grep '^[<>]' | tr '\n' ' ')"
highest=$(objdump -T "$so" | grep -o 'GLIBC_[0-9.]*' | sort -Vu | tail -1)
[ "$(printf '%s\nGLIBC_2.34\n' "$highest" | sort -V | tail -1)" = GLIBC_2.34 ] || complain "needs $highest: the floor is GLIBC_2.34"
hex_field() { awk "$1" | head -1; }
# Two words: the compiler's own frame_dummy, and the constructor that keeps our variables and what stderr is before the program can
# change them (shim/start.cpp). That one may call nothing, since a program may replace any function that it could call.
constructors=$((16#$(readelf -SW "$so" | sed 's/^ *\[ *[0-9]*\]//' | hex_field '$1==".init_array"{print $5}')))
[ "$constructors" = 16 ] || complain "has other constructors than one: .init_array of $constructors bytes"
called=$(nm -u "$build/obj/shim/start.cpp.o" | awk '{print $NF}' | grep -vE '^(_ZN4xlog17start_environmentE|_ZN4xlog12first_stderrE|_GLOBAL_OFFSET_TABLE_)$')
[ -z "$called" ] || complain "the constructor in shim/start.cpp calls: $called"
# What our dlsym and dlclose reach before the program has begun calls nothing that another library can replace: a sanitizer's
# runtime asks dlsym for the functions that it replaces, and its own copies crash until it has them (plain_calls.h).
early="base/loaded_files base/elf_table base/diagnostics base/file_set"
outside=$(for each in $early; do nm -u "$build/obj/runtime/$each.cpp.o"; done; nm -u "$build"/obj/shim/{dlsym,elf_symbols,real_calls}.cpp.o)
# pthread_atfork and the plain dl_iterate_phdr are reached later, or not at all; the rest is the compiler's, the loader's or ours.
allowed='^(_ZNK?4xlog.*|xlog_.*|_GLOBAL_OFFSET_TABLE_|__errno_location|_r_debug|__ehdr_start|__cxa_.*|pthread_atfork|dl_iterate_phdr)$'
called=$(awk 'NF==2 {print $2}' <<<"$outside" | grep -vE "$allowed" | sort -u | grep -vxF -f <(echo "$listed"))
[ -z "$called" ] || complain "dlsym and dlclose reach: $(tr '\n' ' ' <<<"$called")"
# A walk over the loaded files that forks do not wait for (runtime/base/loaded_files.h): libunwind's come through ours.
walkers=$(nm -A "$build"/obj/runtime/*/*.o "$build"/obj/runtime/*.o "$build"/obj/shim/*.o build/libunwind/libunwind.a 2>/dev/null | grep ' U dl_iterate_phdr$' | cut -d: -f1)
[ "$walkers" = "$build/obj/runtime/base/loaded_files.cpp.o" ] || complain "dl_iterate_phdr is called by: $walkers"
# Cancellation points of the C library: a thread that is cancelled would end inside ours (runtime/base/system_calls.h has them).
points='open|openat|close|read|pread64|write|pwrite64|nanosleep|usleep|poll|fsync|waitpid|sigtimedwait|pause'
waits=$(ls "$build"/obj/runtime/*/*.o "$build"/obj/runtime/*.o "$build"/obj/shim/*.o | grep -v '/runtime/library/' | xargs nm -A -u | grep -wE "U ($points)")
[ -z "$waits" ] || complain "cancellation points are called: $waits"
tls=$(($(readelf -lW "$so" | hex_field '$1=="TLS"{print $6}')))
[ "$tls" -le 256 ] || complain "thread-local storage of $tls bytes: at most 256"

# Layers: a folder may include only itself and what stands before it.
includes() {  # includes FOLDER-PATTERN FORBIDDEN-PATTERN
  local found; found=$(grep -nE "^#include \"($2)" $1 2>/dev/null)
  [ -z "$found" ] || complain "an include against the direction: $found"
}
includes "runtime/base/*" 'runtime/(record|resource|runtime|device)|shim/|tools/|tests/'
includes "runtime/record/*" 'runtime/(resource|runtime|device)|shim/|tools/|tests/'
includes "runtime/resource/*" 'runtime/(guard|runtime|device)|shim/|tools/|tests/'
includes "runtime/guard/*" 'runtime/(runtime|device_|native_|devices)|shim/|tools/|tests/'
includes "runtime/refusal/*" 'runtime/(guard|runtime|device_|native_|devices)|shim/|tools/|tests/'
includes "runtime/*.h runtime/*.cpp" 'runtime/library/|shim/|tools/|tests/'
includes "runtime/library/*" 'shim/|tools/|tests/'
includes "shim/*" 'tools/|tests/'
includes "tools/*/*" 'shim/|tests/|runtime/(resource|runtime|device)'
grep -nE '\b(dlsym|dlopen|dlvsym)\(' runtime/*/*.cpp runtime/*.cpp | grep -v '^runtime/library/driver_loader' && complain "the runtime looks symbols up"
grep -nE '\b(new |malloc\(|std::string\b|std::vector)' runtime/base/*.cpp runtime/resource/*.cpp runtime/guard/*.cpp runtime/refusal/*.cpp shim/*.cpp runtime/record/recorder.cpp \
  runtime/record/log_file.cpp | grep -vE '//|new \(' && complain "the preloaded library allocates"
tests/support/lint-streams.sh || bad=1
tests/support/check-header.sh || complain "cuda.h has functions that begin or end a life and are not handled"
[ "$only" = binary ] && exit $bad

files=$(git ls-files '*.cpp' '*.h')
if command -v clang-format >/dev/null; then
  clang-format --dry-run --Werror $files 2>&1 | head -20 | grep . && complain "not formatted: make format"
else echo "lint: clang-format is not here: skipped"; fi
if command -v clang-tidy >/dev/null; then
  core="-std=c++20 -D__CUDA_API_VERSION_INTERNAL -I. -I$build/gen -Ibuild/libunwind/include -isystem ${CUDA_HOME:-/usr/local/cuda}/include"
  git ls-files 'runtime/*.cpp' 'shim/*.cpp' 'tools/*.cpp' | xargs -P"$(nproc)" -n4 sh -c 'clang-tidy --quiet "$@" -- '"$core"' 2>/dev/null' tidy > "$build/tidy.log"
  grep -E 'warning:|error:' "$build/tidy.log" | sort -u | head -40 | grep . && complain "clang-tidy"
else echo "lint: clang-tidy is not here: skipped"; fi
exit $bad
