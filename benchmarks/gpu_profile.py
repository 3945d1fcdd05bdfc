"""Profile of a program on a GPU: time by kernel, and by stage of the step."""

import collections
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jax

MOST = 25  # kernels that are listed


def profile(run: Callable[[], Any], program: Any) -> dict:
    """Return milliseconds and launches per step, of stages and of the longest kernels.

    Args:
      run: runs the program once.
      program: the program (gpu_programs.Program).
    """
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            run()
        file = next(Path(folder).rglob("*.xplane.pb"))
        seen = list(events(jax.profiler.ProfileData.from_file(str(file))))
    steps = program.steps / program.worlds
    origin = origins(program.compiled.as_text())
    kernels: collections.Counter = collections.Counter()
    launches: collections.Counter = collections.Counter()
    stages: collections.Counter = collections.Counter()
    for name, nanoseconds in seen:
        kernels[name] += nanoseconds / 1e6 / steps
        launches[name] += 1
        stages[origin.get(name, "?").split("/")[0]] += nanoseconds / 1e6 / steps
    return {
        "busy_ms": sum(kernels.values()),
        "launches": len(seen) / steps,
        "stages": dict(stages.most_common()),
        "kernels": [
            [name, ms, launches[name] / steps, origin.get(name, "?")]
            for name, ms in kernels.most_common(MOST)
        ],
    }


def events(data: Any) -> Iterator[tuple[str, float]]:
    """Yield names and nanoseconds of all events on the device."""
    for plane in data.planes:
        if not plane.name.startswith("/device:GPU"):
            continue
        for line in plane.lines:
            if line.name.startswith("Stream"):
                for event in line.events:
                    yield plain(event.name), event.duration_ns


def plain(name: str) -> str:
    return name.replace(".", "_")


def origins(text: str) -> dict[str, str]:
    """Return the stage and operation of each kernel of a program, by its name."""
    found = {}
    for name, source in re.findall(r"%?([\w.\-]+) = .*op_name=\"([^\"]*)\"", text):
        path = source.split("jaxpr_as_fun)/")[-1] if "jaxpr_as_fun" in source else source
        found[plain(name)] = path[:90]
    return found


def lines(row: dict) -> str:
    """Return a profile as text; empty without one."""
    if "kernels" not in row:
        return ""
    out = [f"    busy {row['busy_ms']:.3f} ms a step, {row['launches']:.0f} launches"]
    out += ["    " + ", ".join(f"{k} {v:.3f}" for k, v in list(row["stages"].items())[:16])]
    out += [f"      {ms:.4f} ms {n:5.1f}x {name:44} {of}" for name, ms, n, of in row["kernels"]]
    return "\n" + "\n".join(out)
