"""The exception vocabulary: the class says who must act, the message says what to do next.

A candidate that fails is not an exception: it is an ``Outcome`` (see ``schema.outcome``).
"""

from __future__ import annotations


class KernelproError(Exception):
    """Base of every error kernelpro raises on purpose; printed without a traceback."""

    exit_code = 3


class UserError(KernelproError):
    """The user can fix it: wrong usage, or an input file that is missing a piece."""

    exit_code = 2


class MachineError(KernelproError):
    """This machine cannot do it: no compiler, no driver, no permission, a full disk."""

    exit_code = 3


class ProviderError(KernelproError):
    """A language-model service refused or failed."""

    exit_code = 3


class BudgetExceeded(KernelproError):
    """A hard budget ran out; the run can be resumed with a larger one."""

    exit_code = 0


class StoreError(KernelproError):
    """The run folder is damaged, locked, or from an unknown version."""

    exit_code = 3
