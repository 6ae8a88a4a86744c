// Files in somebody else's process: descriptors that the program cannot meet, no signal raised, no link followed.
#pragma once

#include <cstdint>
#include <string_view>

namespace xlog {

struct FileIdentity {
  uint64_t device = 0;
  uint64_t inode = 0;
};

// Whether the space of the empty file can be taken for good and its pages be mapped: ext4, xfs, tmpfs, an overlay of such.
bool can_map(int fd) noexcept;
bool identify(int fd, FileIdentity& out) noexcept;
bool same(const FileIdentity& a, const FileIdentity& b) noexcept;
// write(2) or fallocate(2) past RLIMIT_FSIZE raise SIGXFSZ, whose default kills the program.
bool within_file_limit(uint64_t end) noexcept;
// Moves a descriptor above what programs close or reuse by number; -1 when none that high is allowed. Closes `fd`.
int move_high(int fd) noexcept;
// Opens a file that exists, if it is still the one that is wanted; -1 when it is not. Never waits, as for a FIFO in its place.
int open_file(const char* path, int flags, const FileIdentity& wanted) noexcept;
// One write, to a FIFO whose reader may be gone: SIGPIPE, if ours, is taken back. Bytes written, or a negative errno.
long write_no_signal(int fd, std::string_view text) noexcept;

// A companion file, opened for one write. It is created (0600, exclusively) with its first text, and is later found again by
// its name and its identity. 0 or errno. Within RLIMIT_FSIZE, so that no SIGXFSZ is raised.
int create_file(const char* path, std::string_view text, FileIdentity& out) noexcept;
int append_file(const char* path, std::string_view text, const FileIdentity& wanted) noexcept;

// Makes the file anew, whole or not at all: written beside it (0600, exclusively) and renamed. 0 or errno.
int replace_file(const char* path, std::string_view text) noexcept;
// Writes over what a regular file has; creates it (0600). For a path where no other file may be put. 0 or errno.
int rewrite_file(const char* path, std::string_view text) noexcept;

}  // namespace xlog
