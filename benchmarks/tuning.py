"""The thresholds of `jaxsim/transforms/tuning.py`, measured on this machine.

    python benchmarks/tuning.py [--only max_unrolled_dofs contacts_per_chunk] [--repeats 30]
        [--json FILE.json]

A threshold between two forms: the same program is compiled in both forms at several sizes, by
`tuning.override`, and both are timed alternately. The table gives the time of the form below the
threshold over that of the form beyond it, and the sizes between which the ratio crosses 1. Size of
a tile, a chunk or the like: times relative to the value of the record. Ratios below 1 favor the
form below, or the other value. The second column is the ratio of compile times, which some
thresholds take into account. Each measurement takes half a minute to a few minutes, most of it for
compiling.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tuning_programs as programs
from tuning_programs import Program

from jaxsim.transforms import tuning

SAMPLE = 1e-3  # seconds of a sample at least: shorter programs are called several times
BUSY = 1.3  # processor seconds per second from which on a program uses several threads

Overrides = dict[str, Any]


@dataclass(frozen=True)
class Threshold:
    """A size at which one form replaces another.

    Attributes:
      program: makes the program of a size.
      sizes: sizes to measure.
      below, beyond: overrides that choose the forms at a size; by default from the name of the
        field, largest size of the one or smallest of the other.
      platform: the platform that it must be measured on.
    """

    program: Callable[[Any], Program]
    sizes: Sequence
    below: Callable[[Any], Overrides] | None = None
    beyond: Callable[[Any], Overrides] | None = None
    platform: str = "cpu"

    def measure(self, field: str, repeats: int) -> dict:
        """Time both forms at each size."""
        step = 1 if field.startswith("min_") else 0
        below = self.below or (lambda n: {field: n + step})
        beyond = self.beyond or (lambda n: {field: n + step - 1})
        rows = []
        for size in self.sizes:
            forms = [compiled(make(size), self.program, size) for make in (below, beyond)]
            run, compile_ = (a[0] / a[1] for a in times(forms, repeats))
            rows.append({"size": size, "run": run, "compile": compile_})
            print(f"  {size!s:>12} {run:8.2f} {compile_:8.2f}", flush=True)
        slower = [row["run"] > 1 for row in rows]
        first = slower.index(True) if True in slower else len(rows)
        between = [rows[k]["size"] if 0 <= k < len(rows) else None for k in (first - 1, first)]
        print(f"  the form below is faster up to {between[0]}, slower from {between[1]}")
        return {"rows": rows, "crosses_between": between}


@dataclass(frozen=True)
class Choice:
    """One of several sizes of a tile, a chunk or the like.

    Attributes:
      program: makes the program.
      values: values to compare.
      more: overrides that all of them need.
      platform: the platform that it must be measured on.
    """

    program: Callable[[], Program]
    values: Sequence
    more: Overrides | None = None
    platform: str = "cpu"

    def measure(self, field: str, repeats: int) -> dict:
        """Time the program with each value."""
        own = getattr(tuning.tuning(), field)
        values = [own, *(v for v in self.values if v != own)]
        forms = [compiled({field: v} | (self.more or {}), self.program) for v in values]
        run, compile_ = (a / a[0] for a in times(forms, repeats))
        rows = [
            {"value": v, "run": float(r), "compile": float(c)}
            for v, r, c in zip(values, run, compile_, strict=True)
        ]
        for row in rows:
            print(f"  {row['value']!s:>12} {row['run']:8.2f} {row['compile']:8.2f}", flush=True)
        best = min(rows, key=lambda row: row["run"])["value"]
        print(f"  the fastest is {best}")
        return {"rows": rows, "fastest": best}


@dataclass(frozen=True)
class Cost:
    """The time of one form relative to another, which is the field itself."""

    program: Callable[[], Program]
    first: Overrides
    second: Overrides
    platform: str = "cpu"

    def measure(self, field: str, repeats: int) -> dict:
        """Time both forms."""
        del field
        forms = [compiled(values, self.program) for values in (self.first, self.second)]
        run, compile_ = (a[0] / a[1] for a in times(forms, repeats))
        print(f"  {'ratio':>12} {run:8.2f} {compile_:8.2f}")
        return {"rows": [{"run": run, "compile": compile_}]}


@dataclass(frozen=True)
class SingleThread:
    """The largest size at which a program keeps to the calling thread."""

    program: Callable[[Any], Program]
    sizes: Sequence
    values: Callable[[Any], Overrides]
    platform: str = "cpu"

    def measure(self, field: str, repeats: int) -> dict:
        """Compare processor time with time."""
        del field
        rows = []
        for size in self.sizes:
            run, _ = compiled(self.values(size), self.program, size)
            run()
            began, used = time.perf_counter(), time.process_time()
            for _ in range(20 * repeats):
                run()
            busy = (time.process_time() - used) / (time.perf_counter() - began)
            rows.append({"size": size, "threads": busy})
            print(f"  {size!s:>12} {busy:8.2f} threads", flush=True)
        one = [row["size"] for row in rows if row["threads"] < BUSY]
        print(f"  one thread up to {max(one, default=None)}")
        return {"rows": rows, "one_thread_up_to": max(one, default=None)}


def compiled(values: Overrides, make: Callable, *size: Any) -> tuple[Callable, float]:
    """A program that was made, traced and compiled with other thresholds; its compile time."""
    with tuning.override(**values):
        program = make(*size)
        began = time.perf_counter()
        run = jax.jit(program.function).lower(*program.args).compile()
        compile_ = time.perf_counter() - began
    return lambda: jax.block_until_ready(run(*program.args)), compile_


def times(forms: Sequence[tuple[Callable, float]], repeats: int) -> tuple[np.ndarray, np.ndarray]:
    """The best time of each program, run alternately, and their compile times."""
    calls = []
    for run, _ in forms:
        run()
        calls.append(max(1, int(SAMPLE / seconds(run, 1))))
    rounds = [
        [seconds(run, n) for (run, _), n in zip(forms, calls, strict=True)] for _ in range(repeats)
    ]
    return np.min(rounds, axis=0), np.array([c for _, c in forms])


def seconds(run: Callable, calls: int) -> float:
    began = time.perf_counter()
    for _ in range(calls):
        run()
    return (time.perf_counter() - began) / calls


def same(tile: int) -> Overrides:
    """Overrides for tiles of one size."""
    return {"world_tiles": (tile, tile, tile)}


def block_speedup(sizes: Sequence[int]) -> float:
    """The factor by which blocks of these sizes reduce the work."""
    return sum(sizes) ** 3 / sum(n**3 for n in sizes)


def group_reduction(sizes: Sequence[int]) -> float:
    """The factor by which rows of the largest of these trees are shorter than those of all."""
    return sum(sizes) / max(sizes)


IN_LIBRARY = {"max_row_loop_dofs": 0}

# Every field of `Tuning`, in its order.
MEASUREMENTS = {
    # Fused kernels of a CPU.
    "max_kernel_operations": Choice(programs.quadruped, (150, 300, 600, 1200, 2400)),
    "max_loop_operations": Choice(programs.hulls, (1_000, 10_000, 100_000)),
    "min_kernel_operations": Threshold(programs.short_parts, (2, 4, 8, 16, 32)),
    "max_kernel_multiplications": Threshold(
        programs.product,
        (8, 12, 16, 20, 24, 32),
        lambda n: {"max_kernel_multiplications": n**3},
        lambda n: {"max_kernel_multiplications": n**3 - 1},
    ),
    # Tiles of worlds.
    "world_tiles": Choice(lambda: programs.quadruped(64), [(t, t, t) for t in (4, 8, 16, 32, 64)]),
    "tile_8_cost": Cost(lambda: programs.quadruped(64), same(8), same(16)),
    "max_tiled_dofs": Threshold(
        programs.large_worlds,
        (8, 12, 16, 20),
        lambda boxes: {"max_tiled_dofs": 6 * boxes},
        lambda boxes: {"max_tiled_dofs": 6 * boxes - 1},
    ),
    # Linear systems on a CPU.
    "max_unrolled_dofs": Threshold(programs.solver_system, (24, 36, 48, 60, 72)),
    "max_short_unrolled_dofs": Threshold(programs.many_systems, (4, 8, 12, 18, 27)),
    "max_row_loop_dofs": Threshold(programs.one_system, (24, 48, 72, 96, 120, 160)),
    "max_library_dofs": SingleThread(
        programs.one_system,
        (96, 128, 160, 192, 224, 256),
        lambda n: IN_LIBRARY | {"max_library_dofs": n},
    ),
    "library_block_dofs": Choice(
        lambda: programs.one_system(384), (32, 64, 96, 128, 192), IN_LIBRARY
    ),
    "panel_columns": Choice(lambda: programs.solver_system(27), (2, 4, 8)),
    "blocked_lower_steps": Choice(lambda: programs.solver_system(72), (1, 2, 3, 4, 6)),
    "skyline_tile": Choice(programs.skyline_system, [(8, 8), (8, 16), (8, 32), (16, 16), (16, 32)]),
    "qr_rows_per_column": Choice(programs.tall_qr, (2, 4, 8, 16)),
    "min_block_speedup": Threshold(
        lambda sizes: programs.trees(sizes, floor=False),
        ((12, 3), (9, 3), (8, 4), (6, 6), (6, 6, 6)),
        lambda sizes: {"min_block_speedup": 1.01 * block_speedup(sizes)},
        lambda sizes: {"min_block_speedup": 0.99 * block_speedup(sizes)},
    ),
    # Linear systems in GPU kernels.
    "kernel_tile_side": Choice(lambda: programs.many_systems(72, 8192), (16, 32), platform="gpu"),
    "max_kernel_dofs": Threshold(
        lambda n: programs.many_systems(n, 8192), (47, 63, 79, 95, 111), platform="gpu"
    ),
    # Sums, products and gathers.
    "max_unrolled_terms": Threshold(programs.long_sum, (32, 64, 128, 192)),
    "max_loop_free_size": Threshold(programs.constant_product, (16, 32, 64, 128, 256)),
    "max_padding_factor": Threshold(programs.padded_scatter, (1, 2, 4, 8)),
    "max_compared_table": Threshold(
        programs.table_lookup, (64, 128, 256, 512, 1024), platform="tpu"
    ),
    "max_dense_rows": Threshold(programs.tree_sum, (4, 8, 16, 32)),
    # Contacts and rows.
    "contacts_per_chunk": Choice(programs.quadruped, (1, 2, 4, 8, 16)),
    "min_group_reduction": Threshold(
        lambda sizes: programs.trees(sizes, floor=True),
        ((8, 2), (8, 4), (6, 6), (6, 6, 6)),
        lambda sizes: {"min_group_reduction": 1.01 * group_reduction(sizes)},
        lambda sizes: {"min_group_reduction": 0.99 * group_reduction(sizes)},
    ),
    "ipc_rows_per_chunk": Choice(programs.shell_in_ipc, (4, 16, 32, 64)),
    # Selection of contacts and pairs.
    "pairs_per_chunk": Choice(lambda: programs.pairs(45), (1, 2, 4, 8, 16)),
    "max_counted_slots": Threshold(programs.order, (64, 128, 256, 512)),
    "max_untested_pairs": Threshold(
        programs.pairs, (15, 28, 45, 66), beyond=lambda n: {"max_untested_pairs": 0}
    ),
    "max_untested_entries": Threshold(
        lambda n: programs.sheet_and_balls(n // 2),
        (36, 64, 100, 196),
        beyond=lambda n: {"max_untested_entries": 0},
    ),
    "max_table_entries": Threshold(
        programs.two_sheets,
        (7, 9, 11),
        lambda side: {"max_table_entries": 2**30},
        lambda side: {"max_table_entries": 0},
    ),
    "max_cluster_elements": Choice(
        lambda: programs.two_sheets(11), (8, 16, 32), {"max_table_entries": 0}
    ),
    # Compaction of searches.
    "search_lanes": Choice(programs.rays, (32, 64, 128, 256, 512)),
    "pair_lanes": Choice(programs.hulls, (8, 16, 32, 64, 128)),
    "gjk_lanes": Choice(programs.convex, (1, 4, 8, 16, 32, 128)),
    "epa_lanes": Choice(programs.hulls, (1, 2, 4, 16, 64)),
    "contact_lanes": Choice(programs.hulls, (1, 4, 8, 16, 64)),
    "clip_lanes": Choice(programs.hulls, (1, 4, 8, 16)),
    "min_search_lanes": Choice(lambda: programs.convex(6, worlds=1), (2, 4, 8, 16), platform="gpu"),
    "pairs_per_contact": Choice(programs.convex, (2, 4, 8, 16), platform="gpu"),
    "prisms_per_lane": Choice(programs.hills, (2, 4, 8, 16)),
    "hull_vertices_per_chunk": Choice(programs.bare_mesh, (16, 32, 64, 128)),
    "ray_pairs_per_lane": Choice(programs.rays, (16, 64, 256, 1024)),
    "pixels_per_lane": Choice(programs.picture, (8, 32, 64, 150)),
    "max_tangent_lanes": Choice(programs.tangents, (256, 1024, 2048, 4096)),
}


def measure(field: str, repeats: int) -> dict:
    """Measure one field and print the result."""
    measurement, own = MEASUREMENTS[field], getattr(tuning.tuning(), field)
    print(f"{field} = {own}", flush=True)
    result = {"field": field, "value": own}
    if jax.default_backend() != measurement.platform:
        print(f"  not measured: needs a {measurement.platform}")
        return result | {"not_measured": f"needs a {measurement.platform}"}
    print(f"  {'':>12} {'run':>8} {'compile':>8}")
    return result | measurement.measure(field, repeats)


def main() -> None:
    ap = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    ap.add_argument("--only", nargs="+", metavar="NAME", choices=MEASUREMENTS)
    ap.add_argument("--repeats", type=int, default=30, help="rounds of which the best counts")
    ap.add_argument("--json", help="file for the results")
    args = ap.parse_args()
    rows = [measure(field, args.repeats) for field in args.only or MEASUREMENTS]
    if args.json:
        from throughput import machine

        Path(args.json).write_text(
            json.dumps({"machine": machine(), "rows": rows}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
