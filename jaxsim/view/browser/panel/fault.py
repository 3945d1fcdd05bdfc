"""Message of a page whose simulation or replay has failed."""

from jaxsim.escape import markdown

MAX_FAULT = 1000  # limit on characters


def stop_message(fault: BaseException) -> str:
    """Return the reason as a line of Markdown."""
    return f"**stopped**: {markdown(str(fault) or type(fault).__name__, MAX_FAULT)}"
