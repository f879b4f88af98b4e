"""`manage.py sample_tour`: load the tour's sample, or remove it."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandParser

from runs.tour import load_tour, remove_tour


class Command(BaseCommand):
    help = "Load the suite, runs, baseline and releases of the tour; what is there is left as it is."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("person", help="in whose name it is loaded")
        parser.add_argument("--remove", action="store_true", help="delete what was loaded, and name what stays and why")

    def handle(self, *args: Any, person: str, remove: bool, **options: Any) -> None:
        if remove:
            staying = remove_tour()
            self.stdout.write("\n".join(staying or ("The sample of the tour is gone.",)))
            return
        load_tour(user=get_user_model().objects.get(username=person))
        self.stdout.write("The sample of the tour is on the board.")
