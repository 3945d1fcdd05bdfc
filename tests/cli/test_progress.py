"""The progress line and readable numbers."""

import io

import pytest

from jaxsim.cli.progress import Progress, size, thousands


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (31416, "31.4k"), (2.1e6, "2.1M"), (5e9, "5G"), (0.25, "0.25")]
)
def test_thousands(value, text):
    assert thousands(value) == text


@pytest.mark.parametrize(("value", "text"), [(12, "12 bytes"), (34100, "34.1 kB"), (9e9, "9 GB")])
def test_size(value, text):
    assert size(value) == text


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
