"""How tests wait: for something that happens, and never for seconds.

How long at most is the hang limit of the whole session, after which every stack is printed.
"""

import time
from collections.abc import Callable

HANG_SECONDS = 3600.0  # for what takes no other bound: more than any test may take


def wait_until(holds: Callable[[], object], *, every: float = 0.05) -> None:
    """Ask again and again, until it holds."""
    while not holds():
        time.sleep(every)
