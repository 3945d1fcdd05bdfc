"""Requests to stop end a command as Control-C does, and only while it runs."""

import os
import signal
import threading

import pytest

from jaxsim.cli.signals import REQUESTS, Stopped, stops_in_order


@pytest.fixture
def default():
    """As a program has it that does not handle signals; pytest's own handlers come back."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in REQUESTS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", REQUESTS)
@pytest.mark.usefixtures("default")
def test_a_request_runs_what_cleans_up_and_a_second_one_does_not_disturb_it(number):
    cleaned = False

    def work():
        nonlocal cleaned
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), number)
            cleaned = True

    with pytest.raises(Stopped, match=signal.Signals(number).name) as stopped, stops_in_order():
        work()
    assert cleaned
    assert stopped.value.number == number
    assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.usefixtures("default")
def test_what_is_ignored_or_handled_stays_so():
    handled = []
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: handled.append(1))
    with stops_in_order():
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
    assert handled == [1]


def test_another_thread_leaves_the_signals_alone():
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work():
        with stops_in_order():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
