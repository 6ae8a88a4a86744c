extern "C" int cudnnCreate() { return 1; }
extern "C" int curandCreate() { return 2; }
extern "C" int cublasCreate_v2() { return 3; }
extern "C" int cuFantasy() { return 4; }
