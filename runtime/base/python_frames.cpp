#include "runtime/base/python_frames.h"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/base/diagnostics.h"
#include "runtime/base/python_lines.h"

namespace xlog {

struct PythonLayout {
  unsigned minor;
  uint16_t thread_frame;
  uint16_t cframe_frame;
  uint16_t code;
  uint16_t previous;
  uint16_t instruction;
  uint16_t owner;
  uint16_t is_entry;
  uint16_t filename;
  uint16_t name;
  uint16_t firstlineno;
  uint16_t linetable;
  uint16_t instructions;
  uint16_t ascii;
  uint16_t compact;
  uint16_t says_frame;
  uint16_t says_previous;
  uint16_t says_linetable;
};

namespace {

constexpr uint16_t kAbsent = UINT16_MAX;
constexpr PythonLayout kLayouts[] = {
#define XLOG_PYTHON(...) {__VA_ARGS__},
#include "runtime/base/python_layouts.def"
#undef XLOG_PYTHON
};

// Heads of objects, the same in all of them.
constexpr size_t kType = 8;
constexpr size_t kSize = 16;   // of bytes and of text
constexpr size_t kBytes = 32;  // where they begin
constexpr size_t kTextState = 32;
constexpr int kOwnedByInterpreter = 3;

template <class T>
T at(const char* object, size_t offset) noexcept {
  T value;
  std::memcpy(&value, object + offset, sizeof value);
  return value;
}

bool read_with_care(const char* from, void* to, size_t bytes) noexcept {
  iovec local{to, bytes};
  iovec remote{const_cast<char*>(from), bytes};
  int saved = errno;
  ssize_t n = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
  errno = saved;
  return n == static_cast<ssize_t>(bytes);
}

// From 3.14 on two bits of the pointer to a frame's code say whether it is counted.
const char* code_at(const char* place) noexcept { return reinterpret_cast<const char*>(at<uintptr_t>(place, 0) & ~uintptr_t{3}); }

// What a newer version says of itself, in _PyRuntime. An older one that keeps a list of all objects has larger heads.
bool agrees(const PythonLayout& layout, const PythonApi& api) noexcept {
  if (layout.says_frame == 0) {
    return !api.traces_references;
  }
  const char* runtime = api.runtime;
  constexpr size_t kFreeThreaded = 2;
  auto word = [runtime](size_t index) { return at<uint64_t>(runtime, index * sizeof(uint64_t)); };
  return runtime != nullptr && std::memcmp(runtime, "xdebugpy", 8) == 0 && word(kFreeThreaded) == 0 &&
         word(layout.says_frame) == layout.thread_frame && word(layout.says_previous) == layout.previous &&
         word(layout.says_linetable) == layout.linetable;
}

const PythonLayout* layout_for(std::string_view version, const PythonApi& api) noexcept {
  unsigned minor = 0;
  if (!version.starts_with("3.")) {
    return nullptr;
  }
  for (size_t i = 2; i < version.size() && version[i] >= '0' && version[i] <= '9'; ++i) {
    minor = minor * 10 + static_cast<unsigned>(version[i] - '0');
  }
  for (const PythonLayout& each : kLayouts) {
    if (each.minor == minor && agrees(each, api)) {
      return &each;
    }
  }
  return nullptr;
}

const char* newest_frame(const PythonLayout& layout, const char* thread) noexcept {
  const char* found = at<const char*>(thread, layout.thread_frame);
  return layout.cframe_frame == kAbsent ? found : at<const char*>(found, layout.cframe_frame);
}

bool is_interpreters_own(const PythonLayout& layout, const char* frame) noexcept {
  return layout.minor >= 12 && at<char>(frame, layout.owner) >= kOwnedByInterpreter;
}

int instruction_of(const PythonLayout& layout, const char* frame, const char* code) noexcept {
  if (layout.minor <= 10) {
    return at<int>(frame, layout.instruction) * (layout.minor == 10 ? 2 : 1);
  }
  return static_cast<int>(at<const char*>(frame, layout.instruction) - (code + layout.instructions));
}

// A text object: one, two or four bytes a character, behind its head.
// A byte of a path that is no character stands in a Python text as a code point of its own.
void put_character(TextSink& out, uint32_t c) noexcept {
  if (c >= 0xdc80 && c <= 0xdcff) {
    out.put(static_cast<char>(c & 0xff));
  } else {
    put_code_point(out, c);
  }
}

void put_text(const PythonLayout& layout, const char* object, TextSink& out) noexcept {
  constexpr uint32_t kCompact = 1 << 5;
  constexpr uint32_t kAscii = 1 << 6;
  constexpr size_t kLongest = 4096;
  auto state = at<uint32_t>(object, kTextState);
  auto length = at<size_t>(object, kSize);
  length = length < kLongest ? length : kLongest;
  if ((state & kCompact) == 0) {
    return;
  }
  if ((state & kAscii) != 0) {
    out.put(std::string_view(object + layout.ascii, length));
    return;
  }
  unsigned width = state >> 2 & 7;
  for (size_t i = 0; i < length; ++i) {
    const char* character = object + layout.compact + i * width;
    put_character(out, width == 1 ? at<uint8_t>(character, 0) : width == 2 ? at<uint16_t>(character, 0) : at<uint32_t>(character, 0));
  }
}

}  // namespace

void PythonFrames::use(const PythonApi& api) noexcept {
  if (api.this_thread == nullptr || api.version == nullptr || api.code_type == nullptr) {
    return;
  }
  api_ = api;
  std::string_view version = api.version();
  const PythonLayout* layout = layout_for(version, api);
  if (layout == nullptr) {
    Text<160> line;
    line.put("Python ")
        .put(version.substr(0, version.find(' ')))
        .put(" is not a version whose frames are known: stacks have native frames only");
    say(line.view());
  }
  layout_.store(layout, std::memory_order_release);
}

// The first frames that are found: with care, so that an interpreter that was built in another way costs its frames only.
bool PythonFrames::looks_right(const char* thread) noexcept {
  const PythonLayout& layout = *layout_.load(std::memory_order_relaxed);
  const char* frame = nullptr;
  bool good = read_with_care(thread + layout.thread_frame, &frame, sizeof frame);
  if (good && layout.cframe_frame != kAbsent) {
    good = read_with_care(frame + layout.cframe_frame, &frame, sizeof frame);
  }
  size_t seen = 0;
  for (; good && frame != nullptr && seen < kMaxPythonDepth; ++seen) {
    char head[sizeof(uintptr_t)] = {};
    const char* type = nullptr;
    char owner = 0;
    good = read_with_care(frame + layout.code, head, sizeof head) &&
           (layout.owner == kAbsent || read_with_care(frame + layout.owner, &owner, sizeof owner));
    if (good && owner < kOwnedByInterpreter) {
      good = read_with_care(code_at(head) + kType, &type, sizeof type) && type == api_.code_type;
    }
    good = good && read_with_care(frame + layout.previous, &frame, sizeof frame);
  }
  if (!good) {
    say("this Python keeps its frames in another way than its version does: stacks have native frames only");
    layout_.store(nullptr, std::memory_order_release);
  } else if (seen != 0) {
    looked_.store(true, std::memory_order_release);
  }
  return good;
}

size_t PythonFrames::take(PythonFrame* out, size_t depth) noexcept {
  const PythonLayout* known = layout_.load(std::memory_order_acquire);
  const char* thread = known != nullptr ? static_cast<const char*>(api_.this_thread()) : nullptr;
  if (thread == nullptr || (!looked_.load(std::memory_order_acquire) && !looks_right(thread))) {
    return 0;
  }
  const PythonLayout& layout = *known;
  size_t count = 0;
  for (const char* frame = newest_frame(layout, thread); frame != nullptr && count < depth;
       frame = at<const char*>(frame, layout.previous)) {
    if (is_interpreters_own(layout, frame)) {  // it stands below the outermost frame of a native one
      if (count != 0) {
        out[count - 1].is_entry = true;
      }
      continue;
    }
    const char* code = code_at(frame + layout.code);
    if (code == nullptr || at<const char*>(code, kType) != api_.code_type) {
      break;
    }
    int where = instruction_of(layout, frame, code);
    bool entry = layout.minor <= 10 || (layout.is_entry != kAbsent && at<char>(frame, layout.is_entry) != 0);
    if (where >= 0) {  // else it has not begun
      out[count++] = {.code = code, .at = where, .is_entry = entry};
    }
  }
  return count;
}

uint64_t PythonFrames::identity(const PythonFrame& frame) const noexcept {
  const PythonLayout* layout = layout_.load(std::memory_order_relaxed);
  auto pointer = [&](size_t offset) { return layout != nullptr ? at<uint64_t>(frame.code, offset) : 0; };
  uint64_t name = pointer(layout != nullptr ? layout->name : 0);
  uint64_t file = pointer(layout != nullptr ? layout->filename : 0);
  return reinterpret_cast<uint64_t>(frame.code) + (name << 17 | name >> 47) + (file << 34 | file >> 30) + static_cast<uint64_t>(frame.at);
}

void PythonFrames::describe(const PythonFrame& frame, TextSink& function, TextSink& file, uint32_t& line) const noexcept {
  const PythonLayout* layout = layout_.load(std::memory_order_acquire);
  if (layout == nullptr) {
    return;
  }
  put_text(*layout, at<const char*>(frame.code, layout->name), function);
  put_text(*layout, at<const char*>(frame.code, layout->filename), file);
  const auto* table = at<const char*>(frame.code, layout->linetable);
  std::span<const uint8_t> bytes(reinterpret_cast<const uint8_t*>(table + kBytes), at<size_t>(table, kSize));
  line = python_line(layout->minor, bytes, at<int>(frame.code, layout->firstlineno), frame.at);
}

}  // namespace xlog
