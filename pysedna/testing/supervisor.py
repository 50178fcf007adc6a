"""Runs one server and ends it when the process that wanted it is gone. A program of its own, started by path.

``python supervisor.py PARENT FOLDER COMMAND...``: whatever way PARENT ends, a SIGKILL included, the kernel closes its
end of the pipe that is our standard input and marks the pidfd that we hold, and COMMAND is killed. A child that PARENT
forked keeps that pipe open, hence the pidfd beside it. Should this process be killed itself, the kernel kills COMMAND
(PR_SET_PDEATHSIG, which belongs to the thread that forks: here there is only one). A FOLDER that is named, not
empty, is removed when PARENT left it behind.

Each byte on standard input is the number of a signal for COMMAND. Sent from here it can never hit another process
that got the same id. Standard output tells COMMAND's process id in one line; our exit status is COMMAND's.
Only the standard library, and little of it: it starts in some 20 ms.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, folder: str, command: list[str]) -> int:
    ended_read, ended_write = os.pipe()
    signal.set_wakeup_fd(_nonblocking(ended_write))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    lost = _watch_parent(parent)
    process = _start(command)
    os.write(1, b"%d\n" % process.pid)
    os.close(1)
    orphaned = _attend(process, ended_read, lost)
    if orphaned:
        process.kill()
    status = process.wait()
    if orphaned and folder:
        shutil.rmtree(folder, ignore_errors=True)
    return status if status >= 0 else 128 - status


def _nonblocking(descriptor: int) -> int:
    os.set_blocking(descriptor, False)
    return descriptor


def _watch_parent(parent: int) -> int:
    """A descriptor that becomes readable when `parent` ends. If it has ended already, so do we."""
    try:
        descriptor = os.pidfd_open(parent)
    except ProcessLookupError:
        sys.exit(1)
    if os.getppid() != parent:  # it ended in between, and its id may be another's by now
        sys.exit(1)
    return descriptor


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    libc = ctypes.CDLL(None, use_errno=True)
    supervisor = os.getpid()

    def die_with_supervisor() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != supervisor:
            os._exit(1)

    return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, preexec_fn=die_with_supervisor)


def _attend(process: subprocess.Popen[bytes], ended: int, lost: int) -> bool:
    """Pass signals on until the command ends (False) or the parent does (True)."""
    poll = select.poll()
    for descriptor in (0, ended, lost):
        poll.register(descriptor, select.POLLIN)
    while process.poll() is None:
        ready = {descriptor for descriptor, _ in poll.poll()}
        if lost in ready:
            return True
        if ended in ready:
            os.read(ended, 4096)
        if 0 in ready:
            numbers = os.read(0, 4096)
            if not numbers:
                return True
            for number in numbers:
                process.send_signal(number)
    return False


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), sys.argv[2], sys.argv[3:]))
