"""docs/api-reference.md says every route, parameter-free, with its view's scope; docs/api.md every code there is."""

import re
from pathlib import Path

import pytest

from evalboard.contract.release import OUTCOMES
from evalboard.core import errors
from evalboard.core.archive.run_archive_reader import ArchiveDamaged
from runs import routes
from runs.api import problems
from runs.release.api import FILTERS as RELEASE_FILTERS
from runs.run import idempotency
from runs.run.api import FILTERS
from runs.store import outage

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = (DOCS / "api-reference.md").read_text()
ROW = re.compile(r"^\| `(GET|POST|DELETE) (\S+)` \| (\w+) \|", re.MULTILINE)
# Workers talk to the services, not to the API; an archive is read where it was taken to.
NEVER_ANSWERED = (errors.LeaseLost, ArchiveDamaged)
NAMES = {"run_id": "id", "release_id": "id", "replay_id": "id", "forced_id": "id", "fingerprint_id": "id"}
NAMES |= {"import_id": "id", "probe_id": "id", "token_id": "id", "webhook_id": "id", "same_model_id": "id"}
NAMES |= {
    "trial_id": "id",
    "comment_id": "id",
    "reading_id": "id",
    "rule_id": "id",
    "session": "id",
    "follow_id": "id",
    "schedule_id": "id",
    "experiment_id": "id",
    "upload_id": "id",
    "endpoint": "slug",
}


def stated() -> set[tuple[str, str, str]]:
    """(method, address, scope) of every route, by the views themselves."""
    found = set()
    for route in routes.urlpatterns:
        if route.name == "unknown":
            continue
        plain = str(route.pattern).removeprefix("^").removesuffix("/?$")
        address = re.sub(r"<\w+:(\w+)>", lambda part: f"{{{NAMES.get(part[1], part[1])}}}", plain)
        for method, scope in route.callback.required_scopes.items():
            found.add((method, f"/{address}", "none" if scope == "anyone" else scope))
    return found


def test_every_route_is_documented_with_its_scope() -> None:
    assert set(ROW.findall(PAGE)) == stated()


@pytest.mark.parametrize("name", FILTERS)
def test_every_filter_of_runs_is_documented(name: str) -> None:
    [row] = [line for line in PAGE.splitlines() if line.startswith("| `GET /runs/` ")]
    assert f"`{name}`" in row


@pytest.mark.parametrize("name", RELEASE_FILTERS)
def test_every_filter_of_releases_is_documented(name: str) -> None:
    [row] = [line for line in PAGE.splitlines() if line.startswith("| `GET /releases/` ")]
    assert f"`{name}`" in row


def test_every_outcome_is_documented() -> None:
    assert not {outcome for outcome in OUTCOMES if f"`{outcome}`" not in PAGE}


def test_every_problem_code_is_documented() -> None:
    answered = {*problems.CODES.values(), "malformed", "csrf_failed", "server_error", "not_ready"}
    answered |= {outage.AWAY.code, outage.FULL.code, idempotency.KeyInUse.code, idempotency.KeyReused.code}
    known = [found for found in errors.EvalboardError.__subclasses__() if found.__module__.startswith("evalboard.core")]
    raised = {found.code for found in known if found not in NEVER_ANSWERED}
    assert not {code for code in answered | raised if f"`{code}`" not in (DOCS / "api.md").read_text()}
