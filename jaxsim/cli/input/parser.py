"""Parser that suggests the nearest command or option, and arguments that several commands have."""

import argparse
import re
import sys
from typing import Any, NoReturn

from jaxsim.assets.source.limits import LIMITS
from jaxsim.cli.input.values import parse_count, parse_index, parse_limit
from jaxsim.spelling import remedy

_MODEL_HELP = "a model in MJCF, or one that `jaxsim compile` wrote"


class Parser(argparse.ArgumentParser):
    """Argument parser that suggests the nearest command or option."""

    def __init__(self, *args: Any, **options: Any):
        self.known: list[str] = []  # option strings
        self.commands: Any = None
        super().__init__(*args, **options)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument and record its option strings."""
        self.known += [n for n in names if isinstance(n, str) and n.startswith("--")]
        return super().add_argument(*names, **options)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse arguments; report the first unknown one."""
        first = next(iter(sys.argv[1:] if args is None else args), "")
        if first.startswith("--") and not any(name.startswith(first) for name in self.known):
            self.error(f"unrecognized arguments: {first}{remedy(first, self.known)}")
        found, rest = self.parse_known_args(args, namespace)
        if rest:
            command = self.commands.choices[found.command]
            wrong = next((x for x in rest if x.startswith("-")), rest[0])
            near = remedy(wrong.partition("=")[0], command.known)
            command.error(f"unrecognized arguments: {' '.join(rest)}{near}")
        return found

    def error(self, message: str) -> NoReturn:
        """Print the usage and a message; exit with 2."""
        wrong = re.search(r"argument COMMAND: invalid choice: '([^']*)'", message)
        if wrong and self.commands is not None:
            known = list(self.commands.choices)
            otherwise = "; there are: " + ", ".join(known)
            near = remedy(wrong[1], known, otherwise)
            message = f"argument COMMAND: invalid choice: '{wrong[1]}'{near}"
        super().error(message)


def share(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add arguments that several commands have."""
    for name in names:
        parser.add_argument(name, **_SHARED_ARGUMENTS[name])


def add_distributed(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of a command that can run in several processes."""
    parser.add_argument(
        "--distributed",
        action="store_true",
        help="divide the worlds among all devices of all processes that Slurm, MPI, Kubernetes or "
        "a cloud TPU has started: docs/distributed.md",
    )
    parser.add_argument(
        "--coordinator",
        metavar="HOST:PORT",
        help="address of process 0, for processes that were started by hand",
    )
    parser.add_argument("--processes", type=parse_count, metavar="N", help="number of processes")
    parser.add_argument(
        "--process", type=parse_index, metavar="I", help="index of this process, from 0"
    )
    parser.add_argument(
        "--heartbeat",
        type=parse_count,
        default=100,
        metavar="SECONDS",
        help="seconds after which a process without a sign of life ends the others (default 100)",
    )


def add_tier(parser: argparse.ArgumentParser, default: str = "auto") -> None:
    """Add the argument that chooses how programs are compiled."""
    parser.add_argument(
        "--tier",
        choices=("auto", "fast", "optimized"),
        default=default,
        help="compile quickly and optimize in the background (auto), or one of them alone, with "
        f"the same bits in each run (default: {default})",
    )


def add_settings(parser: argparse.ArgumentParser, example: str) -> None:
    """Add the argument that overrides settings of a configuration file."""
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"override a setting of the file, such as {example}",
    )


def add_command(commands: Any, name: str, purpose: str) -> Parser:
    """Return the parser of a command, with the options that all commands have."""
    parser: Parser = commands.add_parser(name, help=purpose)
    parser.add_argument(
        "--limit",
        type=parse_limit,
        action="append",
        default=[],
        metavar="NAME=N",
        help=f"raise a limit on the sizes of input files: {', '.join(LIMITS)}",
    )
    parser.add_argument(
        "--plugins",
        action="append",
        default=[],
        metavar="FOLDER",
        help="run the Python files in this folder, which register plugins (docs/extend.md)",
    )
    parser.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="do not cache compiled programs between runs",
    )
    return parser


# Arguments that several commands have.
_SHARED_ARGUMENTS: dict[str, dict[str, Any]] = {
    "model": {"metavar": "MODEL.xml", "help": _MODEL_HELP},
    "file": {"metavar": "MODEL.xml|MOTION.npz", "help": f"{_MODEL_HELP}; or a motion"},
    "--model": {"metavar": "MODEL.xml", "help": "model file, if it was moved"},
    "--key": {"metavar": "NAME", "help": "start from this keyframe"},
    "--contacts": {"type": parse_count, "help": "contact capacity of a world"},
    "--seed": {"type": int, "default": 0, "help": "random seed of controls (default 0)"},
    "--float64": {"action": "store_true", "help": "double precision"},
}
