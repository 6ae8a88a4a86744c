// Kernels by name: those that programs of tests/programs load, and the one of the library's own. They touch
// memory without any check, but that an address which is reserved and not mapped is a fault of the context.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "runtime/guard/check_kernel.h"
#include "tests/sim/driver.h"

using namespace sim;

namespace {

using Arguments = void**;
using Work = std::function<bool(Context&)>;  // false: it still runs

template <class T>
T argument(Arguments arguments, int i) {
  T value;
  std::memcpy(&value, arguments[i], sizeof value);
  return value;
}

// The byte at `at`; nullptr and the context is lost.
unsigned char* touch(Context& context, uint64_t at) {
  if (at - reservations_begin() < kReservations && find_block(at) == nullptr) {
    context.fault = CUDA_ERROR_ILLEGAL_ADDRESS;
    return nullptr;
  }
  return reinterpret_cast<unsigned char*>(at);
}

Work store_bytes(Arguments arguments, unsigned, Stream*) {
  auto to = argument<uint64_t>(arguments, 0);
  auto count = argument<uint64_t>(arguments, 1);
  auto value = argument<uint32_t>(arguments, 2);
  return [=](Context& context) {
    unsigned char* at = nullptr;
    for (uint64_t i = 0; i < count && (at = touch(context, to + i)) != nullptr; ++i) {
      *at = static_cast<unsigned char>(value);
    }
    return true;
  };
}

Work load_byte(Arguments arguments, unsigned, Stream*) {
  auto from = argument<uint64_t>(arguments, 0);
  auto to = argument<uint64_t>(arguments, 1);
  return [=](Context& context) {
    unsigned char* source = touch(context, from);
    unsigned char* target = source != nullptr ? touch(context, to) : nullptr;
    if (target != nullptr) {
      *target = *source;
    }
    return true;
  };
}

// Zones of live blocks alone, from the launch to the end.
Work check_zones(Arguments arguments, unsigned count, Stream* stream) {
  auto* zones = argument<xlog::ZoneToCheck*>(arguments, 0);
  auto* flags = argument<uint32_t*>(arguments, 1);
  std::vector<Use> uses;
  std::vector<uint64_t> asked;
  for (unsigned i = 0; i < count; ++i) {
    if (find_block(zones[i].at) == nullptr) {
      std::fprintf(stderr, "simulated driver: a zone is checked after its block was freed\n");
      std::abort();
    }
    uses.push_back(use_of(zones[i].at, stream));
    asked.push_back(zones[i].at);
  }
  return [=](Context& context) {
    for (const Use& use : uses) {
      use.check();
    }
    for (unsigned i = 0; i < count; ++i) {
      if (zones[i].at != asked[i]) {
        std::fprintf(stderr, "simulated driver: what a kernel was given was written anew before it ran\n");
        std::abort();
      }
      const unsigned char* at = touch(context, zones[i].at);
      for (uint64_t n = 0; at != nullptr && n < zones[i].bytes; ++n) {
        uint64_t x = zones[i].seed + (n >> 3) * 0x9E3779B97F4A7C15;
        x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9;
        x = (x ^ (x >> 27)) * 0x94D049BB133111EB;
        x ^= x >> 31;
        flags[i] = at[n] != (x >> ((n & 7) << 3) & 255) ? 1 : flags[i];
      }
    }
    return true;
  };
}

Work stand(Arguments arguments, unsigned, Stream*) {
  return [until = argument<uint32_t*>(arguments, 0)](Context&) { return __atomic_load_n(until, __ATOMIC_ACQUIRE) != 0; };
}

Work nothing(Arguments, unsigned, Stream*) {
  return [](Context&) { return true; };
}

struct Kernel {
  const char* name;
  Work (*prepare)(Arguments, unsigned blocks, Stream* stream);
};
constexpr Kernel kKernels[] = {
    {"store_bytes", store_bytes}, {"load_byte", load_byte}, {"stand", stand}, {"nothing", nothing}, {xlog::kCheckKernelName, check_zones}};

}  // namespace

SIM_EXPORT CUresult cuModuleLoadData(CUmodule* out, const void* image) {
  Call call("cuModuleLoadData", Call::Needs::context);
  if (!call.failed()) {
    wait_until([&call] { return is_idle(*call.context()); }, Driver::get().lock);
    *out = reinterpret_cast<CUmodule>(const_cast<void*>(image));
  }
  return call.result();
}

SIM_EXPORT CUresult cuModuleGetFunction(CUfunction* out, CUmodule, const char* name) {
  Call call("cuModuleGetFunction", Call::Needs::context);
  for (const Kernel& each : kKernels) {
    if (!call.failed() && std::strcmp(each.name, name) == 0) {
      *out = reinterpret_cast<CUfunction>(const_cast<Kernel*>(&each));
      return CUDA_SUCCESS;
    }
  }
  return call.failed() ? call.result() : CUDA_ERROR_NOT_FOUND;
}

SIM_EXPORT CUresult cuFuncGetName(const char** name, CUfunction function) {
  Call call("cuFuncGetName", Call::Needs::init);
  if (!call.failed()) {
    *name = reinterpret_cast<Kernel*>(function)->name;
  }
  return call.result();
}

namespace {
CUresult launch(const char* name, CUfunction function, unsigned blocks, CUstream handle, void** arguments, bool per_thread) {
  Call call(name, Call::Needs::context, per_thread);
  Stream* stream = call.failed() ? nullptr : call.stream(handle);
  if (stream == nullptr) {
    return call.failed() ? call.result() : CUDA_ERROR_INVALID_HANDLE;
  }
  auto run = [work = reinterpret_cast<Kernel*>(function)->prepare(arguments, blocks, stream), context = stream->context] {
    return work(*context);
  };
  if (stream->capture != nullptr) {
    add_captured(*stream->capture, GraphNode{.type = CU_GRAPH_NODE_TYPE_KERNEL, .run = run});
    return CUDA_SUCCESS;
  }
  enqueue(*stream, run);
  return CUDA_SUCCESS;
}
}  // namespace

SIM_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                   CUstream stream, void** arguments, void**) {
  return launch("cuLaunchKernel", function, x, stream, arguments, false);
}
SIM_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned x, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                                        CUstream stream, void** arguments, void**) {
  return launch("cuLaunchKernel_ptsz", function, x, stream, arguments, true);
}
