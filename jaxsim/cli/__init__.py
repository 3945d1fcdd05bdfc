"""The command line interface `jaxsim`."""

from jaxsim.cli.command_line import main as main
