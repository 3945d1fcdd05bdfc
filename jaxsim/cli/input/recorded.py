"""A motion that was recorded, and the model that it is of."""

from pathlib import Path

from jaxsim.cli.problem import InputProblem
from jaxsim.rollout.trajectory import Trajectory, load_trajectory


def read_motion(path: str) -> Trajectory:
    """Read a motion; InputProblem says what is wrong with the file."""
    try:
        return load_trajectory(path)
    except FileNotFoundError:
        here = Path.cwd()
        raise InputProblem(
            f"{path}: there is no such file; the current folder is '{here}'"
        ) from None
    except IsADirectoryError:
        raise InputProblem(f"{path}: this is a folder; give the .npz file inside it") from None
    except (OSError, ValueError) as error:
        record = f"a model; record a motion of it first: jaxsim rollout {path} --out motion.npz"
        is_model = Path(path).suffix in (".xml", ".urdf", ".mjz", ".zip")
        raise InputProblem(f"{path}: {record}" if is_model else str(error)) from None


def model_of(path: str, motion: Trajectory, given: str | None) -> str | None:
    """Return the file of the model of a motion: as given, beside the motion, here, or where it was.

    Args:
      path: the file of the motion.
      motion: what is in it.
      given: the model that was named instead.
    """
    if given is not None:
        return given
    name, was_at = motion.header.get("model"), motion.header.get("path")
    if not isinstance(name, str):
        return None
    places = [Path(path).parent / name, Path(name)]
    if isinstance(was_at, str):
        places.append(Path(was_at))
    return next((str(place) for place in places if place.is_file()), None)
