"""The run page lists the responses that another computation gave, also of a run that was read from a log."""

from html import unescape

import pytest
from django.test import Client

from runs.models import Stray
from runs.run.read_shards import STRAYS_SHOWN
from tests import build
from tests.runs import logs

pytestmark = pytest.mark.django_db


def test_a_log_of_which_six_in_a_hundred_were_rerouted_without_a_tag_lists_them(viewer: Client) -> None:
    ids = [f"case-{number:02}" for number in range(20)]
    rerouted = {("case-02", 1), ("case-05", 4), ("case-11", 2), ("case-11", 3), ("case-16", 5), ("case-19", 1)}
    words = ("it", " is", " blue", " and", " wide")
    answers = [
        logs.response(
            case, repeat, *words, positions=logs.positions(*words, shift=0.4 if (case, repeat) in rerouted else 0.0)
        )
        for case in ids
        for repeat in range(1, 6)
    ]
    run = logs.stored(logs.log(*answers, cases=tuple(map(logs.case, ids))))
    listed = Stray.objects.filter(run=run).listed().values_list("case_index", "repeat")
    assert {(ids[case], repeat) for case, repeat in listed} == rerouted
    page = unescape(viewer.get(f"/runs/{run.pk}/").content.decode())
    assert "6 outlier responses (6 %) in 5 cases: 0.4 nats from the other repeats of the case" in page
    for case, repeat in rerouted:
        assert f'href="/runs/{run.pk}/repeats/{repeat}/cases/{case}/"' in page.split('id="strays"')[1]


@pytest.mark.nightly
def test_of_many_strays_the_run_lists_the_first_and_a_page_of_its_own_all(viewer: Client) -> None:
    run = build.run(build.suite(case_ids=[f"case-{number:03}" for number in range(250)]))
    build.strays(run, n=250)
    page = unescape(viewer.get(f"/runs/{run.pk}/").content.decode())
    assert page.count("/repeats/2/cases/") == STRAYS_SHOWN
    assert f'The first {STRAYS_SHOWN}. <a href="/runs/{run.pk}/strays/">All outlier responses</a>' in page
    listed = [unescape(viewer.get(f"/runs/{run.pk}/strays/?offset={at}").content.decode()) for at in (0, 100, 200, 300)]
    assert [each.count("/repeats/2/cases/") for each in listed] == [100, 100, 50, 0]
    assert "201–250 of 250" in listed[2]
    assert "There are only 250." in listed[3]
    assert 'href="?offset=200#strays">Next' in listed[1]
    other = build.run(build.suite("other"))
    assert "has no known outlier responses" in viewer.get(f"/runs/{other.pk}/strays/").content.decode()
    assert viewer.get("/runs/999999/strays/").status_code == 404
