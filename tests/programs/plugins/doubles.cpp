// What a test of a program brings in place of the driver and of NVML: functions of their names, whose results are like no
// other's.
extern "C" int cuMemAlloc_v2(unsigned long long* p, unsigned long) {
  *p = 0x1234;
  return 999;
}
extern "C" int cuInit(unsigned) { return 998; }
// As NVML for a GPU that cannot say how much memory it has.
extern "C" int nvmlDeviceGetMemoryInfo(void*, void*) { return 3; }
extern "C" int nvmlDeviceGetMemoryInfo_v2(void*, void*) { return 3; }
