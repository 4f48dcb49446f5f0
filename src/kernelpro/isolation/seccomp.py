"""A small system-call filter: no sockets but local ones, no looking into other processes, no new
namespaces, no kernel interfaces that a kernel under test has no business with.

The program is assembled here by hand (classic BPF) and installed with speculation left as it is,
so that a filtered process runs at the speed of an unfiltered one. x86-64 and AArch64.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_SET_MODE_FILTER, _GET_ACTION_AVAIL = 1, 2
_FLAG_TSYNC, _FLAG_SPEC_ALLOW = 1, 4
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in ``struct seccomp_data`` (little-endian: the low half of the first argument)."""
_X32_BIT = 0x40000000
_NAMESPACE_FLAGS = 0x7E020000
"""CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}."""

_DENIED = {
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "kcmp": (312, 272), "pidfd_getfd": (438, 438), "process_madvise": (440, 440),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219), "mount": (165, 40), "umount2": (166, 39),
    "pivot_root": (155, 41), "chroot": (161, 51), "unshare": (272, 97), "setns": (308, 268),
    "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433),
    "mount_setattr": (442, 442), "open_by_handle_at": (304, 265), "reboot": (169, 142),
    "swapon": (167, 224), "swapoff": (168, 225), "settimeofday": (164, 170),
    "clock_settime": (227, 112), "clock_adjtime": (305, 266), "adjtimex": (159, 171),
    "acct": (163, 89), "quotactl": (179, 60), "syslog": (103, 116),
}  # fmt: skip
"""Refused with EPERM: numbers on x86-64 and AArch64 (kernel tables unistd_64.h and unistd.h)."""
_CALLS = {"socket": (41, 198), "clone": (56, 220), "clone3": (435, 435), "seccomp": (317, 277)}
_ARCHITECTURES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""Machine -> column of the tables above, and its AUDIT_ARCH value."""


def unavailable() -> str | None:
    """Why filters cannot be used here, or None."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        return f"no system-call table for {machine}"
    action = ctypes.c_uint32(_ERRNO)
    number = _CALLS["seccomp"][_ARCHITECTURES[machine][0]]
    if _libc().syscall(number, _GET_ACTION_AVAIL, 0, ctypes.byref(action)) != 0:
        return f"kernel: {os.strerror(ctypes.get_errno())}"
    return None


def install() -> None:
    """Filter this process and everything it starts. Needs no_new_privs; ``OSError`` if refused."""
    program = _program(platform.machine())
    code = ctypes.create_string_buffer(program, len(program))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

    filter_ = Program(len(program) // 8, ctypes.addressof(code))
    number = _CALLS["seccomp"][_ARCHITECTURES[platform.machine()][0]]
    flags = _FLAG_TSYNC | _FLAG_SPEC_ALLOW
    if _libc().syscall(number, _SET_MODE_FILTER, flags, ctypes.byref(filter_)) != 0:
        raise OSError(ctypes.get_errno(), f"seccomp: {os.strerror(ctypes.get_errno())}")


def _program(machine: str) -> bytes:
    column, architecture = _ARCHITECTURES[machine]
    deny = _ERRNO | errno.EPERM
    code = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, architecture),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        code += [(_AT_LEAST, 0, 1, _X32_BIT), (_RETURN, 0, 0, deny)]
    for numbers in _DENIED.values():
        code += [(_EQUAL, 0, 1, numbers[column]), (_RETURN, 0, 0, deny)]
    # Its flags lie behind a pointer; "no such call" makes the C library use clone instead.
    code += [
        (_EQUAL, 0, 1, _CALLS["clone3"][column]),
        (_RETURN, 0, 0, _ERRNO | errno.ENOSYS),
        (_EQUAL, 0, 4, _CALLS["socket"][column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_EQUAL, 1, 0, 1),  # AF_UNIX
        (_RETURN, 0, 0, _ERRNO | errno.EACCES),
        (_RETURN, 0, 0, _ALLOW),
        (_EQUAL, 0, 3, _CALLS["clone"][column]),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_ANY_BIT, 0, 1, _NAMESPACE_FLAGS),
        (_RETURN, 0, 0, deny),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
