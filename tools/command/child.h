// The program that `xlog run` starts, and waits for as its parent.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace xlog::tools {

struct Ending {
  int status = 0;         // as waitpid gives it
  int exec_error = 0;     // why it was not started; 0 when it was
  uint64_t start_ns = 0;  // since the epoch
  uint64_t duration_ns = 0;
};

// Runs it in the foreground. Signals that were sent to this process alone are passed on; those of the terminal reach the
// program by themselves. After the program's end, a signal that asks to end ends this process at once, the way the program ended.
// False, with errno: no process could be made.
bool run_child(const std::vector<std::string>& command, Ending& ending);

// Ends the way the program ended: returns the exit status, or dies by the same signal.
int follow(int status);

}  // namespace xlog::tools
