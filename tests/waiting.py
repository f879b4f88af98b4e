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


def waits_for_lock() -> bool:
    """Tell whether a statement on this database waits for a lock. Live also inside a transaction."""
    from django.db import connection  # the other tests of waiting run without Django too

    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_locks waiting JOIN pg_locks held USING (pid) JOIN pg_database own"
            " ON own.oid = held.database WHERE NOT waiting.granted AND own.datname = current_database())"
        )
        return bool(cursor.fetchone()[0])
