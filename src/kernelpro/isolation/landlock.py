"""Landlock by three system calls: which files a process may still reach, for good.

Kernel documentation: https://docs.kernel.org/userspace-api/landlock.html. What is not allowed is
denied, for this process and everything it starts. Linux only.
"""

from __future__ import annotations

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
"""System call numbers, the same on every architecture."""
_VERSION_FLAG, _RULE_PATH_BENEATH = 1, 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_MAKE_CHAR, _MAKE_BLOCK = 1 << 6, 1 << 11
_FILE_RIGHTS = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_TCP_RIGHTS = 0b11
_SCOPE_SOCKETS_AND_SIGNALS = 0b11

READ = _EXECUTE | _READ_FILE | _READ_DIR
USE_DEVICE = _READ_FILE | _WRITE_FILE | _READ_DIR | _IOCTL_DEV | _TRUNCATE
_DEVICE_NODES = _MAKE_CHAR | _MAKE_BLOCK


def abi() -> int:
    """Landlock's version in this kernel; 0 if it has none or it is switched off."""
    return max(0, int(_libc().syscall(_CREATE_RULESET, None, 0, _VERSION_FLAG)))


def restrict(
    *, readable: Iterable[str], writable: Iterable[str], devices: Iterable[str]
) -> list[str]:
    """Confine this process. Paths that do not exist are skipped. Returns what is covered:
    ``landlock``, and ``landlock_tcp``, ``landlock_signals`` where the kernel knows them.

    Needs no_new_privs. Raises ``OSError`` if the kernel refuses.
    """
    version = abi()
    handled = (1 << 13) - 1
    handled |= _REFER if version >= 2 else 0
    handled |= _TRUNCATE if version >= 3 else 0
    handled |= _IOCTL_DEV if version >= 5 else 0
    tcp = _TCP_RIGHTS if version >= 4 else 0
    scope = _SCOPE_SOCKETS_AND_SIGNALS if version >= 6 else 0
    fields = [handled, *([tcp] if version >= 4 else []), *([scope] if version >= 6 else [])]
    attribute = struct.pack(f"{len(fields)}Q", *fields)
    ruleset = _checked(_libc().syscall(_CREATE_RULESET, attribute, len(attribute), 0))
    try:
        for paths, rights in (
            (readable, READ),
            (writable, handled & ~_DEVICE_NODES),
            (devices, USE_DEVICE),
        ):
            for path in paths:
                _allow(ruleset, path, rights & handled)
        _checked(_libc().syscall(_RESTRICT_SELF, ruleset, 0))
    finally:
        os.close(ruleset)
    covered = {"landlock": handled, "landlock_tcp": tcp, "landlock_signals": scope}
    return [layer for layer, rights in covered.items() if rights]


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _FILE_RIGHTS
        rule = struct.pack("=Qi", rights, descriptor)
        _checked(_libc().syscall(_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0))
    finally:
        os.close(descriptor)


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"landlock: {os.strerror(number)}")
    return result


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
