"""The stage, and people of each role with a client of their own."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.shell.forms import FORM_KEY
from runs.access import grant_role
from runs.models import ReleaseRecord, RunRecord
from tests.casts import cast
from tests.frontend import release_runs
from tests.frontend import stage as staged


def form_key(page: Any) -> dict[str, str]:
    """The field by which a form that is sent again is the same form, as a page drew it."""
    return {FORM_KEY: re.search(rf'name="{FORM_KEY}" value="([^"]+)"', page.content.decode())[1]}  # type: ignore[index]


@cast
def staged_rows() -> None:
    staged.stage(model_root=settings.MODEL_ROOTS[0])


@pytest.fixture
def stage(staged_rows: None) -> Any:
    return staged


@cast
def baseline_run() -> RunRecord:
    return release_runs.baseline_run()


@cast
def made(baseline_run: RunRecord, param: str) -> ReleaseRecord:
    """A release of a kind, which a test says with `of_kind`."""
    return release_runs.of_kind(param, baseline_run)


@pytest.fixture
def client_of(db: None) -> Callable[[str], Client]:
    """A client signed in with a role; "anonymous" is nobody."""

    def sign_in(role: str) -> Client:
        client = Client(raise_request_exception=False)
        if role != "anonymous":
            user, _ = get_user_model().objects.get_or_create(username=role)
            grant_role(user=user, role=role)
            client.force_login(user)
        return client

    return sign_in


@pytest.fixture
def viewer(client_of: Callable[[str], Client]) -> Client:
    return client_of("viewer")


@pytest.fixture
def engineer(client_of: Callable[[str], Client]) -> Client:
    return client_of("engineer")


@pytest.fixture
def admin(client_of: Callable[[str], Client]) -> Client:
    return client_of("admin")
