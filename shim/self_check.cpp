#include "shim/self_check.h"

#include "runtime/base/diagnostics.h"
#include "runtime/base/start_environment.h"
#include "runtime/base/text.h"
#include "runtime/driver_use.h"
#include "shim/elf_symbols.h"
#include "shim/real_calls.h"

namespace xlog {

namespace {

using Resolve = CUresult(CUDAAPI*)(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

// The name that the resolver knows: without version and stream suffixes.
bool split_name(std::string_view name, TextSink& base, cuuint64_t& flags) noexcept {
  flags = CU_GET_PROC_ADDRESS_LEGACY_STREAM;
  if (name.ends_with("_ptsz") || name.ends_with("_ptds")) {
    name.remove_suffix(5);
    flags = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  }
  if (name.ends_with("_v2")) {
    name.remove_suffix(3);
  }
  base.put(name).put('\0');
  return !base.full();
}

void complain(const char* name, std::string_view what) noexcept {
  Text<200> line;
  line.put(name).put(": ").put(what);
  say(line.view());
}

// What makes memory and is defined in this file; Row::count when nothing is.
Row maker_in(const LoadedFile& file) noexcept {
  for (size_t i = 0; i < kRows; ++i) {
    Row row = static_cast<Row>(i);
    if (UnhookedNames::makes_memory(row_name(row)) && file.find(row_name(row)) != nullptr) {
      return row;
    }
  }
  return Row::count;
}

}  // namespace

void check_front() noexcept {
  LoadedFile front = find_file(
      [](const LoadedFile& each, const void*) { return each.is_ours() || (!each.imports("dlsym") && maker_in(each) != Row::count); },
      nullptr);
  if (!front || front.is_ours()) {
    return;
  }
  Text<400> line;
  const char* file = last_component(front.info().dlpi_name);
  line.put("the limit does not hold: ").put(row_name(maker_in(front))).put(" of ");
  line.put(*file != '\0' ? file : "the program itself").put(" comes before this library's, so that calls do not arrive here");
  say(line.view());
}

void second_driver_handed_out() noexcept {
  static constinit Once once;
  const char* limit = start_environment.value("XLOG_BUDGET");
  if (limit != nullptr && *limit != '\0' && once.first()) {
    say("the limit does not hold for a second driver (libcuda.so) that the program opened beside the one in use");
  }
}

void check_routes() noexcept {
  auto resolve = reinterpret_cast<Resolve>(driver_of(Row::cuGetProcAddress_v2));
  DriverApi driver;
  int version = 0;
  if (resolve == nullptr || !fill_driver_api(driver) || driver.cuDriverGetVersion(&version) != CUDA_SUCCESS) {
    return;  // a driver before CUDA 12: its exports are all there is
  }
  for (size_t i = 0; i < kRows; ++i) {
    Row row = static_cast<Row>(i);
    Text<80> base;
    cuuint64_t flags = 0;
    void* found = nullptr;
    // Of cuCtxCreate only the first is of interest, which no newer version is a form of.
    if (row == Row::cuGetProcAddress || row == Row::cuCtxCreate || !split_name(row_name(row), base, flags)) {
      continue;
    }
    if (resolve(base.data(), &found, version, flags, nullptr) == CUDA_SUCCESS && found != nullptr && entry_for(found) == found) {
      complain(row_name(row), "the driver hands it out at an address that is not covered; calls through it are not seen");
    }
    for (size_t k = 0; k < i && driver_of(row) != nullptr; ++k) {
      if (driver_of(row) == driver_of(static_cast<Row>(k))) {
        complain(row_name(row), "the driver has it at the address of another listed function");
      }
    }
  }
}

}  // namespace xlog
