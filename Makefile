# xlog: the only build file. Everything is built under build/. `make help` lists the targets.

CUDA_HOME ?= /usr/local/cuda
SANITIZE  ?=# address, thread or undefined: for the unit tests
# or none: no backtraces. ThreadSanitizer does not see libunwind's locks, and is gone when its threads' destructors run.
UNWIND    ?= $(if $(filter thread,$(SANITIZE)),none,libunwind)
V         ?= 0
PREFIX    ?= /usr/local

ifeq ($(filter libunwind none,$(UNWIND)),)
$(error UNWIND=$(UNWIND): give libunwind or none)
endif
ifeq ($(filter-out address thread undefined,$(SANITIZE)),$(SANITIZE))
ifneq ($(SANITIZE),)
$(error SANITIZE=$(SANITIZE): give address, thread or undefined)
endif
endif

B := build$(if $(SANITIZE),/$(SANITIZE))
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' '$(1)' '$(2)')

# vptr needs the run-time types that the library does without.
SAN := $(addprefix -fsanitize=,$(SANITIZE)) $(if $(filter undefined,$(SANITIZE)),-fno-sanitize=vptr)

CXXFLAGS ?= -O2 -g
WARN     := -Wall -Wextra -Wconversion -Wshadow -Werror
COMMON   := -std=c++20 $(WARN) -D__CUDA_API_VERSION_INTERNAL -I. -I$(B)/gen -isystem $(CUDA_HOME)/include -MMD -MP -pthread -mcx16 $(SAN)
# What is preloaded depends on libc alone: no exceptions, no run-time types, nothing visible that does not say so.
CORE     := $(COMMON) -fPIC -fvisibility=hidden -fno-exceptions -fno-rtti -fno-threadsafe-statics -ftls-model=initial-exec -fno-omit-frame-pointer
HOST     := $(COMMON) -Wno-restrict# g++ 12 warns of std::string itself (GCC bug 105329)

