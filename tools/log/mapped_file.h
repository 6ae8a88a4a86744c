// A file's bytes, mapped.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace xlog {

// Empty when it cannot be read (`error` says why). Must not be truncated by others meanwhile.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  [[nodiscard]] std::string_view text() const { return {data_, size_}; }
  [[nodiscard]] const std::string& error() const { return error_; }
  // Tells the kernel that the bytes before `offset` will not be read again.
  void forget_before(size_t offset);

 private:
  const char* data_ = nullptr;
  size_t size_ = 0;
  size_t forgotten_ = 0;
  std::string error_;
};

}  // namespace xlog
