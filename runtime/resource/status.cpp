#include "runtime/resource/status.h"

namespace xlog {

namespace {

// current + requested may need more than 64 bits.
void put_sum(TextSink& out, uint64_t a, uint64_t b) noexcept {
  unsigned __int128 sum = static_cast<unsigned __int128>(a) + b;
  constexpr uint64_t kTen19 = 10'000'000'000'000'000'000ULL;
  auto high = static_cast<uint64_t>(sum / kTen19);
  auto low = static_cast<uint64_t>(sum % kTen19);
  if (high != 0) {
    out.decimal(high).decimal(low, 19);
  } else {
    out.decimal(low);
  }
}

}  // namespace

std::string_view error_name(Error error) noexcept {
  switch (error) {
    case Error::none:
      return "ok";
    case Error::out_of_budget:
      return "OutOfBudget";
    case Error::driver:
      return "Driver";
    case Error::stream_misuse:
      return "StreamMisuse";
    case Error::use_after_free:
      return "UseAfterFree";
    case Error::out_of_bounds:
      return "OutOfBounds";
  }
  return "";
}

void put_status(TextSink& out, const Status& s) noexcept {
  switch (s.error) {
    case Error::none:
      out.put("ok");
      break;
    case Error::out_of_budget:
      out.put("out of budget: current ").decimal(s.current).put(" bytes, requested ").decimal(s.requested);
      out.put(" bytes, required ");
      put_sum(out, s.current, s.requested);
      out.put(" bytes, limit ").decimal(s.limit).put(" bytes, remaining ").decimal(s.remaining).put(" bytes");
      break;
    case Error::driver:
      out.put("CUDA driver error ").decimal(static_cast<uint64_t>(s.code)).put(": ").put(result_name(s.code));
      if (s.detail != nullptr) {
        out.put(" (").put(s.detail).put(')');
      }
      break;
    case Error::stream_misuse:
      out.put("stream-ordered contract violated: ").put(s.detail != nullptr ? s.detail : "unsupported");
      break;
    case Error::use_after_free:
      out.put("use-after-free on generation ").decimal(s.generation.value);
      break;
    case Error::out_of_bounds:
      out.put("out-of-bounds write on generation ").decimal(s.generation.value);
      break;
  }
}

std::string_view cut_text(std::string_view text, size_t limit) noexcept {
  if (text.size() <= limit) {
    return text;
  }
  size_t size = limit;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) {
    --size;
  }
  return text.substr(0, size);
}

void put_message(MessageText& out, const Status& status) noexcept {
  Text<kMostMessage * 2> whole;
  put_status(whole, status);
  std::string_view cut = cut_text(whole.view(), kMostMessage);
  out.put(cut);
  if (cut.size() < whole.size()) {
    out.put("\xE2\x80\xA6");
  }
}

}  // namespace xlog
