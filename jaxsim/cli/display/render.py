"""`jaxsim render MODEL.xml`, `jaxsim render motion.npz`: render images and videos without a
window."""

import argparse
import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.atomic_write import whole_file
from jaxsim.cli.input.controls import initial_data
from jaxsim.cli.input.recorded_motion import read_motion, required_model_of
from jaxsim.cli.input.resource_limits import check_writable
from jaxsim.cli.progress import Progress
from jaxsim.cli.user_error import InputProblem, convert_drawing_errors
from jaxsim.enums import IntegratorType, SolverType
from jaxsim.errors import UnsupportedError
from jaxsim.io.load import load_model
from jaxsim.io.phase import named_phase
from jaxsim.model.allocate import check_supported
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data
from jaxsim.view.browser.draw.poses import POSE_STATE_FIELDS, Posing
from jaxsim.view.browser.motion import RecordedMotion, motion_of
from jaxsim.view.camera import Camera
from jaxsim.view.default_camera import FileCamera
from jaxsim.view.picture.appearance import Look
from jaxsim.view.picture.output import resolution
from jaxsim.view.picture.render import render

STILLS, FILMS = (".png", ".jpg"), (".gif", ".mp4")
_DEFAULT_IMAGE_SIZE = (640, 480)  # pixels of an image of one world
_DEFAULT_WORLD_SIZE = (320, 240)  # pixels of a world in a mosaic or a video
_DEFAULT_FILM_SECONDS = 4.0  # default length of a video of a model
# Largest default frame rates. The delays of a GIF are multiples of 0.01 s, and browsers slow down
# those below 0.02 s.
_FRAME_RATES = {".mp4": 60.0, ".gif": 50.0}
_NEAR_DISTANCE = 0.01  # largest near clipping distance of the default camera, in its distances
_MAX_FRAMED_STATES = 48  # number of states of a motion that the default camera examines

_PoseStates = dict[str, np.ndarray]  # POSE_STATE_FIELDS by name, (pictures, worlds, ...)


def render_file(args: argparse.Namespace) -> int:
    """Write an image or a video."""
    moving = Path(args.file).suffix == ".npz"
    if Path(args.file).is_dir():
        raise InputProblem(f"{args.file}: this is a folder; give the file inside it")
    if not moving and args.model is not None:
        raise InputProblem("--model: goes with a motion; the model to draw is the first argument")
    out = Path(args.out or Path(args.file).with_suffix(".png"))
    _check_out(out)
    motion = read_motion(args.file) if moving else None
    source = args.file if motion is None else required_model_of(args.file, motion, args.model)
    m = _load_drawable(load_model(source), moving or (out.suffix in STILLS and not args.seconds))
    try:
        recorded = None if motion is None else motion_of(m, motion)
        camera = None if args.camera is None else Camera.fixed(m, _id(args.camera))
    except ValueError as error:
        raise InputProblem(f"{args.file}: {error}") from None
    film = out.suffix in FILMS
    args.fps = args.fps or _frame_rate(out, recorded)
    states = (
        _simulate_worlds(m, args, film)
        if recorded is None
        else _replay_worlds(recorded, args, film)
    )
    look = _make_look(m, source)
    settings = FileCamera.of(source) if _is_mjcf(source) else FileCamera()
    if camera is None:
        try:
            camera = settings.fixed_camera(m)
        except ValueError as error:
            raise InputProblem(f"{source}: <visual><global cameraid>: {error}") from None
    args.size = args.size or _image_size(m, camera, film or args.worlds > 1)
    if camera is None:
        camera = _frame_states(m, states, settings, args)
        # The extent of a large floor would clip small bodies.
        near = _NEAR_DISTANCE * float(camera.distance) / float(m.stat.extent)
        look = look.replace(znear=min(look.znear, near))
    draw, number = _make_drawing(m, camera, look, args), len(states["qpos"])
    pictures = (draw(d) for d in _worlds_at(m, states))
    _write_image(out, _show_progress(pictures, number, args.worlds), args.fps)
    width, height = _mosaic_size(args)
    print(f"{'wrote':11} {out}: {width} x {height}, {number} picture{'s' * (number > 1)}")
    return 0


def _load_drawable(m: Model, still: bool) -> Model:
    """Return a model whose poses can be drawn, also if it cannot be simulated and need not be."""
    if not m.unsupported:
        return m
    try:
        check_supported(m)
    except UnsupportedError as error:
        if not still:
            raise InputProblem(
                f"cannot be simulated; only its initial state or a motion can be drawn:\n{error}"
            ) from None
        print(f"cannot be simulated, only looked at:\n{error}", flush=True)
    # Poses depend neither on options nor on unsupported features.
    opt = m.opt.replace(
        enableflags=0,
        integrator=IntegratorType.EULER,
        solver=SolverType.NEWTON,
        noslip_iterations=0,
    )
    known = m.structure.replace(refusals=(), contact_refusals=())
    return m.replace(structure=known, opt=opt)


