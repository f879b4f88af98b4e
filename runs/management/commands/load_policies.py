"""`manage.py load_policies`: store the default policies that are missing."""

from typing import Any

from django.core.management.base import BaseCommand

from runs.catalogue import store_default_policies


class Command(BaseCommand):
    help = "Store each of the default policies whose name is free."

    def handle(self, *args: Any, **options: Any) -> None:
        stored = store_default_policies()
        self.stdout.write(f"Stored: {', '.join(stored)}." if stored else "Every default policy is there.")
