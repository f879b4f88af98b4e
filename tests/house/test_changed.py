"""`make changed` runs what a change can reach, and little else."""

import pytest

from tools import changed

EVERY = {str(path.relative_to(changed.ROOT)) for path in (changed.ROOT / "tests").rglob("test_*.py")}
# What changes, a test that it reaches, and one that it does not.
REACHES = (
    # import
    ("evalboard/core/trace/codec.py", "tests/core/test_codec.py", "tests/core/test_policy.py"),
    # bench
    ("bench/simulated.py", "tests/core/test_verdict_error_rates.py", "tests/core/test_codec.py"),
    (
        "frontend/release/templates/release/page.html",
        "tests/timed/test_manager.py",
        "tests/frontend/test_workers.py",
    ),  # walk
    (
        "frontend/compare/templates/compare/compare.html",
        "tests/frontend/test_compare.py",
        "tests/frontend/test_workers.py",
    ),  # template
    # address
    ("runs/webhooks/api.py", "tests/api/test_webhooks.py", "tests/api/test_runs.py"),
    # process
    ("worker/calls.py", "tests/worker/test_runner.py", "tests/api/test_webhooks.py"),
    # document
    ("docs/api-reference.md", "tests/house/test_words.py", "tests/api/test_runs.py"),
    # fixtures
    ("tests/frontend/conftest.py", "tests/frontend/test_board.py", "tests/runs/test_runs.py"),
)


@pytest.mark.nightly
def test_a_change_reaches_what_rests_on_it() -> None:
    """In one process: reading every import takes three seconds."""
    wrong = []
    for path, reached, spared in REACHES:
        files = changed.reached([path])
        wrong += [(path, reached)] * (reached not in files) + [(path, spared)] * (spared in files)
    assert wrong == []


@pytest.mark.parametrize(
    "path", ["tests/conftest.py", "tests/cluster.py", "requirements/app.txt", "runs/migrations/0001_initial.py"]
)
def test_what_no_import_shows_reaches_every_test(path: str) -> None:
    assert changed.reached([path]) == EVERY


@pytest.mark.nightly
def test_nothing_changed_reaches_nothing() -> None:
    assert changed.reached([]) == set()
