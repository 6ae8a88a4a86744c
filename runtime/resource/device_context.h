// The primary context of a device, held for as long as this lives, and made current for the length of a driver call:
// the resources of a C++ program work on any of its threads.
#pragma once

#include "runtime/resource/status.h"

namespace xlog {

class DeviceContext {
 public:
  // Initialises the driver and retains the context; status() says whether that went well.
  DeviceContext(const DriverApi& driver, int ordinal) noexcept;
  ~DeviceContext();
  DeviceContext(const DeviceContext&) = delete;
  DeviceContext& operator=(const DeviceContext&) = delete;

  [[nodiscard]] const Status& status() const noexcept { return status_; }
  [[nodiscard]] const DriverApi& driver() const noexcept { return driver_; }
  [[nodiscard]] int ordinal() const noexcept { return ordinal_; }
  [[nodiscard]] CUcontext handle() const noexcept { return context_; }
  // The device has stream-ordered memory.
  [[nodiscard]] bool supports_pools() const noexcept;

  // Current while it lives. Costs one cheap call where the context is current already.
  class Scope {
   public:
    explicit Scope(const DeviceContext& context) noexcept;
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const DriverApi& driver_;
    bool pushed_;
  };

 private:
  const DriverApi& driver_;
  const int ordinal_;
  CUcontext context_ = nullptr;
  Status status_;
};

}  // namespace xlog
