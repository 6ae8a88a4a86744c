// What a run is: the object that becomes NAME.run.json.
#pragma once

#include "runtime/base/cuda_types.h"
#include "runtime/base/options.h"
#include "runtime/base/text.h"
#include "runtime/device_facts.h"

namespace xlog {

// False when the driver does not know the ordinal.
bool read_device_facts(const DriverApi& driver, const Options& options, int ordinal, DeviceFacts& out) noexcept;

// Valid UTF-8 JSON: program, arguments, host, driver, GPUs, options and environment. `folder`: the
// one that relative paths start from.
void put_run_info(TextSink& out, const DriverApi& driver, const Options& options, std::string_view folder) noexcept;

}  // namespace xlog
