// An event as a row of RFC 4180: quoted where needed, one line, control characters and bytes that are not UTF-8 as \xNN.
#pragma once

#include "runtime/base/text.h"
#include "runtime/record/event.h"

namespace xlog {

inline constexpr unsigned kHeldDigits = 12;  // of elapsed_ns in a row whose place is claimed before the call: 16 minutes

// A row in two parts, around `seq`: that number is claimed together with the row's place, when both parts are ready.
using RowHead = Text<1280>;
using RowTail = Text<1600>;
inline constexpr size_t kLongestRow = 3072;
void put_row_head(TextSink& out, const Event& event) noexcept;
// With its newline. `min_elapsed_digits` pads elapsed_ns with zeros, for a row whose length must be known before its
// duration is; where they stand goes to `elapsed_at`.
void put_row_tail(TextSink& out, const Event& event, unsigned min_elapsed_digits = 1, uint32_t* elapsed_at = nullptr) noexcept;

void put_header(TextSink& out) noexcept;

// One field, escaped and quoted as needed: at most `limit` bytes of `text`, and at most twice as many as they are written, so
// that a row always fits its buffer.
void put_field(TextSink& out, std::string_view text, size_t limit = 256) noexcept;

// One field with all of `text`, so that it can be read back byte by byte: control characters, bytes that are not UTF-8 and
// backslashes as \xNN. Takes up to four times its size, and two quotes.
void put_whole_field(TextSink& out, std::string_view text) noexcept;

// Length of the UTF-8 sequence at `text[i]`, or 0 when it is not one.
size_t utf8_length(std::string_view text, size_t i) noexcept;

}  // namespace xlog
