"""`manage.py read_import READING …`: read a large log, whose files the web server passes open."""

from typing import Any

from django.core.management.base import BaseCommand, CommandParser

from evalboard import request_ids
from runs.imports import read_import


class Command(BaseCommand):
    help = "Read a large log that the web server has received. The web server calls this."
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("reading", type=int)
        parser.add_argument("request_id")
        parser.add_argument("files", type=int, nargs="+", help="numbers of open files")

    def handle(self, *args: Any, reading: int, request_id: str, files: list[int], **options: Any) -> None:
        with request_ids.about(request_id):
            read_import(reading, files)
