// Allocates inside NVTX ranges of every sort and inside those of xlog_preload.h, each block of another size. Prints what
// the NVTX calls returned.
#include <nvtx3/nvToolsExt.h>

#include <thread>

#include "programs/program.h"
#include "shim/xlog_preload.h"

namespace {

nvtxEventAttributes_t event() {
  nvtxEventAttributes_t out{};
  out.version = NVTX_VERSION;
  out.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  return out;
}

void say(const char* what, int level) { std::printf("%s: %d\n", what, level); }

void nested_ranges() {
  say("push train", nvtxRangePushA("train"));
  must_alloc(1001);
  nvtxDomainHandle_t domain = nvtxDomainCreateA("lib");
  nvtxEventAttributes_t layer = event();
  layer.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  layer.message.registered = nvtxDomainRegisterStringA(domain, "layer");
  layer.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  layer.payload.ullValue = 42;
  say("push layer in its domain", nvtxDomainRangePushEx(domain, &layer));
  must_alloc(1002);
  say("push wide", nvtxRangePushW(L"gr\u00f6\u00dfe, \"quoted\""));
  must_alloc(1003);
  say("pop the domain's", nvtxDomainRangePop(domain));
  must_alloc(1004);
  say("pop wide", nvtxRangePop());
  say("pop train", nvtxRangePop());
  must_alloc(1005);
  say("pop none", nvtxRangePop());
}

void ranges_ended_elsewhere(CUcontext context) {
  nvtxRangeId_t outer = nvtxRangeStartA("started");
  nvtxEventAttributes_t inner_event = event();
  inner_event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  inner_event.message.ascii = "inner";
  inner_event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  inner_event.payload.iValue = -7;
  nvtxRangeId_t inner = nvtxRangeStartEx(&inner_event);
  must_alloc(1006);
  std::thread([&] {
    MUST(cuCtxSetCurrent(context));
    must_alloc(1007);
    nvtxRangeEnd(outer);
  }).join();
  must_alloc(1008);
  nvtxRangeEnd(inner);
  must_alloc(1009);
}

void own_ranges() {
  if (xlog_tag_push == nullptr) {
    return;
  }
  xlog_tag_push("own");
  xlog_query_id("q7");
  nvtxRangePushA("theirs");
  must_alloc(1010);
  xlog_tag_pop();
  must_alloc(1011);
  nvtxRangePop();
  xlog_query_id(nullptr);
  say("pop none of our own", xlog_tag_pop());
  must_alloc(1012);
}

void many_ranges() {
  for (int i = 0; i < 100; ++i) {
    nvtxRangePushA("deep");
  }
  must_alloc(1013);
  for (int i = 0; i < 100; ++i) {
    nvtxRangePop();
  }
  must_alloc(1014);
  for (int i = 0; i < 10000; ++i) {  // more than there are numbers for
    nvtxRangeEnd(nvtxRangeStartA("short"));
  }
  must_alloc(1015);
}

}  // namespace

int main() {
  nvtxRangePushA("before the driver");
  nvtxRangePop();
  CUcontext context = start();
  nested_ranges();
  ranges_ended_elsewhere(context);
  own_ranges();
  many_ranges();
  return 0;
}
