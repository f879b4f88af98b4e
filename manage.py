#!/usr/bin/env python
"""Django's command line for Evalboard."""

import os
import sys
from typing import Any


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalboard.settings")
    from django.core.management import execute_from_command_line
    from django.db.backends.signals import connection_created

    connection_created.connect(_name_operator, weak=False)

    execute_from_command_line(sys.argv)


def _name_operator(connection: Any, **_: Any) -> None:
    """Have the audit trail name the account of this server as the actor of all that a command writes."""
    from runs.audit.context import operator_recorder

    recorder = operator_recorder(" ".join(sys.argv[1:2]))
    if recorder not in connection.execute_wrappers:
        connection.execute_wrappers.append(recorder)


if __name__ == "__main__":
    main()
