// What is written here goes to another stream as gzip.
#pragma once

#include <memory>
#include <ostream>
#include <streambuf>

namespace xlog::tools {

class GzipStream : public std::ostream {
 public:
  explicit GzipStream(std::ostream& to);
  ~GzipStream() override;
  GzipStream(const GzipStream&) = delete;
  GzipStream& operator=(const GzipStream&) = delete;
  // Writes what is left, and the end of the form. False when the other stream could not take all.
  bool finish();

 private:
  class Buffer;
  std::unique_ptr<Buffer> buffer_;
};

}  // namespace xlog::tools