def _check_out(out: Path) -> None:
    """Check that the file type is known, its writer is installed, and the file can be written."""
    if out.suffix not in STILLS + FILMS:
        raise InputProblem(f"--out: '{out}' ends in none of {', '.join(STILLS + FILMS)}")
    require("PIL.Image", "render")
    if out.suffix == ".mp4":
        require("imageio_ffmpeg", "render")
    check_writable("--out", out)


def _make_look(m: Model, source: str) -> Look:
    return Look.of(m, source) if _is_mjcf(source) else Look.of(m)


def _is_mjcf(source: str) -> bool:
    return Path(source).suffix in (".xml", ".mjz", ".zip")


def _frame_rate(out: Path, motion: RecordedMotion | None) -> float:
    """Return the default frame rate of a video: that of the records of a motion if it is lower."""
    rate = _FRAME_RATES.get(out.suffix, max(_FRAME_RATES.values()))
    if motion is None or motion.records < 2:
        return rate
    return min(rate, (motion.records - 1) / float(motion.time[-1]))


def _frame_states(
    m: Model, states: _PoseStates, settings: FileCamera, args: argparse.Namespace
) -> Camera:
    """Return the free camera that frames the bodies of all worlds in all pictures."""
    number, posing = len(states["qpos"]), Posing(m)
    records = np.linspace(0, number - 1, min(number, _MAX_FRAMED_STATES)).round().astype(int)
    poses = [posing.of({name: x[i] for name, x in states.items()}) for i in records]
    return settings.frame(m, poses, aspect=args.size[0] / args.size[1])


def _id(camera: str) -> int | str:
    return int(camera) if camera.isdigit() else camera


def _image_size(m: Model, camera: Camera | None, small: bool) -> tuple[int, int]:
    """Return the size of a camera's images: its resolution, if the model specifies one."""
    own = None if camera is None else resolution(m, camera.fixedcamid)
    return own or (_DEFAULT_WORLD_SIZE if small else _DEFAULT_IMAGE_SIZE)


def _mosaic_size(args: argparse.Namespace) -> tuple[int, int]:
    """Return the size of the mosaic of all worlds."""
    columns, rows = _grid(args.worlds)
    return columns * args.size[0], rows * args.size[1]


