"""Runs a program in a pseudo-terminal: `relay.py COLUMNS ROWS COMMAND ARGS...`.

Forwards stdin to the terminal and its output to stdout, and exits with the program's exit code. The end of stdin hangs
up the terminal, like closing its window.
"""

import fcntl
import os
import pty
import select
import signal
import struct
import sys
import termios


def main() -> int:
    columns, rows, *command = sys.argv[1:]
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", int(rows), int(columns), 0, 0))
        os.execvp(command[0], command)
    typing = sys.stdin.fileno()
    sources = [terminal, typing]
    while True:
        ready, _, _ = select.select(sources, [], [])
        if typing in ready:
            keys = os.read(typing, 65536)
            if keys:
                os.write(terminal, keys)
            else:
                sources.remove(typing)
                os.kill(pid, signal.SIGHUP)
        if terminal in ready:
            try:
                shown = os.read(terminal, 65536)
            except OSError:
                # The program has exited, and its output has been read.
                shown = b""
            if not shown:
                break
            sys.stdout.buffer.write(shown)
            sys.stdout.buffer.flush()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


sys.exit(main())
