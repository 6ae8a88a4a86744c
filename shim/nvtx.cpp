// NVTX: the program's ranges become tags. NVTX calls this in the library that NVTX_INJECTION64_PATH names, at the
// program's first range. What a profiler injects is named by the same variable, so there is one of us.
#define NVTX_NO_IMPL
#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>

#include "runtime/base/start_environment.h"
#include "runtime/base/text.h"
#include "runtime/base/thread_tags.h"
#include "shim/elf_symbols.h"
#include "shim/entry.h"

namespace xlog {

namespace {

using NameText = Text<kLongestName>;

void put_wide(TextSink& out, const wchar_t* text) noexcept {
  for (; text != nullptr && *text != 0 && out.size() + 4 <= kLongestName; ++text) {
    put_code_point(out, static_cast<uint32_t>(*text));
  }
}

void put_narrow(TextSink& out, const char* text) noexcept {
  if (text != nullptr) {
    out.put(text);
  }
}

// A registered string is its text, which we keep.
struct Registered {
  char text[kLongestName];
  uint32_t size;
};

nvtxStringHandle_t register_name(const NameText& name) noexcept {
  static constinit Lock lock{};
  static constinit char* page = nullptr;
  static constinit size_t left = 0;
  constexpr size_t kPage = 64 << 10;
  LockGuard guard(lock);
  if (left < sizeof(Registered)) {
    page = static_cast<char*>(map_kept(kPage));
    left = page != nullptr ? kPage : 0;
  }
  if (page == nullptr) {
    return nullptr;
  }
  auto* made = reinterpret_cast<Registered*>(page);
  page += sizeof(Registered);
  left -= sizeof(Registered);
  std::memcpy(made->text, name.view().data(), name.size());
  made->size = static_cast<uint32_t>(name.size());
  return reinterpret_cast<nvtxStringHandle_t>(made);
}

void put_message(TextSink& out, const nvtxEventAttributes_t& event) noexcept {
  const nvtxMessageValue_t& message = event.message;
  switch (event.messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      put_narrow(out, message.ascii);
      break;
    case NVTX_MESSAGE_TYPE_UNICODE:
      put_wide(out, message.unicode);
      break;
    case NVTX_MESSAGE_TYPE_REGISTERED:
      if (const auto* known = reinterpret_cast<const Registered*>(message.registered); known != nullptr) {
        out.put(std::string_view(known->text, known->size));
      }
      break;
    default:
      break;
  }
}

void put_payload(TextSink& out, const nvtxEventAttributes_t& event) noexcept {
  auto put_signed = [&out](int64_t value) {
    if (value < 0) {
      out.put('-');
    }
    out.decimal(value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value));
  };
  switch (event.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      out.decimal(event.payload.ullValue);
      break;
    case NVTX_PAYLOAD_TYPE_INT64:
      put_signed(event.payload.llValue);
      break;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      out.decimal(event.payload.uiValue);
      break;
    case NVTX_PAYLOAD_TYPE_INT32:
      put_signed(event.payload.iValue);
      break;
    default:
      break;
  }
}

struct RangeText {
  NameText name;
  Text<24> query_id;
  explicit RangeText(const nvtxEventAttributes_t* event) noexcept {
    if (event != nullptr) {
      put_message(name, *event);
      put_payload(query_id, *event);
    }
  }
};

constexpr int kNoTracking = NVTX_NO_PUSH_POP_TRACKING;

int push(TagDomain domain, std::string_view name, std::string_view query_id) noexcept {
  ReentryGuard guard;
  int level = ReentryGuard::nested() ? -1 : push_tag(domain, name, query_id);
  return level >= 0 ? level : kNoTracking;
}
int pop(TagDomain domain) noexcept {
  ReentryGuard guard;
  int level = ReentryGuard::nested() ? -1 : pop_tag(domain);
  return level >= 0 ? level : kNoTracking;
}
nvtxRangeId_t start(std::string_view name, std::string_view query_id) noexcept {
  ReentryGuard guard;
  return ReentryGuard::nested() ? 0 : start_tag(name, query_id);
}
void end(nvtxRangeId_t id) noexcept {
  ReentryGuard guard;
  if (!ReentryGuard::nested()) {
    end_tag(id);
  }
}

// The default domain is not 0, which is that of our own functions.
constexpr TagDomain kDefaultDomain = 1;
TagDomain domain_of(nvtxDomainHandle_t handle) noexcept { return handle != nullptr ? reinterpret_cast<TagDomain>(handle) : kDefaultDomain; }

int push_narrow(const char* text) { return push(kDefaultDomain, text != nullptr ? text : "", {}); }
int push_wide(const wchar_t* text) {
  NameText name;
  put_wide(name, text);
  return push(kDefaultDomain, name.view(), {});
}
int push_event(const nvtxEventAttributes_t* event) {
  RangeText text(event);
  return push(kDefaultDomain, text.name.view(), text.query_id.view());
}
int pop_default() { return pop(kDefaultDomain); }
nvtxRangeId_t start_narrow(const char* text) { return start(text != nullptr ? text : "", {}); }
nvtxRangeId_t start_wide(const wchar_t* text) {
  NameText name;
  put_wide(name, text);
  return start(name.view(), {});
}
nvtxRangeId_t start_event(const nvtxEventAttributes_t* event) {
  RangeText text(event);
  return start(text.name.view(), text.query_id.view());
}
void end_any(nvtxRangeId_t id) { end(id); }

int domain_push(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) {
  RangeText text(event);
  return push(domain_of(domain), text.name.view(), text.query_id.view());
}
int domain_pop(nvtxDomainHandle_t domain) { return pop(domain_of(domain)); }
nvtxRangeId_t domain_start(nvtxDomainHandle_t, const nvtxEventAttributes_t* event) { return start_event(event); }
void domain_end(nvtxDomainHandle_t, nvtxRangeId_t id) { end(id); }

nvtxStringHandle_t register_narrow(nvtxDomainHandle_t, const char* text) {
  NameText name;
  put_narrow(name, text);
  return register_name(name);
}
nvtxStringHandle_t register_wide(nvtxDomainHandle_t, const wchar_t* text) {
  NameText name;
  put_wide(name, text);
  return register_name(name);
}
// A domain needs a handle of its own and nothing else of us; its name is not part of a tag.
nvtxDomainHandle_t create_domain() noexcept { return reinterpret_cast<nvtxDomainHandle_t>(register_name({})); }
nvtxDomainHandle_t create_domain_narrow(const char*) { return create_domain(); }
nvtxDomainHandle_t create_domain_wide(const wchar_t*) { return create_domain(); }

struct Callback {
  NvtxCallbackModule module;
  unsigned id;
  void* function;
};

bool set_callbacks(const NvtxExportTableCallbacks& callbacks) noexcept {
  const Callback all[] = {
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushA, reinterpret_cast<void*>(push_narrow)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushW, reinterpret_cast<void*>(push_wide)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePushEx, reinterpret_cast<void*>(push_event)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangePop, reinterpret_cast<void*>(pop_default)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartA, reinterpret_cast<void*>(start_narrow)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartW, reinterpret_cast<void*>(start_wide)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeStartEx, reinterpret_cast<void*>(start_event)},
      {NVTX_CB_MODULE_CORE, NVTX_CBID_CORE_RangeEnd, reinterpret_cast<void*>(end_any)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePushEx, reinterpret_cast<void*>(domain_push)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangePop, reinterpret_cast<void*>(domain_pop)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeStartEx, reinterpret_cast<void*>(domain_start)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRangeEnd, reinterpret_cast<void*>(domain_end)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringA, reinterpret_cast<void*>(register_narrow)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainRegisterStringW, reinterpret_cast<void*>(register_wide)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateA, reinterpret_cast<void*>(create_domain_narrow)},
      {NVTX_CB_MODULE_CORE2, NVTX_CBID_CORE2_DomainCreateW, reinterpret_cast<void*>(create_domain_wide)},
  };
  for (const Callback& each : all) {
    NvtxFunctionTable table = nullptr;
    unsigned size = 0;
    if (callbacks.GetModuleFunctionTable(each.module, &table, &size) == 0 || table == nullptr) {
      return false;
    }
    if (each.id < size) {
      *table[each.id] = reinterpret_cast<NvtxFunctionPointer>(each.function);
    }
  }
  return true;
}

// NVTX in a process that only inherited the variable has loaded us itself: behind the C library.
bool are_preloaded() noexcept {
  LoadedFile first = find_file([](const LoadedFile& file, const void*) { return file.is_ours() || file.is_named("libc.so."); }, nullptr);
  return first.is_ours();
}

}  // namespace

}  // namespace xlog

// Whether NVTX is to hand its calls over; 0 leaves it as it is without an injection.
extern "C" XLOG_EXPORT int InitializeInjectionNvtx2(NvtxGetExportTableFunc_t get_table) {
  xlog::ReentryGuard guard;
  const char* log = xlog::start_environment.value("XLOG_LOG");
  if (log == nullptr || *log == '\0' || get_table == nullptr || !xlog::are_preloaded()) {
    return 0;
  }
  const auto* callbacks = static_cast<const NvtxExportTableCallbacks*>(get_table(NVTX_ETID_CALLBACKS));
  return callbacks != nullptr && callbacks->struct_size >= sizeof *callbacks && xlog::set_callbacks(*callbacks) ? 1 : 0;
}
