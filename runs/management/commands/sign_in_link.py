"""`manage.py sign_in_link NAME`: make a sign-in link for a person, such as for another browser."""

from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from evalboard.core.errors import NotFound
from runs.access import write_link


class Command(BaseCommand):
    help = "Print a link that signs a person in once, within a day."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        if not settings.HAS_SECRET_KEY:
            raise CommandError("A link is signed with EVALBOARD_SECRET_KEY: set it to what the web server has.")
        try:
            self.stdout.write(write_link(name=name))
        except NotFound as unknown:
            raise CommandError(f"{unknown.detail} add_person lets them in.") from unknown
