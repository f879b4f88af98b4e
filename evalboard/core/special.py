"""Load `scipy.special` at the first use of one of its functions.

Loading it takes a quarter of the command line's start.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    from scipy import special

    globals().update({each: value for each, value in vars(special).items() if not each.startswith("_")})
    return getattr(special, name)