RUNTIME_SRC := $(wildcard runtime/base/*.cpp runtime/record/*.cpp runtime/resource/*.cpp runtime/guard/*.cpp runtime/refusal/*.cpp runtime/*.cpp runtime/library/*.cpp)
RUNTIME_SRC := $(filter-out runtime/base/backtrace_$(if $(filter none,$(UNWIND)),libunwind,none).cpp,$(RUNTIME_SRC))
SHIM_SRC    := $(wildcard shim/*.cpp shim/*.S)
TOOL_SRC    := $(wildcard tools/*/*.cpp tools/*/*/*.cpp) tools/report/page.S
SIM_SRC     := $(wildcard tests/sim/*.cpp)
UNIT_SRC    := $(wildcard tests/unit/*.cpp) tests/support/process.cpp
PRELOAD_SRC := $(wildcard tests/preload/*.cpp) tests/support/process.cpp
ORACLE_SRC  := $(wildcard tests/oracle/*.cpp)
STACK_SRC   := $(wildcard tests/stack/*.cpp)
PROGRAM_SRC := $(wildcard tests/programs/*.cpp tests/programs/misuse/*.cpp)
LINKED_SRC  := $(wildcard tests/programs/stack/*.cpp)
PLUGIN_SRC  := $(wildcard tests/programs/plugins/*.cpp)
BENCH_SRC   := $(wildcard tests/bench/bench_*.cpp)

obj = $(patsubst %,$(B)/obj/%.o,$(1))
RUNTIME_OBJ := $(call obj,$(RUNTIME_SRC))
SHIM_OBJ    := $(call obj,$(SHIM_SRC))
GEN         := $(B)/gen/cuda_results.inc
UNWIND_LIB  := $(if $(filter libunwind,$(UNWIND)),build/libunwind/libunwind.a)

PROGRAMS := $(patsubst tests/programs/%.cpp,$(B)/programs/%,$(PROGRAM_SRC) $(LINKED_SRC))
PLUGINS  := $(patsubst tests/programs/plugins/%.cpp,$(B)/programs/plugins/%.so,$(PLUGIN_SRC))
BENCHES  := $(patsubst tests/bench/%.cpp,$(B)/bench/%,$(BENCH_SRC)) $(B)/bench/bench_stack
SIM      := $(B)/sim/libcuda.so.1
SIM_NVML := $(B)/sim/libnvidia-ml.so.1
NOOP     := $(B)/noop/libcuda.so.1
TESTS    := $(B)/unit_tests $(B)/oracle_tests $(B)/stack_tests $(B)/preload_tests

.DEFAULT_GOAL := all
.PHONY: golden all demo check check-asan check-tsan check-sanitized check-gpu check-unit check-preload bench bench-report fuzz bench-gpu gpu-kit lint format install clean help
.SECONDARY:
.DELETE_ON_ERROR:

all: $(B)/libxlog.so $(B)/xlog $(B)/libxlog_runtime.a  ## build the library, the command and the static library

# ---- prerequisites ---------------------------------------------------------------------------------------------------

$(CUDA_HOME)/include/cuda.h:
	@echo "xlog: no CUDA toolkit: looked for $@ (set CUDA_HOME)" >&2; exit 1

# Debian packages that are missing are installed (as root, or with sudo), or named.
build/packages.ok: tools/need-packages | build/
	$(Q)tools/need-packages
	@touch $@

build/:
	@mkdir -p $@

# ---- generated -------------------------------------------------------------------------------------------------------

$(B)/gen/cuda_results.inc: $(CUDA_HOME)/include/cuda.h build/packages.ok
	@mkdir -p $(@D)
	$(Q)sed -nE 's/^ *(CUDA_ERROR_[A-Z0-9_]+) *= *([0-9]+).*/XLOG_CUDA_RESULT(\1, \2)/p' $< > $@

$(B)/gen/exports.map: shim/intercepted.def shim/loader.def
	@mkdir -p $(@D)
	$(Q){ echo '{ global:'; sed -nE 's/^XLOG_(ROW\([a-z]+, |LOADER\(|OWN\()([A-Za-z0-9_]+)\)$$/  \2;/p' $^; echo '  local: *; };'; } > $@

# The version, from the one file that has it.
$(B)/gen/version.inc: VERSION
	@mkdir -p $(@D)
	$(Q)printf '#define XLOG_VERSION "%s"\n' "$$(head -1 $<)" > $@

# libunwind from the distribution's source package: position independent, hidden, without the parts that would open
# files and pipes in the program (runtime/base/libunwind.sed).
build/libunwind/libunwind.a: runtime/base/libunwind.sed tools/build-libunwind build/packages.ok
	$(call say,UNWIND,$@)
	$(Q)tools/build-libunwind build/libunwind runtime/base/libunwind.sed

# ---- library, command ------------------------------------------------------------------------------------------------

# What is for tools, tests and C++ programs uses the standard library, which the preloaded library must not.
WITH_STD := $(filter $(B)/obj/runtime/library/%,$(RUNTIME_OBJ))
CORE_OBJ := $(filter-out $(WITH_STD),$(RUNTIME_OBJ)) $(SHIM_OBJ)
$(WITH_STD): FLAGS = $(COMMON) -fPIC
$(CORE_OBJ): FLAGS = $(CORE) -Ibuild/libunwind/include
$(B)/obj/%.cpp.o: %.cpp | $(GEN) $(UNWIND_LIB)
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(FLAGS) $(CPPFLAGS) $(CXXFLAGS) -c $< -o $@
$(B)/obj/%.S.o: %.S
	$(call say,AS,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) -fPIC -c $< -o $@

# With the unwinder in it: a program needs no other library.
$(B)/libxlog_runtime.a: $(RUNTIME_OBJ) $(UNWIND_LIB)
	$(call say,AR,$@)
	$(Q)rm -f $@ && printf '%s\n' 'CREATE $@' $(addprefix 'ADDLIB ,$(addsuffix ',$(UNWIND_LIB))) $(patsubst %,'ADDMOD %',$(RUNTIME_OBJ)) SAVE END | $(AR) -M

# initfirst: the constructor sees the environment before those of other libraries change it.
# -Bsymbolic: the address that stands for an entry of ours is ours, also when another interposer stands in front.
$(B)/libxlog.so: $(CORE_OBJ) $(UNWIND_LIB) $(B)/gen/exports.map
	$(call say,LINK,$@)
	$(Q)$(CC) -shared -o $@ $(CORE_OBJ) $(UNWIND_LIB) -static-libgcc -Wl,--version-script,$(B)/gen/exports.map \
	  -Wl,-Bsymbolic,-z,defs,-z,now,-z,relro,-z,nodelete,-z,initfirst,--exclude-libs,ALL,--build-id $(SAN)

