"""Errors of the laboratory, with messages for users."""

from __future__ import annotations


class LabError(RuntimeError):
    """Base class of the laboratory's errors with messages for users."""


class Unavailable(LabError):
    """A laboratory cannot run on this machine or as this user. Nothing has been changed.

    `advice` states a remedy; it is empty if none is known.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.message = message
        self.advice = advice


class SandboxDied(LabError):
    """The sandbox's init ended too early; the kernel has ended all programs in the sandbox."""


class RequestFailed(LabError):
    """The sandbox could not execute a request; `errno` is the kernel's error number, or 0."""

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class DeadlinePassed(LabError):
    """A program did not end, or did not answer, before its deadline."""
