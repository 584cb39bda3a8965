"""Commands that run until they are stopped."""

from __future__ import annotations

import os
import signal

import pytest

from sojourn.stopping import requests, stopped


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_sets_the_event_and_handlers_are_restored(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with stopped() as over:
        assert not over.is_set()
        os.kill(os.getpid(), number)
        assert over.wait(10)
    assert signal.getsignal(number) == before


def test_a_second_interrupt_insists() -> None:
    with stopped() as over:
        signal.raise_signal(signal.SIGINT)
        assert over.is_set()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_under_nohup_a_hang_up_asks_for_nothing() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert requests() == [signal.SIGINT, signal.SIGTERM]
        with stopped() as over:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not over.wait(0.01)
    finally:
        signal.signal(signal.SIGHUP, before)
