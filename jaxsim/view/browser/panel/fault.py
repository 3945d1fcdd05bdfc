"""What a page says where something has ended by itself."""


def stopped(fault: BaseException) -> str:
    """Why, in a line of Markdown."""
    return f"**stopped**: {str(fault) or type(fault).__name__}"
