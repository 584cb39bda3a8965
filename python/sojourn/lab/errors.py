"""Errors of the laboratory, with messages for users."""

from __future__ import annotations


class LabError(RuntimeError):
    """Base of all errors of the laboratory; its message can be shown to users."""


class Unavailable(LabError):
    """A laboratory cannot run on this machine or as this user. Nothing has been changed.

    `advice` states a remedy.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(f"{message}; {advice}" if advice else message)
        self.message = message
        self.advice = advice


class SandboxDied(LabError):
    """Init ended while it was still needed; everything inside the sandbox has ended with it."""


class RequestFailed(LabError):
    """The sandbox could not execute a request; `errno` is the kernel's error number, or 0."""

    def __init__(self, message: str, errno: int = 0) -> None:
        super().__init__(message)
        self.errno = errno


class DeadlinePassed(LabError):
    """A deadline has passed."""
