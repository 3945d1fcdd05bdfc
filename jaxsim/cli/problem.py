"""Errors that the user of a command can correct, reported in one line."""


class InputProblem(Exception):
    """Wrong input to a command; the message names the fault, its location and the remedy. Exit code
    2."""
