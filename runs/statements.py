"""How long one statement of the web server may take, and who may take longer."""

from django.conf import settings
from django.db import connection, connections


def limit_statements() -> None:
    """Have PostgreSQL stop each statement of this process after EVALBOARD_STATEMENT_SECONDS; before it first connects.

    For the web server, where one costly page must not take a connection and a core from everybody else. Workers,
    the scheduler and management commands take as long as their work does.
    """
    options = connections.settings["default"]["OPTIONS"]
    options["options"] += f" -c statement_timeout={round(settings.STATEMENT_SECONDS * 1000)}"


def take_as_long_as_it_takes() -> None:
    """Lift that limit until the transaction ends: for what grows with a run, and is asked for seldom and on purpose."""
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL statement_timeout = 0")
