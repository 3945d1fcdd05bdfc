"""Measured thresholds of the numerical code: sizes at which one form becomes faster than another.

The values were measured on two CPU cores with vectors of 512 bits, and on a GPU. Another machine
has others: `benchmarks/tuning.py --only NAME` measures the forms on both sides of a threshold and
prints where they cross (docs/developer/tuning.md). An experiment replaces values for the programs
that are traced, and the models that are loaded, inside of a context:

    with tuning.override(max_unrolled_dofs=16):
        step = jax.jit(jaxsim.step).lower(m, d).compile()

Results do not depend on them, apart from rounding. Capacities, tolerances, iteration limits and
constants of MuJoCo are no thresholds; they are next to the code that uses them.
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass, fields, replace
from typing import Any

from jaxsim.spelling import check_options
from jaxsim.trace_context import trace_context, trace_with
from jaxsim.transforms.platform import platform_name


@dataclass(frozen=True)
class Tuning:
    """The thresholds, with their units in brackets; names with `max` and `min` are inclusive."""

    # Fused kernels of a CPU: cpu_fusion.py.
    max_kernel_operations: int = 600  # [equations] of a kernel; threads compile kernels in parallel
    max_loop_operations: int = 10_000  # [equations] of a loop in one kernel; larger ones are opened
    min_kernel_operations: int = 8  # [equations] that are worth a kernel
    max_kernel_multiplications: int = 8192  # [products] of a matrix product in a kernel

    # Tiles of worlds on a CPU: layout.py, physics/solver/per_world.py.
    world_tiles: tuple[int, int, int] = (4, 8, 16)  # [worlds] for few worlds, half a vector, one
    tile_8_cost: float = 1.08  # [1] time of a world in a tile of 8, relative to a tile of 16
    max_tiled_dofs: int = 96  # [dofs] of systems that are solved for a tile of worlds together

    # Linear systems on a CPU: linalg/.
    max_unrolled_dofs: int = 48  # [dofs] of many worlds by unrolled panels; of one world, dense
    max_short_unrolled_dofs: int = 8  # [dofs] by panels also where a short program counts
    max_row_loop_dofs: int = 96  # [dofs] of one world, by rows in a kernel, not by LAPACK
    max_library_dofs: int = 192  # [dofs] that LAPACK factorizes on the calling thread
    library_block_dofs: int = 128  # [dofs] of the blocks of larger systems
    panel_columns: int = 4  # [columns] of a panel of the unrolled factorization
    blocked_lower_steps: int = 3  # [steps] of blocks of equal height of the blocked one
    skyline_tile: tuple[int, int] = (8, 16)  # [rows, columns] of a skyline matrix
    qr_rows_per_column: int = 4  # [1] shape of the blocks of a QR decomposition of a tall matrix
    min_block_speedup: float = 4  # [1] fewer operations by blocks or entries than by a dense matrix

    # Linear systems in GPU kernels: linalg/spd_kernel.py.
    kernel_tile_side: int = 16  # [rows] of a tile, if one as wide as a warp cannot hold the system
    max_kernel_dofs: int = 95  # [dofs] whose tiles, with b, fit the registers of a warp

    # Sums, products and gathers: arrays/.
    max_unrolled_terms: int = 128  # [terms] of a sum of products that is unrolled
    max_loop_free_size: int = 32  # [numbers] of a constant matrix whose product needs no loop
    max_padding_factor: float = 2  # [1] padded over real items of a scatter that gathers by group
    max_compared_table: int = 256  # [items] searched by comparison where gathers are slow
    max_dense_rows: int = 8  # [rows] of 0/1 matrices of a tree, which a pass through it replaces

    # Contacts and rows: arrays/products.py, physics/constraint/contact/groups.py.
    contacts_per_chunk: int = 4  # [contacts] of an iteration over those that exist
    min_group_reduction: float = 2  # [1] shorter rows by storing the dofs of touched trees only
    ipc_rows_per_chunk: int = 32  # [rows] of an iteration over the rows of one world with flag ipc

    # Selection of contacts and pairs: physics/collision/compact.py.
    pairs_per_chunk: int = 4  # [pairs] tested in closed form at a time, up to the last near one
    max_counted_slots: int = 256  # [slots] ordered by counting in a kernel, not sorted outside
    max_untested_pairs: int = 16  # [pairs] of geoms for which no broad phase is worth its cost
    max_untested_entries: int = 64  # [entries] of flexes for which none is
    max_table_entries: int = 2**14  # [entries] of flexes in a static table, not by clusters
    max_cluster_elements: int = 16  # [elements] of a cluster of a flex

    # Compaction of searches: a lane is a pair of shapes or a ray.
    search_lanes: int = 128  # [lanes] rays that are searched at a time
    pair_lanes: int = 64  # [lanes] near pairs of geoms that a collider with tables gets at a time
    gjk_lanes: int = 4  # [lanes] pairs of shapes in an iteration of GJK, which ends with the last
    epa_lanes: int = 1  # [lanes] pairs whose polytopes grow together
    contact_lanes: int = 4  # [lanes] pairs whose contact points are computed together
    clip_lanes: int = 1  # [lanes] pairs in flat contact whose faces are clipped together
    min_search_lanes: int = 8  # [lanes] that are worth a chunk
    pairs_per_contact: int = 8  # [1] pairs of a world for each lane that finds contacts
    prisms_per_lane: int = 8  # [1] prisms of height fields in a chunk, most of which miss
    hull_vertices_per_chunk: int = 64  # [vertices] of a mesh without hull
    ray_pairs_per_lane: int = 256  # [1] pairs of ray and geom in a block
    pixels_per_lane: int = 64  # [1] pixels of an image that are drawn at a time
    max_tangent_lanes: int = 2048  # [lanes] worlds times directions of a sensitivity


_CPU = Tuning()
# GPUs and TPUs run wide loops.
_ACCELERATOR: dict[str, Any] = dict.fromkeys(
    ("search_lanes", "gjk_lanes", "epa_lanes", "contact_lanes", "clip_lanes"), 16384
)


def tuning() -> Tuning:
    """Return the thresholds for the program being traced."""
    changed: dict[str, Any] = dict(trace_context().tuning)
    if platform_name() != "cpu":
        changed = _ACCELERATOR | changed
    return replace(_CPU, **changed) if changed else _CPU


def override(**values: Any) -> AbstractContextManager:
    """Return a context in which programs are traced, and models loaded, with other thresholds.

    Raises:
      TypeError: there is no threshold of this name.
    """
    check_options("tuning.override", values, [f.name for f in fields(Tuning)])
    changed = dict(trace_context().tuning) | values
    return trace_with(tuning=tuple(sorted(changed.items())))
