"""`manage.py add_token PERSON NAME --scope SCOPE`: make a token and print its secret once."""

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from evalboard.core.errors import InvalidInput
from runs.access import SCOPES, create_token


class Command(BaseCommand):
    help = "Make a token that acts for a person; its scopes are of those that the person's role has now."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("person")
        parser.add_argument("name", help="what it is for, such as nightly-ci")
        parser.add_argument(
            "--scope", action="append", required=True, choices=SCOPES, help="may be given several times"
        )
        parser.add_argument("--days", type=int, default=90, help="how long it holds; 90, at most 366")

    def handle(self, *args: Any, person: str, name: str, scope: list[str], days: int, **options: Any) -> None:
        known = get_user_model().objects.filter(username=person, is_active=True).first()
        if known is None:
            raise CommandError(f"There is no person named {person} who may sign in; add_person lets them in.")
        try:
            token, secret = create_token(
                user=known, name=name, scopes=scope, expires_at=timezone.now() + timedelta(days=days)
            )
        except InvalidInput as wrong:
            raise CommandError(" ".join(wrong.fields.values())) from wrong
        self.stderr.write(f"The token holds until {token.expires_at:%Y-%m-%d %H:%M} UTC and is shown this once:")
        self.stdout.write(secret)
