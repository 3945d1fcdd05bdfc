"""The command line interface `jaxsim`."""

from jaxsim.cli.main import main as main
