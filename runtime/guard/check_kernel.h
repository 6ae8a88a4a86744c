// The kernel that compares zones with their pattern, as PTX, so that it runs on every GPU since compute capability 5.0. One
// block of threads a zone; a flag is set for each zone that is not as it was written.
#pragma once

#include <cstdint>

namespace xlog {

inline constexpr char kCheckKernelName[] = "xlog_check_zones";
inline constexpr unsigned kCheckThreads = 64;

// Parameters: address of an array of these, address of an array of 32-bit flags.
struct ZoneToCheck {
  uint64_t at;
  uint64_t seed;
  uint64_t bytes;
};

// The pattern is zone_byte() of zone.cpp.
inline constexpr char kCheckKernel[] = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry xlog_check_zones(.param .u64 zones, .param .u64 flags) {
  .reg .u64 %zone, %flag, %at, %seed, %bytes, %i, %step, %x, %y;
  .reg .u32 %b, %t, %shift, %found, %expected;
  .reg .pred %stop, %same;
  ld.param.u64 %zone, [zones];
  ld.param.u64 %flag, [flags];
  mov.u32 %b, %ctaid.x;
  mad.wide.u32 %zone, %b, 24, %zone;
  mad.wide.u32 %flag, %b, 4, %flag;
  ld.global.u64 %at, [%zone];
  ld.global.u64 %seed, [%zone+8];
  ld.global.u64 %bytes, [%zone+16];
  mov.u32 %t, %tid.x;
  cvt.u64.u32 %i, %t;
  mov.u32 %t, %ntid.x;
  cvt.u64.u32 %step, %t;
again:
  setp.ge.u64 %stop, %i, %bytes;
  @%stop bra done;
  shr.u64 %x, %i, 3;
  mul.lo.u64 %x, %x, 0x9E3779B97F4A7C15;
  add.u64 %x, %x, %seed;
  shr.u64 %y, %x, 30;
  xor.b64 %x, %x, %y;
  mul.lo.u64 %x, %x, 0xBF58476D1CE4E5B9;
  shr.u64 %y, %x, 27;
  xor.b64 %x, %x, %y;
  mul.lo.u64 %x, %x, 0x94D049BB133111EB;
  shr.u64 %y, %x, 31;
  xor.b64 %x, %x, %y;
  cvt.u32.u64 %shift, %i;
  and.b32 %shift, %shift, 7;
  shl.b32 %shift, %shift, 3;
  shr.u64 %x, %x, %shift;
  cvt.u32.u64 %expected, %x;
  and.b32 %expected, %expected, 255;
  add.u64 %y, %at, %i;
  ld.volatile.global.u8 %found, [%y];
  setp.eq.u32 %same, %found, %expected;
  @%same bra next;
  mov.u32 %t, 1;
  st.volatile.global.u32 [%flag], %t;
next:
  add.u64 %i, %i, %step;
  bra again;
done:
  ret;
}
)";

}  // namespace xlog
