"""Runs a program in a terminal of its own: `relay.py COLUMNS ROWS COMMAND ARGS...`.

What comes on stdin is typed, what the program writes comes on stdout, and its exit code is ours. The end of stdin
hangs up the terminal, as closing its window would.
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
                # The program has gone, and all that it wrote has been read.
                shown = b""
            if not shown:
                break
            sys.stdout.buffer.write(shown)
            sys.stdout.buffer.flush()
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status) & 0xFF


sys.exit(main())