def _grid(worlds: int) -> tuple[int, int]:
    columns = int(np.ceil(np.sqrt(worlds)))
    return columns, -(-worlds // columns)


def _make_drawing(
    m: Model, camera: Camera | None, look: Look, args: argparse.Namespace
) -> Callable[[Data], np.ndarray]:
    """Return a function from a batch of worlds to a mosaic image, (height, width, 3) uint8."""
    width, height = (args.samples * n for n in args.size)

    @jax.jit
    def draw(m: Model, d: Data, look: Look) -> jax.Array:
        def one(d: Data) -> jax.Array:
            found = render(m, d, camera, width, height, what="rgb", look=look).rgb
            assert found is not None
            fine = found.reshape(args.size[1], args.samples, args.size[0], args.samples, 3)
            return (255 * fine.mean(axis=(1, 3)) + 0.5).astype(jnp.uint8)

        return jax.vmap(one)(d)

    columns, rows = _grid(args.worlds)

    def mosaic(d: Data) -> np.ndarray:
        each = np.asarray(draw(m, d, look))
        empty = np.zeros((rows * columns - len(each), *each.shape[1:]), np.uint8)
        grid = np.concatenate([each, empty]).reshape(rows, columns, *each.shape[1:])
        return grid.swapaxes(1, 2).reshape(rows * each.shape[1], columns * each.shape[2], 3)

    return mosaic


def _simulate_worlds(m: Model, args: argparse.Namespace, film: bool) -> _PoseStates:
    """Return the states of a model: the initial ones, and for a video those of a rollout with
    random controls."""
    d = initial_data(m, args.key)
    d = jax.tree.map(lambda x: jnp.broadcast_to(x, (args.worlds, *x.shape)), d)
    key, dt = jax.random.key(args.seed), float(m.opt.timestep)
    low = jnp.where(m.actuator_ctrllimited, m.actuator_ctrlrange[:, 0], -1)
    high = jnp.where(m.actuator_ctrllimited, m.actuator_ctrlrange[:, 1], 1)
    seconds = args.seconds or (_DEFAULT_FILM_SECONDS if film else 0.0)
    # The time of each picture, in steps from the start.
    times = np.arange(max(1, round(seconds * args.fps))) / args.fps if film else [seconds]
    steps = np.round(np.array(times) / dt).astype(np.int32)
    if steps[-1] > 0:
        unit = jax.random.uniform(key, (args.worlds, m.nu), low.dtype)
        d = d.replace(ctrl=low[None] + unit * (high - low)[None])

    @jax.jit
    def advance(m: Model, d: Data, count: jax.Array) -> Data:
        return jax.lax.fori_loop(0, count, lambda _, d: jax.vmap(step, (None, 0))(m, d), d)

    states = []
    with named_phase("compile and simulate"):
        for count in np.diff(steps, prepend=0):
            d = advance(m, d, jnp.int32(count)) if count else d
            states.append({name: np.asarray(getattr(d, name)) for name in POSE_STATE_FIELDS})
    return {name: np.stack([x[name] for x in states]) for name in POSE_STATE_FIELDS}


def _replay_worlds(motion: RecordedMotion, args: argparse.Namespace, film: bool) -> _PoseStates:
    """Return the states of a motion: over time for a video; at `--seconds`, by default the end, for
    an image."""
    if args.key is not None:
        raise InputProblem("--key: not allowed with a motion, which has its own start")
    if args.worlds > motion.worlds:
        raise InputProblem(f"--worlds {args.worlds}: the motion has {motion.worlds}")
    end = float(motion.time[-1])
    asked = end if args.seconds is None else min(args.seconds, end)
    times = np.arange(0, asked + 1e-9, 1 / args.fps) if film else np.array([asked])
    records = np.clip(np.searchsorted(motion.time, times - 1e-9), 0, motion.records - 1)
    return {
        name: motion.state[name][records, : args.worlds]
        for name in POSE_STATE_FIELDS
        if name in motion.state
    }


def _worlds_at(m: Model, states: _PoseStates) -> Iterator[Data]:
    """Yield the worlds of each picture."""
    one, worlds = make_data(m), states["qpos"].shape[1]
    d = jax.tree.map(lambda x: jnp.broadcast_to(x, (worlds, *x.shape)), one)
    for i in range(len(states["qpos"])):
        yield d.replace(**{n: jnp.asarray(x[i], m.qpos0.dtype) for n, x in states.items()})


def _show_progress(
    pictures: Iterator[np.ndarray], number: int, worlds: int
) -> Iterator[np.ndarray]:
    with named_phase("compile and draw the first picture"):
        first = next(pictures)
    bar = Progress(number, worlds, unit="pictures")
    try:
        for k, picture in enumerate(itertools.chain([first], pictures)):
            yield picture
            bar.show(k + 1)
    finally:
        bar.close()


def _write_image(out: Path, pictures: Iterator[np.ndarray], fps: float) -> None:
    """Write one file atomically."""
    with convert_drawing_errors(out):
        try:
            with whole_file(out) as part:
                if out.suffix == ".mp4":
                    _write_mp4(part, pictures, fps)
                else:
                    _write_images(part, pictures, fps)
        except OSError as error:
            raise InputProblem(f"--out: {error}") from None


def _write_images(out: Path, pictures: Iterator[np.ndarray], fps: float) -> None:
    """Write an image, or a video as GIF."""
    images = [require("PIL.Image", "render").fromarray(p) for p in pictures]
    if out.suffix != ".gif":
        images[0].save(out)
        return
    # Rounded to the times that a GIF can represent, without a drift.
    times = np.round(100 / fps * np.arange(len(images) + 1))
    pauses = [int(10 * pause) for pause in np.diff(times)]
    images[0].save(out, save_all=True, append_images=images[1:], duration=pauses, loop=0)


def _write_mp4(out: Path, pictures: Iterator[np.ndarray], fps: float) -> None:
    first = _pad_to_even(next(pictures))
    size = first.shape[1], first.shape[0]
    ffmpeg = require("imageio_ffmpeg", "render")
    writer = ffmpeg.write_frames(str(out), size, fps=fps, macro_block_size=1)
    writer.send(None)
    try:
        writer.send(first)
        for picture in pictures:
            writer.send(_pad_to_even(picture))
    finally:
        writer.close()


def _pad_to_even(picture: np.ndarray) -> np.ndarray:
    """Return an image padded to even width and height, as video codecs require."""
    height, width = picture.shape[:2]
    return np.pad(picture, ((0, height % 2), (0, width % 2), (0, 0)), mode="edge")
