"""`manage.py sign_in_link NAME`: make a sign-in link for a person, such as for another browser."""

from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from sesame.utils import get_query_string


class Command(BaseCommand):
    help = "Print a link that signs a person in once, within a day."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name")

    def handle(self, *args: Any, name: str, **options: Any) -> None:
        if not settings.HAS_SECRET_KEY:
            raise CommandError("A link is signed with EVALBOARD_SECRET_KEY: set it to what the web server has.")
        person = get_user_model().objects.filter(username=name, is_active=True).first()
        if person is None:
            raise CommandError(f"There is no person named {name} who may sign in; add_person lets them in.")
        self.stdout.write(f"/signin/{get_query_string(person)}")
