"""A program that ends when the process that started it does, however that one ends.

    python -m opsleuth.scenarios.lab.tether SIGNAL PARENT USER PROGRAM ARGUMENTS…

Becomes USER (`-`: stays who it is), asks the kernel (Linux) to send the signal when the parent is gone, then becomes
the program.
"""

import ctypes
import os
import pwd
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    signal, parent, user, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4:]
    if user != "-":  # first: who changes its user is untied
        entry = pwd.getpwnam(user)
        os.setgroups([])
        os.setgid(entry.pw_gid)
        os.setuid(entry.pw_uid)
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "the kernel cannot tie a process to its parent")
    if os.getppid() != parent:  # it ended before the tie was made
        sys.exit(1)
    os.execvp(program[0], program)  # noqa: S606 - the program that the lab starts


if __name__ == "__main__":
    main()
