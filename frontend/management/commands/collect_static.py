"""`manage.py collect_static`: run collectstatic if a file has changed since the last time."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import call_command
from django.core.management.base import BaseCommand

from evalboard.core.digest import digest_json

STAMP = "collected-from"


class Command(BaseCommand):
    requires_system_checks = []  # they load every page; `make check` runs them
    help = "Name static files by their content and compress them, into EVALBOARD_STATIC_DIR, if any has changed."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.STATIC_ROOT:
            self.stdout.write("Static files are served from where they lie.")
            return
        stamp = Path(settings.STATIC_ROOT) / STAMP
        digest = digest_json(sorted(_sources()))
        if stamp.exists() and stamp.read_text() == digest:
            self.stdout.write("No static file has changed.")
            return
        call_command("collectstatic", interactive=False, verbosity=0)
        stamp.write_text(digest)  # last: what is stamped is whole
        self.stdout.write("Static files were collected.")


def _sources() -> Iterator[list[str | int]]:
    """Return each file's place, size and time of change."""
    for finder in get_finders():
        for name, storage in finder.list([]):
            facts = Path(storage.path(name)).stat()
            yield [storage.path(name), facts.st_size, facts.st_mtime_ns]
