"""`manage.py load_samples`: load a new installation's samples. Repeating it changes nothing.

It writes JSON, one object a line: with --migrate `{"tables": true}` as soon as the tables are there, and at last
`{"signin": "/signin/...", "runs": [ids], "is_first": whether the board had no suite}`.
"""

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandParser
from django.utils import timezone

from runs.access import create_token, grant_role, secret_digest, write_link
from runs.catalogue import create_endpoint, store_default_policies, store_default_profiles
from runs.models import EndpointRecord, RunRecord, Suite, Token
from runs.run import create_run
from runs.suites import push_suite
from runs.tour import load_tour

SAMPLE_SUITE = settings.BASE_DIR / "runs" / "samples" / "sample.json"
SAMPLE_MODEL = "smollm2-135m-instruct"
SAMPLE_REPEATS = 5
DTYPES = ("float32", "bfloat16")


class Command(BaseCommand):
    help = "Load the sample suite, profiles, policies, endpoints with a run on each, and on a fresh board the tour."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--no-runs", action="store_true", help="start no run")
        parser.add_argument("--no-engine", action="store_true", help="make no endpoint and start no run")
        parser.add_argument("--no-tour", action="store_true", help="leave the tour to `sample_tour`")
        # One process for both: loading the product takes longer than either.
        parser.add_argument("--migrate", action="store_true", help="bring the database's tables up to date first")

    def handle(self, *args: Any, no_runs: bool, no_engine: bool, no_tour: bool, migrate: bool, **options: Any) -> None:
        if migrate:
            call_command("migrate", interactive=False, stdout=self.stderr)
            self.stdout.write(json.dumps({"tables": True}))
            self.stdout.flush()
        user = _local_admin()
        store_default_profiles()
        store_default_policies()
        is_first = not Suite.objects.exists()
        version, _ = push_suite(document=json.loads(SAMPLE_SUITE.read_text()))
        runs: list[int] = []
        for dtype in () if no_engine else DTYPES:
            endpoint = _endpoint(dtype)
            known = RunRecord.objects.filter(suite_version=version, endpoint=endpoint, profile__slug="pinned").order_by(
                "id"
            )
            if not no_runs and not known.exists():
                create_run(
                    suite=version.suite.slug,
                    endpoint=endpoint.slug,
                    profile="pinned",
                    repeats=SAMPLE_REPEATS,
                    labels={"started_by": "make up"},
                    user=user,
                )
            runs += known.values_list("id", flat=True)[:1]
        if is_first and not no_runs and not no_tour:
            load_tour(user=user)
        _write_token(user, settings.DATA_DIR / "token")
        summary = {"signin": write_link(name=user.get_username()), "runs": runs, "is_first": is_first}
        self.stdout.write(json.dumps(summary))


def _local_admin() -> Any:
    """The person at this machine: signs in by a one-time link, never by a password."""
    user, created = get_user_model().objects.get_or_create(username="local")
    if created:
        user.set_unusable_password()
        user.save()
    grant_role(user=user, role="admin")
    return user


def _endpoint(dtype: str) -> EndpointRecord:
    slug = f"sample-{dtype}"
    known = EndpointRecord.objects.filter(slug=slug).first()
    if known is not None:
        return known
    return create_endpoint(
        slug=slug,
        model_path=str(settings.DATA_DIR / "models" / SAMPLE_MODEL),
        dtype=dtype,
        line="smollm2-135m",
        max_model_len=1024,
    )


def _write_token(user: Any, path: Path) -> None:
    """Keep a token for this machine's command line in the data folder, readable by its owner only."""
    if path.exists():
        known = Token.objects.filter(secret_digest=secret_digest(path.read_text().strip()))
        if known.filter(revoked_at=None, expires_at__gt=timezone.now() + timedelta(days=1)).exists():
            return
    _, secret = create_token(
        user=user,
        name="this machine",
        scopes=["read", "run", "sign", "admin"],
        expires_at=timezone.now() + timedelta(days=365),
    )
    path.touch(mode=0o600)
    path.write_text(secret + "\n")
