"""The command `jaxsim`."""

from jaxsim.cli.main import main as main
