"""The release page asks the database as often for ten gates as for one, and an open page's poll asks little."""

from typing import Any

import pytest

from runs.models import Release
from tests import build
from tests.frontend import release_runs

MAX_OF_PAGE, MAX_OF_POLL = 40, 15


def release(n_gates: int, *, unstable: bool = False, is_moved: bool = False) -> Release:
    release_runs.policies()
    by = build.process()
    other = build.process(build.bucket("bfloat16")) if is_moved else by
    gates = []
    for place in range(n_gates):
        of = release_runs.suite(f"suite-{place}")
        candidate = release_runs.run(of, by=other, unstable=[3] if unstable else ())
        gates.append(release_runs.gate(release_runs.run(of, by=by), candidate))
    return release_runs.release(*gates)


@pytest.mark.django_db
@pytest.mark.parametrize("n_gates", [1, 10])
@pytest.mark.parametrize(("changes", "word"), [({}, "ship"), ({"unstable": True}, "inconclusive")])
def test_a_page_and_its_poll(client_of: Any, django_assert_max_num_queries: Any, n_gates, changes, word) -> None:
    manager, made = client_of("release manager"), release(n_gates, **changes)
    assert made.verdict.word == word
    manager.get(f"/releases/{made.pk}/")  # makes the comparison that it shows
    with django_assert_max_num_queries(MAX_OF_PAGE):
        assert manager.get(f"/releases/{made.pk}/").status_code == 200
    with django_assert_max_num_queries(MAX_OF_POLL):
        assert manager.get(f"/releases/{made.pk}/?part=stage").status_code == 204


@pytest.mark.django_db
def test_a_page_of_runs_that_may_not_be_compared(client_of: Any, django_assert_max_num_queries: Any) -> None:
    manager, made = client_of("release manager"), release(1, is_moved=True)
    assert made.verdict.word == "not_comparable"
    manager.get(f"/releases/{made.pk}/")
    with django_assert_max_num_queries(MAX_OF_PAGE):
        manager.get(f"/releases/{made.pk}/")
