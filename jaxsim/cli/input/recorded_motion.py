"""Read a recorded motion, and locate its model."""

from pathlib import Path

from jaxsim.batch.trajectory import Trajectory, load_trajectory
from jaxsim.cli.user_error import InputProblem


def read_motion(path: str) -> Trajectory:
    """Return the motion in a file; InputProblem gives the reason if it cannot be read."""
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


def model_file_of(path: str, motion: Trajectory, given: str | None) -> str | None:
    """Return the model file of a motion: as given, next to it, in this folder, or its original
    path.

    Args:
      path: the file of the motion.
      motion: the motion.
      given: the model that the user named; None: none.
    """
    if given is not None:
        return given
    name, was_at = motion.header.get("model"), motion.header.get("path")
    if not isinstance(name, str):
        return None
    candidates = [Path(path).parent / name, Path(name)]
    if isinstance(was_at, str):
        candidates.append(Path(was_at))
    return next((str(candidate) for candidate in candidates if candidate.is_file()), None)


def required_model_of(path: str, motion: Trajectory, given: str | None) -> str:
    """Return `model_file_of` a motion; InputProblem if there is none."""
    found = model_file_of(path, motion, given)
    if found is None:
        raise InputProblem(
            f"{path}: its model '{motion.header.get('model')}' is neither next to it nor in the "
            "working directory; give it by --model MODEL.xml"
        )
    return found
