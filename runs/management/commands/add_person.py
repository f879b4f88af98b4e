"""`manage.py add_person NAME --role ROLE`: add a person, with a one-time link or a password.

A password is asked for or read from stdin, never taken from the command line, which other accounts can see.
"""

import sys
from getpass import getpass
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalboard.core.errors import Conflict, InvalidInput
from runs.access import ROLES, add_person, write_link


class Command(BaseCommand):
    help = "Add a person, or change the role or password of one; prints a link that signs them in once."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument("--role", required=True, choices=ROLES)
        parser.add_argument(
            "--password",
            action="store_true",
            help="ask for a password, or read a line from stdin where that is no terminal; no link is printed",
        )

    def handle(self, *args: Any, name: str, role: str, password: bool, **options: Any) -> None:
        if not password and not settings.HAS_SECRET_KEY:
            raise CommandError("A link is signed with EVALBOARD_SECRET_KEY: set it to what the web server has.")
        try:
            _, is_new = add_person(name=name, role=role, password=_password(name) if password else None)
        except InvalidInput as wrong:
            raise CommandError(" ".join(wrong.fields.values())) from wrong
        except Conflict as refused:
            raise CommandError(refused.detail) from refused
        self.stderr.write(f"{name} is {'now' if is_new else 'known, and now'} {role}.")
        if not password:
            self.stderr.write("This address signs them in once, within a day, at the installation's own host:")
            self.stdout.write(write_link(name=name))


def _password(name: str) -> str:
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass(f"Password of {name}: ")
    if getpass("Once more: ") != first:
        raise CommandError("The two differ; nothing was changed.")
    return first
