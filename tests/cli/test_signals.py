"""Requests to stop end a command as Control-C does, and only while it runs."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from jaxsim.cli.process.signals import STOP_SIGNALS, Stopped, convert_stop_signals


@pytest.fixture
def default():
    """Restore Python's default signal handlers; pytest's own are reinstalled afterwards."""
    handlers = dict.fromkeys(STOP_SIGNALS, signal.SIG_DFL) | {
        signal.SIGINT: signal.default_int_handler
    }
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", STOP_SIGNALS)
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

    with (
        pytest.raises(Stopped, match=signal.Signals(number).name) as stopped,
        convert_stop_signals(),
    ):
        work()
    assert cleaned
    assert stopped.value.number == number
    assert signal.getsignal(number) == signal.SIG_DFL


@pytest.mark.usefixtures("default")
def test_ignored_and_handled_signals_are_not_changed():
    handled = []
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: handled.append(1))
    with convert_stop_signals():
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGTERM)
    assert handled == [1]


def test_another_thread_leaves_the_signals_alone():
    before, seen = signal.getsignal(signal.SIGTERM), []

    def work():
        with convert_stop_signals():
            seen.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]


BUSY = {
    # a call of C that runs no handler, as that of a compiler
    "in C": "hashlib.pbkdf2_hmac('sha256', b'a', b'b', 10**9)",
    # a compiler that does let handlers run, and cannot be unwound
    "in a compilation": """
with named_phase('compile it'):
    try:
        while True: time.sleep(0.01)
    except KeyboardInterrupt:
        os.kill(os.getpid(), signal.SIGSEGV)""",
}
PROGRAM = """
import hashlib, os, signal, sys, time
from jaxsim.cli.process.signals import convert_stop_signals
from jaxsim.io.phase import named_phase
from jaxsim.atomic_write import whole_file
# a job in the background inherits ignored signals, which stay ignored
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
with convert_stop_signals(), whole_file(sys.argv[1]) as part:
    part.write_text('half')
    print('ready', flush=True)
    exec(sys.argv[2])
"""


@pytest.mark.parametrize(
    ("busy", "number", "code"),
    [
        ("in C", signal.SIGTERM, 143),
        ("in C", signal.SIGHUP, 129),
        ("in a compilation", signal.SIGINT, 130),
        pytest.param("in C", signal.SIGINT, 130, marks=pytest.mark.slow),
        pytest.param("in a compilation", signal.SIGTERM, 143, marks=pytest.mark.slow),
        pytest.param("in a compilation", signal.SIGHUP, 129, marks=pytest.mark.slow),
    ],
)
def test_a_process_that_cannot_be_unwound_ends_and_leaves_nothing_unfinished(
    tmp_path, busy, number, code
):
    target = tmp_path / "out.txt"
    target.write_text("before")
    root = str(Path(__file__).resolve().parents[2])
    run = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(target), BUSY[busy]],
        env=os.environ | {"PYTHONPATH": root},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert run.stdout.readline() == "ready\n"
        time.sleep(0.2)
        began = time.monotonic()
        run.send_signal(number)
        _, told = run.communicate(timeout=30)
    finally:
        run.kill()
    assert time.monotonic() - began < 3  # under a second on a machine that is free
    assert run.returncode == code
    assert told.strip() == ("interrupted" if code == 130 else f"stopped by {number.name}")
    assert [p.name for p in tmp_path.iterdir()] == ["out.txt"]
    assert target.read_text() == "before"


@pytest.mark.usefixtures("default")
def test_control_c_is_a_keyboard_interrupt_that_can_come_twice():
    before = signal.getsignal(signal.SIGINT)
    caught = 0
    with convert_stop_signals():
        for _ in range(2):
            try:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(1)
            except KeyboardInterrupt:
                caught += 1
        time.sleep(0.6)  # longer than the grace: it was answered
    assert caught == 2
    assert signal.getsignal(signal.SIGINT) == before
