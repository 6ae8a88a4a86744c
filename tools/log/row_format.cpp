#include "tools/log/row_format.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

namespace xlog {

namespace {

constexpr std::string_view kRmmKind = "rmm";
constexpr std::string_view kRmmFailure = "rmm::bad_alloc";

constexpr size_t kAtOnce = 8;  // digits: most of a row is numbers
constexpr uint64_t kTenTo[kAtOnce + 1] = {1, 10, 100, 1000, 10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};

// `text` is in the order of memory, on a machine that puts the low byte first. False where one is no digit.
bool eight_digits(uint64_t text, uint64_t& value) {
  if ((text & 0xF0F0F0F0F0F0F0F0) != 0x3030303030303030 || ((text + 0x0606060606060606) & 0xF0F0F0F0F0F0F0F0) != 0x3030303030303030) {
    return false;
  }
  text = (text & 0x0F0F0F0F0F0F0F0F) * 2561 >> 8;
  text = (text & 0x00FF00FF00FF00FF) * 6553601 >> 16;
  value = (text & 0x0000FFFF0000FFFF) * 42949672960001 >> 32;
  return true;
}

template <class Word>
uint64_t load(const char* at) {
  Word word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// One to seven characters, with zeros before them, as eight; no byte beside them is read.
[[gnu::always_inline]] inline uint64_t padded(const char* at, size_t size) {
  uint64_t text = 0;
  if (size >= 4) {
    text = load<uint32_t>(at) | load<uint32_t>(at + size - 4) << 8 * (size - 4);
  } else {
    text = load<uint8_t>(at) | load<uint8_t>(at + size / 2) << 8 * (size / 2) | load<uint8_t>(at + size - 1) << 8 * (size - 1);
  }
  return text << 8 * (kAtOnce - size) | 0x3030303030303030 >> 8 * size;
}

// Kept out of the way of those that are short enough.
[[gnu::noinline]] uint64_t long_number(std::string_view text) { return parse_decimal(text).value_or(kNone); }

// kNone where it is empty or no number.
uint64_t number(std::string_view text) {
  constexpr size_t kSafe = 19;  // so many digits fit in 64 bits
  const char* at = text.data();
  size_t left = text.size();
  uint64_t value = 0;
  if (left == 0) {
    return kNone;
  }
  if (left < kAtOnce) {
    return eight_digits(padded(at, left), value) ? value : kNone;
  }
  if (left > kSafe) {
    return long_number(text);
  }
  for (; left >= kAtOnce; at += kAtOnce, left -= kAtOnce) {
    uint64_t next = 0;
    if (!eight_digits(load<uint64_t>(at), next)) {
      return kNone;
    }
    value = value * kTenTo[kAtOnce] + next;
  }
  if (left != 0) {
    uint64_t rest = 0;
    if (!eight_digits(padded(at, left), rest)) {
      return kNone;
    }
    value = value * kTenTo[left] + rest;
  }
  return value;
}

struct HexDigits {
  int8_t value[256];
  constexpr HexDigits() : value() {
    for (auto& each : value) {
      each = -1;
    }
    for (int i = 0; i < 10; ++i) {
      value['0' + i] = static_cast<int8_t>(i);
    }
    for (int i = 0; i < 6; ++i) {
      value['a' + i] = value['A' + i] = static_cast<int8_t>(10 + i);
    }
  }
};
constexpr HexDigits kHex;

uint64_t hex(std::string_view text) {
  if (text.size() < 3 || text.size() > 18 || text[0] != '0' || text[1] != 'x') {
    return kNone;
  }
  uint64_t value = 0;
  for (size_t i = 2; i < text.size(); ++i) {
    int8_t digit = kHex.value[static_cast<unsigned char>(text[i])];
    if (digit < 0) {
      return kNone;
    }
    value = value << 4 | static_cast<uint64_t>(digit);
  }
  return value;
}

// RMM prints a stream as 0x..., as decimal, or as hexadecimal digits alone.
uint64_t rmm_stream(std::string_view text) {
  uint64_t prefixed = hex(text);
  return prefixed != kNone ? prefixed : number(text);
}

// Seconds with a fraction, as ns; a fraction may have any length.
uint64_t seconds(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool good = error == std::errc() && end == text.data() + text.size() && value >= 0 && value < 1e9;
  return good ? static_cast<uint64_t>(std::llround(value * 1e9)) : kNone;
}

// HH:MM:SS.ffffff, or with a colon before the fraction (before April 2021).
uint64_t time_of_day(std::string_view text) {
  constexpr size_t kShape = 15;
  if (text.size() != kShape || text[2] != ':' || text[5] != ':' || (text[8] != '.' && text[8] != ':')) {
    return kNone;
  }
  uint64_t hours = number(text.substr(0, 2));
  uint64_t minutes = number(text.substr(3, 2));
  uint64_t whole = number(text.substr(6, 2));
  uint64_t micros = number(text.substr(9));
  bool good = hours < 24 && minutes < 60 && whole <= 60 && micros < 1'000'000;
  return good ? ((hours * 60 + minutes) * 60 + whole) * 1'000'000'000 + micros * 1000 : kNone;
}

// Columns have the names of an Event's members.
template <auto kMember>
void put(std::string_view text, Event& out) {
  if constexpr (std::is_same_v<decltype(kMember), std::string_view Event::*>) {
    out.*kMember = text;
  } else if constexpr (kMember == &Event::ptr || kMember == &Event::stream) {
    out.*kMember = hex(text);
  } else {
    out.*kMember = number(text);
  }
}

using Put = void (*)(std::string_view, Event&);
constexpr Put kPut[kColumnCount] = {
#define XLOG_COLUMN(name) put<&Event::name>,
#include "runtime/record/columns.def"
#undef XLOG_COLUMN
};

// Of a header as we write it: no field is asked which one it is.
void put_all(const std::string_view* fields, Event& out) {
#define XLOG_COLUMN(name) put<&Event::name>(*fields++, out);
#include "runtime/record/columns.def"
#undef XLOG_COLUMN
}

}  // namespace

RowFormat::RowFormat(std::string_view header, uint64_t device) : device_(device) {
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // what an editor or a spreadsheet may have put before UTF-8
  if (header.starts_with(kByteOrderMark)) {
    header.remove_prefix(kByteOrderMark.size());
  } else if (header.starts_with("\xff\xfe") || header.starts_with("\xfe\xff")) {
    error_ = "not an xlog log: it was saved as UTF-16; save it as UTF-8";
    return;
  }
  if (header.ends_with('\r')) {
    header.remove_suffix(1);
  }
  CsvLine line;
  if (header.empty() || !line.split(header)) {
    error_ = "not an xlog log: the first line is not its header";
    return;
  }
  columns_.assign(line.size(), -1);
  if (!read_rmm(line)) {
    read_own(line);
    std::vector<int8_t> ours(kColumnCount);
    std::iota(ours.begin(), ours.end(), 0);
    in_order_ = columns_ == ours;
  }
}

void RowFormat::read_own(const CsvLine& header) {
  bool found[kColumnCount] = {};
  for (size_t i = 0; i < header.size(); ++i) {
    for (size_t k = 0; k < kColumnCount; ++k) {
      if (header[i] == kColumns[k]) {
        columns_[i] = static_cast<int8_t>(k);
        found[k] = true;
      }
    }
  }
  bool any = found[static_cast<size_t>(Column::action)] || found[static_cast<size_t>(Column::ptr)];
  for (Column needed : {Column::thread, Column::time, Column::action, Column::ptr, Column::bytes}) {
    if (!found[static_cast<size_t>(needed)] && error_.empty()) {
      error_ = any ? "not an xlog log: the header has no column \"" + std::string(kColumns[static_cast<size_t>(needed)]) + "\""
                   : "not an xlog log: the first line is not its header";
    }
  }
}

bool RowFormat::read_rmm(const CsvLine& header) {
  auto place = [&](std::string_view name) {
    for (size_t i = 0; i < header.size(); ++i) {
      if (header[i] == name) {
        return static_cast<int>(i);
      }
    }
    return -1;
  };
  if (place("Action") >= 0 && place("Pointer") >= 0 && place("Size") >= 0 && place("Time") >= 0) {
    dialect_ = Dialect::rmm;
    rmm_ = {.thread = place("Thread"),
            .time = place("Time"),
            .action = place("Action"),
            .pointer = place("Pointer"),
            .size = place("Size"),
            .stream = place("Stream")};
    return true;
  }
  if (place("Event Type") >= 0 && place("Address") >= 0 && place("Size (bytes)") >= 0 && place("Start") >= 0) {
    dialect_ = Dialect::rmm_events;
    rmm_ = {.thread = -1,
            .time = place("Start"),
            .action = place("Event Type"),
            .pointer = place("Address"),
            .size = place("Size (bytes)"),
            .stream = place("Stream"),
            .device = place("Device ID"),
            .elapsed = place("Elapsed"),
            .location = place("Location")};
    return true;
  }
  return false;
}

bool RowFormat::fill(const std::string_view* fields, size_t count, Event& out) const {
  if (count != columns_.size()) {
    return false;
  }
  return dialect_ == Dialect::xlog ? fill_own(fields, count, out) : fill_rmm(fields, out);
}

bool RowFormat::fill_own(const std::string_view* fields, size_t count, Event& out) const {
  if (in_order_) {
    put_all(fields, out);
  } else {
    out = Event();
    out.thread = kNone;
    out.time = kNone;
    for (size_t i = 0; i < count; ++i) {
      if (columns_[i] >= 0) {
        kPut[columns_[i]](fields[i], out);
      }
    }
  }
  return !out.action.empty() && out.time != kNone && out.thread != kNone;
}

bool RowFormat::fill_rmm(const std::string_view* fields, Event& out) const {
  auto text = [fields](int at) { return at >= 0 ? fields[at] : std::string_view(); };
  std::string_view what = text(rmm_.action);
  out = Event();
  out.time = dialect_ == Dialect::rmm ? time_of_day(text(rmm_.time)) : seconds(text(rmm_.time));
  out.thread = rmm_.thread >= 0 ? number(text(rmm_.thread)) : 0;
  out.bytes = number(text(rmm_.size));
  out.ptr = hex(text(rmm_.pointer));  // kNone of a null pointer, 0x0 or (nil)
  out.stream = rmm_stream(text(rmm_.stream));
  out.device = rmm_.device >= 0 ? number(text(rmm_.device)) : device_;
  out.tag = text(rmm_.location);
  out.kind = kRmmKind;
  out.result = "ok";
  uint64_t elapsed = rmm_.elapsed >= 0 ? seconds(text(rmm_.elapsed)) : kNone;
  out.elapsed_ns = elapsed;
  if (what == "allocate" || what == "Alloc") {
    out.action = action::allocate;
  } else if (what == "free" || what == "Free") {
    out.action = action::deallocate;
  } else if (what == "allocate failure") {
    out.action = action::allocate;
    out.result = kRmmFailure;
  } else {
    return false;
  }
  if (out.result == "ok" && (out.ptr == 0 || out.ptr == kNone)) {  // of no bytes: nothing was made, nothing ends
    out.action = action::reap_pending;
    out.elapsed_ns = kNone;
  }
  return out.time != kNone && out.thread != kNone && out.bytes != kNone;
}

}  // namespace xlog
