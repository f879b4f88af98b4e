"""The run page lists the responses that another computation gave, also of a run that was read from a log."""

from html import unescape

import pytest
from django.test import Client

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
    [strays] = run.strays
    assert {(case, repeat) for case, repeat in strays["responses"]} == rerouted
    page = unescape(viewer.get(f"/runs/{run.pk}/").content.decode())
    assert "and 6 % (6 responses in 5 cases) lie 0.4 nats from those others" in page
    for case, repeat in rerouted:
        assert f'href="/runs/{run.pk}/repeats/{repeat}/cases/{case}/"' in page.split('id="strays"')[1]
