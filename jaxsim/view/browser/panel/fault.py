"""What a page says where something has ended by itself."""

from jaxsim.escape import markdown

MAX_FAULT = 1000  # characters


def stopped(fault: BaseException) -> str:
    """Why, in a line of Markdown."""
    return f"**stopped**: {markdown(str(fault) or type(fault).__name__, MAX_FAULT)}"
