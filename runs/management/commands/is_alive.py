"""`manage.py is_alive worker | scheduler`: a container's health check; status 1 with the reason."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from runs.health import alive

SILENT = {"worker": alive.worker_is_silent, "scheduler": alive.scheduler_is_silent}


class Command(BaseCommand):
    help = "Say whether this machine's worker or scheduler lives."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("process", choices=SILENT)

    def handle(self, *args: Any, process: str, **options: Any) -> None:
        if why := SILENT[process]():
            raise CommandError(why)
