// spdlog_rows EVENTS FILE: nanoseconds a row of six columns, without a stack, by the logger that RMM's logging adaptor uses, as
// it uses it: one lock, buffered, flushed at the end.
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/spdlog.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>

int main(int, char** argv) {
  long events = std::atol(argv[1]);
  spdlog::logger logger("RMM", std::make_shared<spdlog::sinks::basic_file_sink_mt>(argv[2], true));
  logger.set_pattern("%t,%H:%M:%S.%f,%v");
  auto start = std::chrono::steady_clock::now();
  for (long i = 0; i < events; ++i) {
    logger.info("{},{},{},{}", i % 2 == 0 ? "allocate" : "free", reinterpret_cast<void*>(0x7f0000000000 + i), 1024,
                static_cast<void*>(nullptr));
  }
  logger.flush();
  std::printf("%.1f\n", std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count() / events);
}
