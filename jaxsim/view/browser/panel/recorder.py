"""Record the states that a page shows, and download them as a standalone page or a motion."""

import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.batch.trajectory import TrajectoryWriter, motion_header
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.view.browser.page import record

_RECORD_RATE = 60.0  # largest number of records per second of the simulation
_MAX_RECORDS = 36_000  # limit on the records, ten minutes at the largest rate
_FIELDS = ("qpos", "qvel", "act", "ctrl", "mocap_pos", "mocap_quat")
PAGE, MOTION = FORMATS = ("page (.html)", "motion (.npz)")


class Recorder:
    """Recorder of one world.

    Args:
      m: the model.
      path: file of the model; "" if it is unknown.

    Attributes:
      recording: whether states are recorded.
    """

    def __init__(self, m: Model, path: str = ""):
        self._m, self._path = m, path
        self.recording = False
        self._lock = threading.Lock()
        self._records: list[dict[str, np.ndarray]] = []
        self._shift = 0.0  # added to the clock, which a reset sets back

    @property
    def seconds(self) -> float:
        """Return the length of what is recorded [s]."""
        records = self._records
        return float(records[-1]["time"] - records[0]["time"]) if records else 0.0

    def start(self) -> None:
        """Begin a new recording."""
        with self._lock:
            self._records, self._shift, self.recording = [], 0.0, True

    def add(self, d: Data) -> None:
        """Record a state, unless the last one is less than a frame old."""
        if not self.recording:
            return
        with self._lock:
            now = float(d.time) + self._shift
            if self._records:
                last = float(self._records[-1]["time"])
                if now < last:  # the simulation was reset
                    self._shift += last + 1 / _RECORD_RATE - now
                    now = last + 1 / _RECORD_RATE
                if now - last < (1 - 1e-6) / _RECORD_RATE or len(self._records) >= _MAX_RECORDS:
                    return
            fields = {name: np.array(getattr(d, name)) for name in _FIELDS}
            self._records.append({"time": np.array(now), **fields})

    def stop(self, kind: str) -> tuple[str, bytes] | None:
        """End the recording.

        Args:
          kind: one of FORMATS.

        Returns:
          Name and content of the file; None if nothing moved.
        """
        with self._lock:
            self.recording, records = False, self._records
        if len(records) < 2:
            return None
        motion = {name: np.stack([r[name] for r in records]) for name in records[0]}
        stem = Path(self._path).stem or "recording"
        with tempfile.TemporaryDirectory() as folder:
            if kind == PAGE:
                path = Path(folder) / f"{stem}.html"
                record(self._m, motion, path)
            else:
                path = Path(folder) / f"{stem}.npz"
                header = motion_header(self._m, Path(self._path).name, every=1, worlds=1)
                if self._path:
                    header["path"] = str(Path(self._path).resolve())
                with TrajectoryWriter(path, header) as writer:
                    writer.append({name: x[:, None] for name, x in motion.items()})
            return path.name, path.read_bytes()


def add_recorder(gui: Any, recorder: Recorder) -> Callable[[Any], None]:
    """Add a button that starts and ends a recording, and the type of its file; return the button's
    action, which takes viser's event."""
    button = gui.add_button("Record", hint="record the motion, and download it")
    kind = gui.add_dropdown("record as", FORMATS, initial_value=PAGE)

    def toggle(event: Any) -> None:
        if not recorder.recording:
            recorder.start()
            button.label = "Stop recording"
            return
        button.label = "Record"
        found = recorder.stop(kind.value)
        if found is None:
            event.client.add_notification("Nothing recorded", "The world did not move.")
        else:
            event.client.send_file_download(*found, save_immediately=True)

    button.on_click(toggle)
    return toggle
