// Where a command writes what it was asked for: standard output, a device, or a file that appears under its name only when it is
// whole. What is made from a log holds what the log holds, so a file is readable by its owner alone (mode 0600), and no link is
// followed: another user may have put one under a name in a folder that is shared.
#pragma once

#include <memory>
#include <ostream>
#include <streambuf>
#include <string>

namespace xlog::tools {

class OutputFile {
 public:
  // "", "-" and /dev/stdout are standard output; /dev/fd/N is that descriptor.
  explicit OutputFile(const std::string& path);
  // Without a commit() nothing is left of the file, and what was there before is as it was.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  [[nodiscard]] std::ostream& stream() { return stream_; }
  // Writes what is left and gives the file its name. False when anything could not be written since the beginning; then problem()
  // is one sentence that says why.
  bool commit();
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  class Buffer : public std::streambuf {
   public:
    explicit Buffer(OutputFile& file) : file_(file) { setp(room_, room_ + sizeof room_); }
    bool write_out();

   protected:
    int_type overflow(int_type c) override;
    int sync() override { return write_out() ? 0 : -1; }

   private:
    OutputFile& file_;
    char room_[1 << 16];
  };

  void open_named();
  void open_fresh();
  void fail(const std::string& what, int error);
  bool write_all(const char* data, size_t size);

  std::string path_;   // empty: standard output
  std::string name_;   // for people
  std::string fresh_;  // under which a file is written; empty: nothing is to be renamed
  int fd_ = -1;
  bool owns_fd_ = true;
  std::string problem_;
  Buffer buffer_{*this};
  std::ostream stream_{&buffer_};
};

}  // namespace xlog::tools
