"""`make changed` runs what a change can reach, and little else."""

import pytest

from tools import changed

EVERY = {str(path.relative_to(changed.ROOT)) for path in (changed.ROOT / "tests").rglob("test_*.py")}


@pytest.mark.parametrize(
    ("path", "reached", "spared"),
    [
        pytest.param(
            "evalboard/core/trace/codec.py", "tests/core/test_codec.py", "tests/core/test_policy.py", id="import"
        ),
        pytest.param(
            "bench/simulated.py", "tests/core/test_verdict_error_rates.py", "tests/core/test_codec.py", id="bench"
        ),
        pytest.param(
            "frontend/release/templates/release/page.html",
            "tests/timed/test_manager.py",
            "tests/frontend/test_workers.py",
            id="walk",
        ),
        pytest.param(
            "frontend/compare/templates/compare/compare.html",
            "tests/frontend/test_compare.py",
            "tests/frontend/test_workers.py",
            id="template",
        ),
        pytest.param("runs/webhooks/api.py", "tests/api/test_webhooks.py", "tests/api/test_runs.py", id="address"),
        pytest.param("worker/calls.py", "tests/worker/test_runner.py", "tests/api/test_webhooks.py", id="process"),
        pytest.param("docs/api.md", "tests/house/test_words.py", "tests/api/test_runs.py", id="document"),
        pytest.param(
            "tests/frontend/conftest.py", "tests/frontend/test_board.py", "tests/runs/test_runs.py", id="fixtures"
        ),
    ],
)
def test_a_change_reaches_what_rests_on_it(path: str, reached: str, spared: str) -> None:
    files = changed.reached([path])
    assert reached in files
    assert spared not in files


@pytest.mark.parametrize(
    "path", ["tests/conftest.py", "tests/cluster.py", "requirements/app.txt", "runs/migrations/0001_initial.py"]
)
def test_what_no_import_shows_reaches_every_test(path: str) -> None:
    assert changed.reached([path]) == EVERY


def test_nothing_changed_reaches_nothing() -> None:
    assert changed.reached([]) == set()
