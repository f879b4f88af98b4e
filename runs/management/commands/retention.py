"""`manage.py retention [--apply]`: what the rules of retention delete now; with --apply it is deleted."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evalboard.wording.numbers import counted
from runs.retention import apply_rules, due_rows


class Command(BaseCommand):
    help = "Print what the rules of retention would delete now, a line for each run; with --apply, delete it."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--apply", action="store_true", help="delete it; else nothing changes")

    def handle(self, *args: Any, apply: bool, **options: Any) -> None:
        for due in due_rows():
            what = "everything" if due.what == "runs" else due.what
            self.stdout.write(
                f"run {due.run}: {what}, {counted(due.n_responses, 'response')}, {due.n_bytes:,} bytes, by {due.rule}"
            )
        if apply:
            n = 0
            while done := apply_rules():
                n += done
            self.stdout.write(f"{counted(n, 'run')} done.")
