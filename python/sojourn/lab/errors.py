"""What can go wrong in a laboratory, in words for whoever asked for it."""

from __future__ import annotations


class LabError(RuntimeError):
    """Base of all errors of the laboratory; its text is fit to be printed."""


class Unavailable(LabError):
    """A laboratory cannot be run on this machine, or by this user. Nothing has been changed.

    `advice` says what would help.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.message = message
        self.advice = advice


class SandboxDied(LabError):
    """Init ended although it was still needed; everything inside is gone with it."""


class RequestFailed(LabError):
    """Something that was asked of the sandbox could not be done; `errno` is the kernel's, or 0."""

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class DeadlinePassed(LabError):
    """Something did not happen in time."""
