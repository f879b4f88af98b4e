"""`manage.py remove_person NAME`: end a person's access and tokens; `add_person` restores access."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalboard.core.errors import Conflict, NotFound
from runs.access import remove_person


class Command(BaseCommand):
    help = "Shut a person out and delete their tokens; what they did stays."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        try:
            remove_person(name=name)
        except (NotFound, Conflict) as refused:
            raise CommandError(refused.detail) from refused
        self.stderr.write(f"{name} can no longer sign in, and their tokens are deleted.")
