// NAME.run.json, and what the driver says of a device.
#include <errno.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <span>

#include "runtime/base/command_line.h"
#include "runtime/base/driver_api.h"
#include "runtime/base/memory_map.h"
#include "runtime/base/start_environment.h"
#include "runtime/base/thread.h"
#include "runtime/record/event.h"
#include "runtime/record/json_text.h"
#include "runtime/run_info.h"

namespace xlog {

namespace {

void put_key(TextSink& out, std::string_view key) noexcept {
  out.put(",\n ");
  put_json_string(out, key);
  out.put(": ");
}

void put_arguments(TextSink& out) noexcept {
  std::string_view between;
  out.put('[');
  each_argument([&](std::string_view word) noexcept {
    out.put(between);
    put_json_string(out, word);
    between = ", ";
  });
  out.put(']');
}

// Whether a framework caches device memory, so that a report does not take its cache for the user of the memory.
constexpr std::string_view kFrameworkVariables[] = {"PYTORCH_NO_CUDA_MEMORY_CACHING", "PYTORCH_CUDA_ALLOC_CONF",
                                                    "XLA_PYTHON_CLIENT_ALLOCATOR", "XLA_PYTHON_CLIENT_PREALLOCATE", "CUDA_VISIBLE_DEVICES",
                                                    // Which `xlog run` it belongs to; of nested ones all, the outer first.
                                                    "XLOG_RUN"};

// An object of those that are set.
void put_variables(TextSink& out, std::span<const std::string_view> names) noexcept {
  out.put('{');
  bool first = true;
  for (std::string_view name : names) {
    const char* value = name.starts_with("XLOG_") ? start_environment.value(name.data()) : secure_getenv(name.data());
    if (value != nullptr) {
      out.put(first ? "" : ", ");
      put_json_string(out, name);
      out.put(": ");
      put_json_string(out, value);
      first = false;
    }
  }
  out.put('}');
}

void put_uuid(const CUuuid& uuid, TextSink& out) noexcept {
  out.put("GPU-");
  for (int i = 0; i < 16; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) {
      out.put('-');
    }
    out.hex(static_cast<unsigned char>(uuid.bytes[i]), 2);
  }
}

}  // namespace

bool read_device_facts(const DriverApi& driver, const Options& options, int ordinal, DeviceFacts& out) noexcept {
  size_t total = 0;
  if (driver.cuDeviceTotalMem_v2 == nullptr || driver.cuDeviceTotalMem_v2(&total, ordinal) != CUDA_SUCCESS) {
    return false;
  }
  out.total_bytes = total;
  if (driver.cuDeviceGetName == nullptr || driver.cuDeviceGetName(out.name, sizeof out.name, ordinal) != CUDA_SUCCESS) {
    out.name[0] = '\0';
  }
  CUuuid uuid{};
  if (driver.cuDeviceGetUuid_v2 != nullptr && driver.cuDeviceGetUuid_v2(&uuid, ordinal) == CUDA_SUCCESS) {
    TextSink text(out.uuid, sizeof out.uuid - 1);
    put_uuid(uuid, text);
  }
  out.limit = options.budget.limit(static_cast<uint32_t>(ordinal), out.uuid, total);
  return true;
}

void put_run_info(TextSink& out, const DriverApi& driver, const Options& options, std::string_view folder) noexcept {
  utsname host{};
  uname(&host);
  int driver_version = 0;
  if (driver.cuDriverGetVersion != nullptr) {
    driver.cuDriverGetVersion(&driver_version);
  }
  out.put("{\"format\": ").decimal(kFormatVersion);
  put_key(out, "program");
  char exe[1024];
  ssize_t n = readlink("/proc/self/exe", exe, sizeof exe);
  put_json_string(out, {exe, n > 0 ? static_cast<size_t>(n) : 0});
  put_key(out, "arguments");
  put_arguments(out);
  put_key(out, "pid");
  out.decimal(static_cast<uint64_t>(getpid()));
  put_key(out, "parent");
  out.decimal(static_cast<uint64_t>(getppid()));
  put_key(out, "folder");
  put_json_string(out, folder);
  put_key(out, "host");
  put_json_string(out, host.nodename);
  put_key(out, "start_ns");
  out.decimal(wall_time(steady_time()));
  put_key(out, "driver_version");
  out.decimal(static_cast<uint64_t>(driver_version));
  put_key(out, "gpus");
  out.put('[');
  int count = 0;
  if (driver.cuDeviceGetCount == nullptr || driver.cuDeviceGetCount(&count) != CUDA_SUCCESS) {
    count = 0;
  }
  for (int i = 0; i < count; ++i) {
    DeviceFacts facts;
    if (read_device_facts(driver, options, i, facts)) {
      out.put(i == 0 ? "" : ",\n  ").put("{\"ordinal\": ").decimal(static_cast<uint64_t>(i)).put(", \"uuid\": ");
      put_json_string(out, facts.uuid);
      out.put(", \"name\": ");
      put_json_string(out, facts.name);
      out.put(", \"total_bytes\": ").decimal(facts.total_bytes).put(", \"limit_bytes\": ");
      if (facts.limit != UINT64_MAX) {
        out.decimal(facts.limit);
      } else {
        out.put("null");
      }
      out.put('}');
    }
  }
  out.put(']');
  put_key(out, "options");
  std::string_view names[sizeof kOptions / sizeof kOptions[0]];
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    names[i] = kOptions[i].name;
  }
  put_variables(out, names);
  put_key(out, "environment");
  put_variables(out, kFrameworkVariables);
  out.put("}\n");
}

}  // namespace xlog
