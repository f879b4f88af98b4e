"""The functions of `scipy.special`, loaded at the first use of one: a quarter of the command line's start."""

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special

    return getattr(special, name)
