"""Text as PostgreSQL can hold it."""


def storable(text: str) -> str:
    """Return the text with a mark in place of each NUL and lone surrogate; engines and models may say anything."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
