#include "tools/report/gzip_stream.h"

#include <zlib.h>

#include <new>

namespace xlog::tools {

class GzipStream::Buffer : public std::streambuf {
 public:
  explicit Buffer(std::ostream& to) : to_(to) {
    constexpr int kLevel = 6;
    constexpr int kGzip = 15 + 16;  // the largest window, and gzip's header
    constexpr int kMemory = 8;
    if (deflateInit2(&state_, kLevel, Z_DEFLATED, kGzip, kMemory, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::bad_alloc();
    }
    setp(plain_, plain_ + sizeof plain_);
  }
  ~Buffer() override { deflateEnd(&state_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  bool compress(int flush) {
    state_.next_in = reinterpret_cast<Bytef*>(pbase());
    state_.avail_in = static_cast<uInt>(pptr() - pbase());
    do {
      state_.next_out = reinterpret_cast<Bytef*>(packed_);
      state_.avail_out = sizeof packed_;
      deflate(&state_, flush);
      to_.write(packed_, static_cast<std::streamsize>(sizeof packed_ - state_.avail_out));
    } while (state_.avail_out == 0);
    setp(plain_, plain_ + sizeof plain_);
    return to_.good();
  }

 protected:
  int_type overflow(int_type c) override {
    if (!compress(Z_NO_FLUSH)) {
      return traits_type::eof();
    }
    if (!traits_type::eq_int_type(c, traits_type::eof())) {
      sputc(traits_type::to_char_type(c));
    }
    return traits_type::not_eof(c);
  }

 private:
  std::ostream& to_;
  z_stream state_{};
  char plain_[1 << 16];
  char packed_[1 << 16];
};

GzipStream::GzipStream(std::ostream& to) : std::ostream(nullptr), buffer_(std::make_unique<Buffer>(to)) { rdbuf(buffer_.get()); }

GzipStream::~GzipStream() = default;

bool GzipStream::finish() { return buffer_->compress(Z_FINISH) && good(); }

}  // namespace xlog::tools
