// The thread in the relaxed capture mode while it lives: calls of ours that a capture forbids by default (a query, a wait,
// an allocation on a private stream) are then neither refused nor do they lose a capture, whoever captures
// (tests/gpu/captures.expected). The program's own mode comes back.
#pragma once

#include "runtime/base/ask.h"
#include "runtime/base/driver_api.h"

namespace xlog {

class RelaxedCapture {
 public:
  explicit RelaxedCapture(const DriverApi& driver) noexcept : driver_(driver) { exchange(); }
  ~RelaxedCapture() { exchange(); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  void exchange() noexcept {
    if (driver_.cuThreadExchangeStreamCaptureMode != nullptr) {
      ask_twice([&] { return driver_.cuThreadExchangeStreamCaptureMode(&mode_); });
    }
  }
  const DriverApi& driver_;
  CUstreamCaptureMode mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

}  // namespace xlog
