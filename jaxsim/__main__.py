"""The command `jaxsim` as `python -m jaxsim`, where the folder of commands is not on the path."""

import sys

from jaxsim.cli import main

if __name__ == "__main__":
    sys.exit(main())
