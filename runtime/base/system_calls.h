// System calls as the kernel has them. The C library's functions of these names are cancellation points, at which a thread
// whose cancellation is pending would end inside ours, with a lock held; and they are what sanitizers and other preloaded
// libraries replace. These call nothing and leave errno alone: what failed is a negative errno in the result.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xlog::kernel {

[[gnu::always_inline]] inline long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0, long f = 0) noexcept {
  register long fourth __asm__("r10") = d;
  register long fifth __asm__("r8") = e;
  register long sixth __asm__("r9") = f;
  long result = number;
  __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth) : "rcx", "r11", "memory");
  return result;
}

inline long address(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

inline int open(const char* path, int flags, unsigned mode = 0) noexcept {
  return static_cast<int>(call(SYS_openat, AT_FDCWD, address(path), flags, mode));
}
inline int close(int fd) noexcept { return static_cast<int>(call(SYS_close, fd)); }
inline int status(int fd, struct stat& out) noexcept { return static_cast<int>(call(SYS_fstat, fd, address(&out))); }
inline int status_of_path(const char* path, struct stat& out) noexcept {
  return static_cast<int>(call(SYS_lstat, address(path), address(&out)));
}
inline int change_mode(int fd, unsigned mode) noexcept { return static_cast<int>(call(SYS_fchmod, fd, mode)); }
inline int cut(int fd, uint64_t size) noexcept { return static_cast<int>(call(SYS_ftruncate, fd, static_cast<long>(size))); }
inline int remove(const char* path) noexcept { return static_cast<int>(call(SYS_unlink, address(path))); }
inline int rename(const char* from, const char* to) noexcept { return static_cast<int>(call(SYS_rename, address(from), address(to))); }
inline int make_folder(const char* path, unsigned mode) noexcept { return static_cast<int>(call(SYS_mkdir, address(path), mode)); }
// A descriptor of the same file, the lowest that is free from `least` on, closed by exec.
inline int duplicate(int fd, int least) noexcept { return static_cast<int>(call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, least)); }
inline int limit(int resource, rlimit& out) noexcept { return static_cast<int>(call(SYS_prlimit64, 0, resource, 0, address(&out))); }

inline long read_at(int fd, void* to, size_t size, uint64_t offset) noexcept {
  return call(SYS_pread64, fd, address(to), static_cast<long>(size), static_cast<long>(offset));
}
inline long write(int fd, std::string_view text) noexcept {
  return call(SYS_write, fd, address(text.data()), static_cast<long>(text.size()));
}
inline long write_at(int fd, std::string_view text, uint64_t offset) noexcept {
  return call(SYS_pwrite64, fd, address(text.data()), static_cast<long>(text.size()), static_cast<long>(offset));
}
// At the file's own position, or not at all where it would wait. -EOPNOTSUPP: the kernel cannot say for this kind of file.
inline long write_without_waiting(int fd, std::string_view text) noexcept {
  iovec part{const_cast<char*>(text.data()), text.size()};
  return call(SYS_pwritev2, fd, address(&part), 1, -1, -1, RWF_NOWAIT);
}
inline long send_without_waiting(int socket, std::string_view text) noexcept {
  return call(SYS_sendto, socket, address(text.data()), static_cast<long>(text.size()), MSG_DONTWAIT | MSG_NOSIGNAL);
}
// Whether something can be written now.
inline bool is_writable(int fd) noexcept {
  pollfd asked{.fd = fd, .events = POLLOUT, .revents = 0};
  return call(SYS_poll, address(&asked), 1, 0) == 1 && (asked.revents & POLLOUT) != 0;
}
inline void sleep(const timespec& time) noexcept { call(SYS_nanosleep, address(&time), 0); }
inline void sleep(uint64_t nanoseconds) noexcept {
  sleep(timespec{.tv_sec = static_cast<time_t>(nanoseconds / 1'000'000'000), .tv_nsec = static_cast<long>(nanoseconds % 1'000'000'000)});
}
// Writes into this process's own memory, as one thread of it (`thread`) may. What a store could not be made to, since the file
// that is mapped there was cut, fails with -EFAULT, where the store itself would raise SIGBUS. The parts are written in order.
inline long write_memory(unsigned thread, const iovec* from, size_t from_count, const iovec* to, size_t to_count) noexcept {
  return call(SYS_process_vm_writev, thread, address(from), static_cast<long>(from_count), address(to), static_cast<long>(to_count));
}
inline int reserve(int fd, uint64_t begin, uint64_t size) noexcept {
  return static_cast<int>(call(SYS_fallocate, fd, 0, static_cast<long>(begin), static_cast<long>(size)));
}
inline void yield() noexcept { call(SYS_sched_yield); }

// Sets of signals as the kernel has them: bit N-1 is signal N.
using Signals = uint64_t;
constexpr Signals signal_bit(int number) noexcept { return Signals{1} << (number - 1); }
inline int set_signals(Signals blocked, Signals& before) noexcept {
  return static_cast<int>(call(SYS_rt_sigprocmask, SIG_SETMASK, address(&blocked), address(&before), sizeof(Signals)));
}
inline Signals pending_signals() noexcept {
  Signals pending = 0;
  call(SYS_rt_sigpending, address(&pending), sizeof pending);
  return pending;
}
// Takes one of these that is pending, so that nobody is signalled.
inline void take_signal(Signals wanted) noexcept {
  timespec none{};
  call(SYS_rt_sigtimedwait, address(&wanted), 0, address(&none), sizeof wanted);
}

}  // namespace xlog::kernel
