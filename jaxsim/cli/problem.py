"""What a person can put right, said in one line."""


class InputProblem(Exception):
    """Wrong input to a command; the message says what, where and what to do. Exit code 2."""
