// Preloaded before the library, it keeps calls for itself.
extern "C" int cuMemAlloc_v2(unsigned long long* p, unsigned long) {
  *p = 0x1234;
  return 0;
}
