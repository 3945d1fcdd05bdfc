"""`jaxsim identify CONFIG.toml`: fit parameters to recordings, with confidence and a report."""

import argparse
import json
from pathlib import Path

import jax
import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.cli.user_error import convert_drawing_errors
from jaxsim.identify.estimation import Fit, fit
from jaxsim.identify.html_report import report
from jaxsim.identify.study import Reading, read_study
from jaxsim.identify.validation import Validation, validate
from jaxsim.io.save import save_model
from jaxsim.optional import require


def identify(args: argparse.Namespace) -> int:
    """Run the fit that a configuration specifies, and write its results."""
    require("matplotlib", "identify")  # fail before the fit, not after it
    folder = Path(args.out or Path("runs") / Path(args.config).stem)
    reading = read_study(args.config, args.changes, args.data)
    how = reading.study.fit
    print(args.config)
    print(f"{'model':11} {reading.study.model}: {reading.parameters.size} unknowns")
    print(f"{'data':11} {_describe_fit(reading)}")
    print(f"{'starts':11} {how.starts}", flush=True)
    found = fit(
        reading.m,
        reading.parameters,
        reading.data,
        starts=how.starts,
        key=jax.random.key(how.seed),
        iterations=how.iterations,
        segments=how.segments,
        tolerance=how.tolerance,
        tied=how.tied,
        robust=how.robust,
        batch=how.batch,
        tier=args.tier,
    )
    times = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in found.times.items())
    best = np.min(found.costs)
    near = int((found.costs < best + max(1e-3 * abs(best), 0.5)).sum())
    print(f"{'took':11} {times}; {near} of {how.starts} starts came to the best cost")
    print(found)
    held = validate(found, reading.held) if reading.held else None
    if held is not None:
        print(f"{'held back':11} {held}")
    _write_results(folder, reading, found, held)
    print(f"{'wrote':11} {folder}: fit.json, model.jxm, report.html")
    return 0


def _describe_fit(reading: Reading) -> str:
    lengths = [sum(x.values.size for x in s.series(reading.m)) for s in reading.data]
    text = f"{len(lengths)} recordings, {sum(lengths):,} numbers"
    return text + (f"; {len(reading.held)} held back" if reading.held else "")


def _write_results(folder: Path, reading: Reading, found: Fit, held: Validation | None) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    level = reading.study.fit.level
    rows = zip(found.names, found.values, found.sd, found.intervals(level), strict=True)
    values = {
        name: {
            "value": float(v),
            "sd": _json_number(sd),
            "interval": [_json_number(x) for x in ends],
        }
        for name, v, sd, ends in rows
    }
    summary = {
        "parameters": values,
        "level": level,
        "cost": found.cost,
        "costs": [_json_number(c) for c in found.costs],
        "warnings": found.warnings,
        "held_chi2": None if held is None else held.chi2,
    }
    write_whole(folder / "fit.json", json.dumps(summary, indent=2) + "\n")
    save_model(found.model, folder / "model.jxm")
    # The report comes last, so that an error in it does not lose the results.
    title = f"Identification of {Path(reading.study.model).name}"
    page = folder / "report.html"
    with convert_drawing_errors(page, f"the fit is in '{folder}': fit.json, model.jxm"):
        write_whole(page, report(found, held=held, title=title, level=level))


def _json_number(x: float) -> float | None:
    """Return a number that JSON can represent; None for non-finite values."""
    return float(x) if np.isfinite(x) else None
