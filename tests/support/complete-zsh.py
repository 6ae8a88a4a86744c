"""complete-zsh.py SCRIPT LINE...: types each line and a tab into an interactive zsh that has read the completion script, and
prints the command line that results, one a line."""
import os
import pty
import re
import select
import sys
import time


def read_until(fd, pattern, seconds=20):
    text, end = "", time.time() + seconds
    while time.time() < end:
        if select.select([fd], [], [], 0.1)[0]:
            text += os.read(fd, 65536).decode(errors="replace")
            found = re.search(pattern, text)
            if found:
                return found
    sys.exit(f"zsh did not answer: {text!r}")


script, lines = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.environ["TERM"] = "dumb"
    os.execvp("zsh", ["zsh", "-f", "-i"])
setup = "unsetopt zle_bracketed_paste prompt_cr prompt_sp; PROMPT=; stty -echo; autoload -Uz compinit; compinit -u -D; " \
        f"source {script}; xlog() {{ print -r -- \"GO\"\"T:$*:END\"; }}; print rea\"\"dy\n"
os.write(fd, setup.encode())
read_until(fd, "ready\r")
for line in lines:
    os.write(fd, line.encode() + b"\t")
    time.sleep(0.5)
    os.write(fd, b"\n")
    print("xlog " + read_until(fd, r"GOT:(.*?):END").group(1).strip(), flush=True)
os.write(fd, b"exit\n")
