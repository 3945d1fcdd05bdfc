"""Shapes that functions of MJX's `math` take and return, and what compares a module with them."""

from types import ModuleType

import jax
import jax.numpy as jnp

# shapes of arguments and of results in MJX 3.17; test_mjx.py compares with the MJX there is
SHAPES = """
norm () -> ()
norm 1 -> ()
norm 4 -> ()
norm 5.3 -> ()
norm 2.3.4 -> ()
normalize () -> ()
normalize 1 -> 1
normalize 4 -> 4
normalize 5.3 -> 5.3
normalize 2.3.4 -> 2.3.4
normalize_with_norm () -> () ()
normalize_with_norm 1 -> 1 ()
normalize_with_norm 4 -> 4 ()
normalize_with_norm 5.3 -> 5.3 ()
normalize_with_norm 2.3.4 -> 2.3.4 ()
sign () -> ()
sign 1 -> 1
sign 4 -> 4
sign 5.3 -> 5.3
sign 2.3.4 -> 2.3.4
safe_div () () -> ()
safe_div () 1 -> 1
safe_div () 4 -> 4
safe_div () 5.3 -> 5.3
safe_div () 2.3.4 -> 2.3.4
safe_div 1 () -> 1
safe_div 1 1 -> 1
safe_div 1 4 -> 4
safe_div 1 5.3 -> 5.3
safe_div 1 2.3.4 -> 2.3.4
safe_div 4 () -> 4
safe_div 4 1 -> 4
safe_div 4 4 -> 4
safe_div 4 2.3.4 -> 2.3.4
safe_div 5.3 () -> 5.3
safe_div 5.3 1 -> 5.3
safe_div 5.3 5.3 -> 5.3
safe_div 2.3.4 () -> 2.3.4
safe_div 2.3.4 1 -> 2.3.4
safe_div 2.3.4 4 -> 2.3.4
safe_div 2.3.4 2.3.4 -> 2.3.4
rotate 3 4 -> 3
quat_inv 4 -> 4
quat_inv 1.4 -> 1.4
quat_inv 4.1 -> 4.4
quat_inv 5.4 -> 5.4
quat_inv 1 -> 4
quat_mul 4 4 -> 4
quat_mul 4 1.4 -> 4.4
quat_mul 4 4.1 -> 4.1
quat_mul 4 4.5 -> 4.5
quat_mul 4 5.4 -> 4.4
quat_mul 4 1 -> 4
quat_mul 1.4 4 -> 4.4
quat_mul 1.4 1.4 -> 4.4
quat_mul 1.4 4.1 -> 4.4
quat_mul 1.4 5.4 -> 4.4
quat_mul 1.4 1 -> 4.4
quat_mul 4.1 4 -> 4.1
quat_mul 4.1 1.4 -> 4.4
quat_mul 4.1 4.1 -> 4.1
quat_mul 4.1 4.5 -> 4.5
quat_mul 4.1 5.4 -> 4.4
quat_mul 4.1 1 -> 4.1
quat_mul 4.5 4 -> 4.5
quat_mul 4.5 4.1 -> 4.5
quat_mul 4.5 4.5 -> 4.5
quat_mul 4.5 1 -> 4.5
quat_mul 5.4 4 -> 4.4
quat_mul 5.4 1.4 -> 4.4
quat_mul 5.4 4.1 -> 4.4
quat_mul 5.4 5.4 -> 4.4
quat_mul 5.4 1 -> 4.4
quat_mul 1 4 -> 4
quat_mul 1 1.4 -> 4.4
quat_mul 1 4.1 -> 4.1
quat_mul 1 4.5 -> 4.5
quat_mul 1 5.4 -> 4.4
quat_mul 1 1 -> 4
quat_mul_axis 4 3 -> 4
quat_mul_axis 4 3.1 -> 4.1
quat_mul_axis 4 3.5 -> 4.5
quat_mul_axis 1.4 3 -> 4.4
quat_mul_axis 1.4 3.1 -> 4.4
quat_mul_axis 4.1 3 -> 4.1
quat_mul_axis 4.1 3.1 -> 4.1
quat_mul_axis 4.1 3.5 -> 4.5
quat_mul_axis 4.5 3 -> 4.5
quat_mul_axis 4.5 3.1 -> 4.5
quat_mul_axis 4.5 3.5 -> 4.5
quat_sub 4 4 -> 3
quat_sub 4 1 -> 3
quat_sub 4 () -> 3
quat_sub 1 4 -> 3
quat_sub 1 1 -> 3
quat_sub 1 () -> 3
quat_to_mat 4 -> 3.3
quat_to_mat 1.4 -> 3.3
quat_to_mat 4.1 -> 3.3
quat_to_mat 4.5 -> 3.3
quat_to_mat 5.4 -> 3.3
quat_to_mat 1 -> 3.3
quat_to_axis_angle 4 -> 3 ()
quat_to_axis_angle 1.4 -> 0.4 4
quat_to_axis_angle 4.1 -> 3.1 1
quat_to_axis_angle 4.5 -> 3.5 5
quat_to_axis_angle 5.4 -> 4.4 4
quat_to_axis_angle 1 -> 0 ()
axis_angle_to_quat 3 () -> 4
axis_angle_to_quat 3 1 -> 4
axis_angle_to_quat 3 3 -> 6
axis_angle_to_quat 1.3 () -> 4
axis_angle_to_quat 1.3 1 -> 4
axis_angle_to_quat 1.3 3 -> 6
axis_angle_to_quat 3.1 () -> 4
axis_angle_to_quat 3.1 1 -> 4
axis_angle_to_quat 3.1 3 -> 12
axis_angle_to_quat 1 () -> 2
axis_angle_to_quat 1 1 -> 2
axis_angle_to_quat 1 3 -> 6
quat_integrate 4 3 () -> 4
quat_integrate 4 3 1 -> 4
quat_integrate 4 1.3 () -> 4
quat_integrate 4 1.3 1 -> 4
quat_integrate 4.5 3 () -> 4.5
quat_integrate 4.5 3 1 -> 4.5
quat_integrate 4.5 1.3 () -> 4.5
quat_integrate 4.5 1.3 1 -> 4.5
motion_cross 6 6 -> 6
motion_cross_force 6 6 -> 6
inert_mul 10 6 -> 6
transform_motion 6 3 3.3 -> 6
matmul_unroll 3.3 3.3 -> 3.3
matmul_unroll 3.3 3.1 -> 3.1
matmul_unroll 3.3 3.3.5 -> 3.3.5
matmul_unroll 1.3 3.3 -> 1.3
matmul_unroll 1.3 3.1 -> 1.1
matmul_unroll 1.3 3.3.5 -> 1.3.5
matmul_unroll 3.3.5 3.3 -> 3.3.5
matmul_unroll 3.3.5 3.1 -> 3.1.5
matmul_unroll 3.3.5 3.3.5 -> 3.3.5
orthogonals 3 -> 3 3
make_frame 3 -> 3.3
closest_segment_point 3 3 3 -> 3
closest_segment_point 3 3 1 -> 3
closest_segment_point 3 3 () -> 3
closest_segment_point 2 2 2 -> 2
closest_segment_point 2 2 1 -> 2
closest_segment_point 2 2 () -> 2
closest_segment_point_and_dist 3 3 3 -> 3 ()
closest_segment_point_and_dist 3 3 1 -> 3 ()
closest_segment_point_and_dist 3 3 () -> 3 ()
closest_segment_point_and_dist 2 2 2 -> 2 ()
closest_segment_point_and_dist 2 2 1 -> 2 ()
closest_segment_point_and_dist 2 2 () -> 2 ()
closest_segment_to_segment_points 3 3 3 3 -> 3 3
closest_segment_to_segment_points 3 3 3 () -> 3 3
closest_segment_to_segment_points 3 3 () 3 -> 3 3
closest_segment_to_segment_points 3 3 () () -> 3 3
closest_segment_to_segment_points 3 1 3 3 -> 3 3
closest_segment_to_segment_points 3 1 3 () -> 3 3
closest_segment_to_segment_points 3 1 () 3 -> 3 3
closest_segment_to_segment_points 3 1 () () -> 3 3
closest_segment_to_segment_points 2 2 2 2 -> 2 2
closest_segment_to_segment_points 2 2 2 () -> 2 2
closest_segment_to_segment_points 2 2 () 2 -> 2 2
closest_segment_to_segment_points 2 2 () () -> 2 2
closest_segment_to_segment_points 2 1 2 2 -> 2 2
closest_segment_to_segment_points 2 1 2 () -> 2 2
closest_segment_to_segment_points 2 1 () 2 -> 2 2
closest_segment_to_segment_points 2 1 () () -> 2 2
closest_segment_to_segment_points 1 3 3 3 -> 3 3
closest_segment_to_segment_points 1 3 3 () -> 3 3
closest_segment_to_segment_points 1 3 () 3 -> 3 3
closest_segment_to_segment_points 1 3 () () -> 3 3
closest_segment_to_segment_points 1 2 2 2 -> 2 2
closest_segment_to_segment_points 1 2 2 () -> 2 2
closest_segment_to_segment_points 1 2 () 2 -> 2 2
closest_segment_to_segment_points 1 2 () () -> 2 2
closest_segment_to_segment_points 1 1 () () -> 1 1
"""
CASES = SHAPES.split("\n")[1:-1]


def shape(text: str) -> tuple[int, ...]:
    return () if text == "()" else tuple(map(int, text.split(".")))


def result_shapes(module: ModuleType, case: str) -> str:
    """The case with the shapes of the results that a module of functions gives."""
    call, _, _ = case.partition(" ->")
    name, *arguments = call.split()
    given = [jax.ShapeDtypeStruct(shape(text), jnp.float32) for text in arguments]
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        found = jax.eval_shape(getattr(module, name), *given)
    results = [".".join(map(str, a.shape)) or "()" for a in jax.tree.leaves(found)]
    return f"{call} -> {' '.join(results)}"
