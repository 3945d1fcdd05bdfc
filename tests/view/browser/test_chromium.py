"""A page in a real browser, without a screen: it loads, draws, and a pose arrives."""

import shutil
import subprocess
import time

import numpy as np
import pytest

import jaxsim
from jaxsim.view import Viewer

pytest.importorskip("viser", reason="the extra view is not installed")

MODEL = """
<mujoco>
  <worldbody>
    <body name="ball"><freejoint/><geom name="ball" size="0.5" rgba="1 0 0 1"/></body>
  </worldbody>
</mujoco>
"""
FLAGS = """
--headless --no-sandbox --disable-gpu --use-gl=angle --use-angle=swiftshader
--enable-unsafe-swiftshader --disable-background-networking --disable-component-update
--disable-sync --no-first-run --disable-quic --window-size=320,240
""".split()
LATE = 120.0  # longest time that a slow machine may take [s]


@pytest.fixture
def browse(tmp_path):
    """Opens a page."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed")
    opened = []

    def visit(address: str) -> None:
        command = [program, *FLAGS, f"--user-data-dir={tmp_path}", address]
        quiet = subprocess.DEVNULL
        opened.append(subprocess.Popen(command, stdout=quiet, stderr=quiet))

    yield visit
    for process in opened:
        process.terminate()
        process.wait(timeout=30)


def red(server) -> float:
    """The part of the picture that is red, once a browser shows one."""
    clients = list(server.get_clients().values())
    if not clients:
        return 0.0
    r, g, b = np.moveaxis(clients[0].get_render(height=120, width=160)[..., :3].astype(int), -1, 0)
    return float(np.mean((r > 120) & (g < 90) & (b < 90)))


def wait(until) -> None:
    end = time.monotonic() + LATE
    while not until():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.5)


@pytest.mark.slow
def test_a_browser_draws_what_is_shown(browse):
    m = jaxsim.load_model(MODEL)
    with Viewer(m, port=0) as viewer:
        browse(viewer.address)
        wait(lambda: red(viewer.server) > 0.1)
        d = jaxsim.make_data(m)
        viewer.show(d.replace(qpos=d.qpos.at[2].set(100.0)))  # out of sight
        wait(lambda: red(viewer.server) == 0)