# The page of `xlog report --html`: libraries from the package registry, fetched here and bundled. Without npm, or without a
# network, the command is built without it.
WEB := tools/report/web
build/web/page.html: $(wildcard $(WEB)/*) build/packages.ok
	$(call say,BUNDLE,$@)
	$(Q)rm -rf build/web && mkdir -p build/web && cp $(WEB)/* build/web/
	$(Q)cd build/web && if npm ci --ignore-scripts --no-audit --no-fund --loglevel=error >npm.log; then node bundle.mjs page.tmp && mv page.tmp page.html; \
	  else echo "xlog: xlog report --html is left out: its libraries could not be fetched (npm)" >&2; : > page.html; fi
$(B)/obj/tools/report/page.S.o: build/web/page.html

$(call obj,$(TOOL_SRC)): FLAGS = $(HOST)
DW := -Wl,-Bstatic -ldw -lelf -lz -llzma -lbz2 -lzstd -liberty -Wl,-Bdynamic
$(B)/obj/tools/command/version.cpp.o: $(B)/gen/version.inc
$(B)/xlog: $(call obj,$(TOOL_SRC)) $(B)/libxlog_runtime.a
	$(call say,LINK,$@)
	$(Q)$(CXX) -pthread -o $@ $^ -static-libstdc++ -static-libgcc $(DW) $(SAN)

# ---- simulated driver, programs, tests -------------------------------------------------------------------------------

$(call obj,$(SIM_SRC) tests/sim/nvml/nvml.cpp tests/bench/noop_driver.cpp): FLAGS = $(HOST) -fPIC -fvisibility=hidden
# -Bsymbolic: as in the real driver, an address that it hands out is its own, whatever was preloaded.
$(SIM): $(call obj,$(SIM_SRC))
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -pthread -o $@ $^ -Wl,-soname,libcuda.so.1 -Wl,-z,defs,-Bsymbolic && ln -sf libcuda.so.1 $(@D)/libcuda.so
$(SIM_NVML): $(call obj,tests/sim/nvml/nvml.cpp)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $^ -Wl,-soname,libnvidia-ml.so.1 -Wl,-z,defs,-Bsymbolic -ldl
$(NOOP): $(call obj,tests/bench/noop_driver.cpp)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -o $@ $^ -Wl,-soname,libcuda.so.1 && ln -sf libcuda.so.1 $(@D)/libcuda.so

$(call obj,$(PROGRAM_SRC) $(BENCH_SRC)): FLAGS = $(HOST) -Itests
$(call obj,$(PLUGIN_SRC)): FLAGS = $(HOST) -Itests -fPIC
# Linked against the driver's stub by its SONAME: what runs is found by LD_LIBRARY_PATH.
$(B)/programs/%: $(B)/obj/tests/programs/%.cpp.o $(SIM)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -pthread -rdynamic -o $@ $< -Wl,--as-needed -L$(B)/sim -lcuda
# Programs that link the runtime too; the driver is the toolkit's stub.
# They read cuda.h as any program does.
$(call obj,$(LINKED_SRC)): FLAGS = $(filter-out -D__CUDA_API_VERSION_INTERNAL,$(HOST))
$(B)/programs/stack/%: $(B)/obj/tests/programs/stack/%.cpp.o $(B)/libxlog_runtime.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -pthread -rdynamic -o $@ $^ -L$(CUDA_HOME)/lib64/stubs -lcuda -ldl
$(B)/programs/plugins/%.so: $(B)/obj/tests/programs/plugins/%.cpp.o $(SIM)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -shared -pthread -o $@ $< -Wl,--as-needed -L$(B)/sim -lcuda
$(B)/bench/%: $(B)/obj/tests/bench/%.cpp.o $(NOOP)
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -pthread -o $@ $< -L$(B)/noop -lcuda -ldl

$(call obj,tests/bench/stack/bench_stack.cpp): FLAGS = $(HOST)
$(B)/bench/bench_stack: $(B)/obj/tests/bench/stack/bench_stack.cpp.o $(B)/libxlog_runtime.a
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) -pthread -o $@ $^ -ldl

BOOST := -lboost_unit_test_framework
$(call obj,$(UNIT_SRC) $(ORACLE_SRC) $(PRELOAD_SRC)): FLAGS = $(HOST) -Itests -DBOOST_TEST_DYN_LINK
TOOL_PARTS := $(filter-out $(B)/obj/tools/command/main.cpp.o,$(call obj,$(TOOL_SRC)))
$(B)/unit_tests: $(call obj,$(UNIT_SRC)) $(TOOL_PARTS) $(B)/libxlog_runtime.a
	$(call say,LINK,$@)
	$(Q)$(CXX) -pthread -o $@ $^ $(BOOST) $(DW) $(SAN)
# It shares no code with what it judges.
$(B)/oracle_tests: $(call obj,$(ORACLE_SRC))
	$(call say,LINK,$@)
	$(Q)$(CXX) -pthread -o $@ $^ $(BOOST) $(SAN)
# Runs on whichever driver is found, so it travels without Boost's library.
$(call obj,$(STACK_SRC)): FLAGS = $(HOST)
$(B)/stack_tests: $(call obj,$(STACK_SRC)) $(B)/libxlog_runtime.a
	$(call say,LINK,$@)
	$(Q)$(CXX) -pthread -rdynamic -o $@ $^ -ldl $(SAN)
$(B)/preload_tests: $(call obj,$(PRELOAD_SRC)) $(TOOL_PARTS) $(B)/libxlog_runtime.a
	$(call say,LINK,$@)
	$(Q)$(CXX) -pthread -o $@ $^ $(BOOST) $(DW) $(SAN)

# Runtime-API programs, with either cudart.
$(B)/gpu/cuda_runtime_%: tests/gpu/apps/cuda_runtime.cu
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(CUDA_HOME)/bin/nvcc -O2 -arch=sm_80 -cudart $* -o $@ $<
$(B)/gpu/%: tests/gpu/apps/%.cu
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(CUDA_HOME)/bin/nvcc -O2 -arch=sm_80 -o $@ $<
$(B)/bench/gpu/%: tests/bench/gpu/%.cu
	$(call say,NVCC,$@)
	@mkdir -p $(@D)
	$(Q)$(CUDA_HOME)/bin/nvcc -O2 -arch=sm_80 -std=c++17 --extended-lambda -o $@ $< -L$(CUDA_HOME)/lib64/stubs -lcuda
# Driver-API program that asks for what the simulated driver does not export.
$(B)/gpu/lifetimes: tests/gpu/apps/lifetimes.cpp
	$(call say,LINK,$@)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(HOST) -Itests $(CXXFLAGS) -o $@ $< -L$(CUDA_HOME)/lib64/stubs -lcuda
GPU_PROGRAMS := $(B)/gpu/lifetimes $(B)/gpu/cuda_runtime_static $(B)/gpu/cuda_runtime_shared $(B)/gpu/stress $(B)/gpu/ipc
GPU_BENCHES  := $(patsubst tests/bench/gpu/%.cu,$(B)/bench/gpu/%,$(wildcard tests/bench/gpu/*.cu))

# What a machine with a GPU and no compiler needs: build/kit travels, `tests/gpu/check-gpu.sh build/kit` runs.
gpu-kit: all $(SIM) $(SIM_NVML) $(PROGRAMS) $(PLUGINS) $(GPU_PROGRAMS) $(BENCHES) $(GPU_BENCHES) $(B)/stack_tests
	$(Q)rm -rf $(B)/kit && mkdir -p $(B)/kit && cp -r $(B)/libxlog.so $(B)/xlog $(B)/stack_tests $(B)/programs $(B)/gpu $(B)/sim $(B)/bench $(B)/kit/
	$(Q)cp tests/programs/misuse.tsv $(B)/kit/programs/
	$(Q)strip -g $(B)/kit/stack_tests $(B)/kit/sim/libcuda.so.1

# ---- targets for people ----------------------------------------------------------------------------------------------

demo: all $(SIM) $(B)/programs/demo  ## build all and run the main job: on the GPU if there is one, else on the simulated driver
	$(Q)tests/support/demo.sh $(B)

# The unit tests and the stack, instrumented; the simulated driver as it is.
check-asan:  ## the stack's tests under AddressSanitizer, and under UndefinedBehaviorSanitizer
	$(Q)$(MAKE) --no-print-directory SANITIZE=address check-sanitized
	$(Q)$(MAKE) --no-print-directory SANITIZE=undefined check-sanitized
check-tsan:  ## the stack's tests under ThreadSanitizer
	$(Q)$(MAKE) --no-print-directory SANITIZE=thread check-sanitized
check-sanitized: $(B)/unit_tests $(B)/stack_tests
	$(Q)$(MAKE) --no-print-directory SANITIZE= all build/sim/libcuda.so.1
	$(Q)tests/support/check-sanitized.sh build $(B)

check: all $(SIM) $(SIM_NVML) $(NOOP) $(PROGRAMS) $(PLUGINS) $(TESTS)  ## every test that needs no GPU
	$(Q)tests/support/check.sh $(B)

check-long: all $(SIM) $(SIM_NVML) $(NOOP) $(PROGRAMS) $(PLUGINS) $(TESTS)  ## hours of what check does in minutes: seeds, schedules, failing calls, storms, kills
	$(Q)tests/support/check-long.sh $(B)

golden: $(B)/unit_tests  ## write the golden reports anew: look at the difference
	$(Q)XLOG_GOLDEN=1 $(B)/unit_tests --run_test='golden*' || true

bench: all $(NOOP) $(SIM) $(BENCHES)  ## the figures, as ratios in one run, on a driver that does nothing
	$(Q)tests/bench/bench.sh $(B)

bench-report: all $(NOOP) $(BENCHES)  ## how fast a log of ten million events is read, beside DuckDB
	$(Q)tests/bench/bench-report.sh $(B)

fuzz: all  ## an hour of libFuzzer over what reads logs, on all cores (FUZZ_SECONDS)
	$(Q)tests/fuzz/fuzz.sh $(B) $(or $(FUZZ_SECONDS),1800)

check-gpu: all $(SIM) $(SIM_NVML) $(PROGRAMS) $(PLUGINS) $(GPU_PROGRAMS) $(B)/stack_tests  ## the real driver: same programs, real applications (says skipped without a GPU)
	$(Q)tests/gpu/check-gpu.sh $(B)
	$(Q)tests/gpu/check-stack.sh $(B)

bench-gpu: all $(NOOP) $(BENCHES) $(GPU_BENCHES)  ## the figures on a GPU
	$(Q)tests/gpu/bench-gpu.sh $(B)

lint: all  ## format, clang-tidy, layers, exports, dependencies
	$(Q)tests/support/lint.sh $(B)

FORMATTED = $(shell git ls-files '*.cpp' '*.h' '*.cu')
format:  ## clang-format everything
	$(Q)clang-format -i $(FORMATTED)

install: all  ## into PREFIX (default /usr/local)
	install -D -m 755 $(B)/libxlog.so $(DESTDIR)$(PREFIX)/lib/libxlog.so
	install -D -m 755 $(B)/xlog $(DESTDIR)$(PREFIX)/bin/xlog
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/bash-completion/completions
	$(B)/xlog help --man > $(DESTDIR)$(PREFIX)/share/man/man1/xlog.1
	$(B)/xlog completion bash > $(DESTDIR)$(PREFIX)/share/bash-completion/completions/xlog
	install -d $(DESTDIR)$(PREFIX)/share/zsh/site-functions $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(B)/xlog completion zsh > $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_xlog
	$(B)/xlog completion fish > $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/xlog.fish
	install -D -m 644 $(B)/libxlog_runtime.a $(DESTDIR)$(PREFIX)/lib/libxlog_runtime.a
	install -D -m 644 shim/xlog_preload.h $(DESTDIR)$(PREFIX)/include/xlog_preload.h
	for header in $$(find runtime -name '*.h' -o -name '*.def'); do install -D -m 644 $$header $(DESTDIR)$(PREFIX)/include/xlog/$$header; done

clean:  ## remove build/
	rm -rf build

help:  ## this list
	@sed -nE 's/^([a-z-]+):.*##  *(.*)/  \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{printf "  %-10s %s\n", $$1, $$2}'

-include $(shell find $(B)/obj -name '*.d' 2>/dev/null)
