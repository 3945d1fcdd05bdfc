"""The progress line and readable numbers."""

import io
import time

import pytest

from jaxsim.cli.progress import Phases, Progress, format_bytes, format_count
from jaxsim.io.phase import is_active, listening, named_phase


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (31416, "31.4k"), (2.1e6, "2.1M"), (5e9, "5G"), (0.25, "0.25")]
)
def test_thousands(value, text):
    assert format_count(value) == text


@pytest.mark.parametrize(("value", "text"), [(12, "12 bytes"), (34100, "34.1 kB"), (9e9, "9 GB")])
def test_size(value, text):
    assert format_bytes(value) == text


def test_a_terminal_sees_one_line():
    stream = Terminal()
    progress = Progress(10, 64, stream)
    progress.show(10)
    progress.close()
    assert stream.getvalue().startswith("\r[####")
    assert "10/10 steps" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1


def test_a_log_gets_lines_now_and_then():
    stream = io.StringIO()
    progress = Progress(10, 64, stream)
    for done in range(1, 11):
        progress.show(done)
    progress.close()
    assert stream.getvalue().count("\n") == 1
    assert "\r" not in stream.getvalue()


def test_a_phase_that_takes_long_is_told_while_it_lasts_and_at_its_end():
    stream = io.StringIO()
    with listening(Phases(stream, patience=0.05)):
        with named_phase("load the model"):
            pass
        assert not stream.getvalue()
        with named_phase("compile the step"):
            assert is_active("compile")
            time.sleep(0.2)
            assert stream.getvalue().startswith("compile the step ... 0 s\n")
    assert not is_active("")
    assert stream.getvalue().splitlines()[1].startswith("compile the step: 0.")
    assert len(stream.getvalue().splitlines()) == 2
    with named_phase("nobody listens"):
        pass


def test_a_phase_on_a_terminal_is_one_line_and_a_failed_one_says_so():
    stream = Terminal()

    def fail():
        with listening(Phases(stream, patience=0.05)), named_phase("compile the step"):
            time.sleep(0.2)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert stream.getvalue().startswith("\rcompile the step ... 0 s")
    assert stream.getvalue().count("\n") == 1
    assert stream.getvalue().rstrip().endswith("s, not finished")
