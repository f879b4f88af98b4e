"""The release page asks the database as often for four gates as for one, and an open page's poll asks little."""

from typing import Any

import pytest
from django.utils import timezone

from runs.models import ReleaseRecord, Verdict
from tests import build, probes
from tests.frontend import release_runs
from tests.nightly import nightly

# Of the page's, five read its worst cases, one the computations of its gates, and one the hops. One of both counts the
# responses that were cut, ended otherwise, or are not vouched for.
MAX_OF_PAGE, MAX_OF_POLL = 45, 15


def release(n_gates: int, *, unstable: bool = False, is_moved: bool = False) -> ReleaseRecord:
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
@pytest.mark.parametrize("n_gates", [1, *nightly([4])])
@pytest.mark.parametrize(("changes", "word"), [({}, "ship"), *nightly([({"unstable": True}, "inconclusive")])])
def test_a_page_and_its_poll(client_of: Any, django_assert_max_num_queries: Any, n_gates, changes, word) -> None:
    manager, made = client_of("release manager"), release(n_gates, **changes)
    assert made.verdict.word == word
    manager.get(f"/releases/{made.pk}/")  # makes the comparison that it shows
    with django_assert_max_num_queries(MAX_OF_PAGE):
        assert manager.get(f"/releases/{made.pk}/").status_code == 200
    with django_assert_max_num_queries(MAX_OF_POLL):
        assert manager.get(f"/releases/{made.pk}/?part=stage").status_code == 204


@pytest.mark.nightly
@pytest.mark.django_db
def test_a_page_of_runs_that_may_not_be_compared(client_of: Any, django_assert_max_num_queries: Any) -> None:
    manager, made = client_of("release manager"), release(1, is_moved=True)
    assert made.verdict.word == "not_comparable"
    manager.get(f"/releases/{made.pk}/")
    with django_assert_max_num_queries(MAX_OF_PAGE):
        manager.get(f"/releases/{made.pk}/")


@pytest.mark.nightly
@pytest.mark.django_db
def test_a_page_says_what_its_endpoints_were_like_when_it_was_decided(client_of: Any) -> None:
    manager, made = client_of("release manager"), release(1)
    endpoint = made.gates.get().candidate_run.endpoint.slug
    assert "What the endpoints were like" not in manager.get(f"/releases/{made.pk}/").content.decode()
    probe = probes.ask("seed", on=endpoint, parameters={"prompts": 2, "calls_per_group": 4})
    probes.served(probes.honoured)
    Verdict.objects.update(decided_at=timezone.now())
    page = manager.get(f"/releases/{made.pk}/").content.decode()
    assert "What the endpoints were like" in page
    assert f'href="/probes/{probe.pk}/">seed probe {probe.pk}</a>' in page
    assert "<b>Seed honoured</b>" in page
    Verdict.objects.update(decided_at=probe.created_at)
    assert "What the endpoints were like" not in manager.get(f"/releases/{made.pk}/").content.decode()
