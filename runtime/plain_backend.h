// Which source serves the plain calls of a GPU, decided once at its first use: what XLOG_BACKEND asks for, as far as the
// driver, the device and the libraries of the program allow it.
#pragma once

#include "runtime/base/driver_api.h"
#include "runtime/base/options.h"
#include "runtime/device_facts.h"
#include "runtime/resource/plain_source.h"

namespace xlog {

// Maker::driver: none, each call is the driver's. Says so once where that is not what was asked for.
Maker plain_maker(const DriverApi& driver, const Options& options, int ordinal) noexcept;

PlainSettings plain_settings(const Options& options, const DeviceFacts& facts) noexcept;

}  // namespace xlog
