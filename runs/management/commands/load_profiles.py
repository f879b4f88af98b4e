"""`manage.py load_profiles`: store the default profiles that are missing."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.catalogue import store_default_profiles


class Command(BaseCommand):
    help = "Store each of the default profiles whose name is free."

    def handle(self, *args: Any, **options: Any) -> None:
        stored = store_default_profiles()
        self.stdout.write(f"Stored: {', '.join(stored)}." if stored else "Every default profile is there.")
