"""A policy is checked in full, and written one way."""

from typing import Any

import pytest

from evalboard.core import policy
from evalboard.core.errors import InvalidInput
from evalboard.core.policy import DEFAULT_POLICIES, DEFAULT_POLICY, PolicySettings
from evalboard.core.suite import parse_suite

LEAST = {"rule": "paired", "tolerance_points": 2}


def test_what_is_left_out_has_a_default_and_is_written_out() -> None:
    found = policy.parse(LEAST)
    assert found == PolicySettings("paired", 2.0, 1.0, (5, 10, 20), 24.0)
    assert found.settings() == {
        "rule": "paired",
        "tolerance_points": 2.0,
        "guard_points": 1.0,
        "looks": [5, 10, 20],
        "window_hours": 24.0,
    }
    assert policy.parse(found.settings()) == found


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        pytest.param({"tolerance_points": 1.0}, "rule", id="no-rule"),
        pytest.param({"rule": "strict"}, "tolerance_points", id="no-tolerance"),
        pytest.param({**LEAST, "rule": "loose"}, "rule", id="another-rule"),
        pytest.param({**LEAST, "tolerance_points": 0}, "tolerance_points", id="no-drop-at-all"),
        pytest.param({**LEAST, "tolerance_points": True}, "tolerance_points", id="a-boolean"),
        pytest.param({**LEAST, "tolerance_points": float("nan")}, "tolerance_points", id="not-a-number"),
        pytest.param({**LEAST, "guard_points": -1}, "guard_points", id="a-guard-below-0"),
        pytest.param({**LEAST, "guard_points": "1"}, "guard_points", id="text"),
        pytest.param({**LEAST, "looks": [5, 10]}, "looks", id="other-looks"),
        pytest.param({**LEAST, "looks": [5.0, 10, 20]}, "looks", id="looks-that-are-not-whole"),
        pytest.param({**LEAST, "window_hours": -2}, "window_hours", id="a-window-below-0"),
        pytest.param({**LEAST, "alpha": 0.5}, "alpha", id="unknown"),
        pytest.param([], "", id="not-an-object"),
    ],
)
def test_what_is_refused_names_its_field(settings: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        policy.parse(settings)
    assert list(refused.value.fields) == [path]


@pytest.mark.parametrize("looks", policy.LOOKS)
def test_one_candidate_in_twenty_is_the_most_that_all_looks_together_may_ship_wrongly(looks: tuple[int, ...]) -> None:
    found = policy.parse({**LEAST, "looks": list(looks)})
    assert [found.alpha(look) for look in found.looks] == [0.03, 0.01, 0.01]


def test_every_installation_has_a_strict_and_a_paired_policy_of_one_point() -> None:
    assert list(DEFAULT_POLICIES) == ["strict", "paired"]
    assert DEFAULT_POLICY == "strict"
    for slug, default in DEFAULT_POLICIES.items():
        found = policy.parse(default["settings"])
        assert (found.rule, found.tolerance_points, found.guard_points) == (slug, 1.0, 1.0)
        assert found.settings() == default["settings"]


SUITE: dict[str, Any] = {
    "slug": "towns",
    "scorer": {"kind": "exact"},
    "cases": [{"id": "1", "prompt": "Which?", "target": "Oslo"}],
}


def test_a_suite_carries_its_policy_and_its_digest_does_not() -> None:
    plain = parse_suite(SUITE)
    carrying = parse_suite({**SUITE, "policy": {"slug": "towns", "title": "Towns", **LEAST}})
    assert plain.policy is None
    assert carrying.policy is not None
    assert (carrying.policy.slug, carrying.policy.title) == ("towns", "Towns")
    assert carrying.policy.settings == policy.parse(LEAST)
    assert carrying.digest == plain.digest


@pytest.mark.parametrize(
    ("stated", "paths"),
    [
        ({"slug": "Towns", "title": "Towns", **LEAST}, ["policy.slug"]),
        ({"slug": "towns", "title": "", **LEAST}, ["policy.title"]),
        ({"slug": "towns", "rule": "paired"}, ["policy.tolerance_points"]),
        ({"slug": "towns", **LEAST, "cases": []}, ["policy.cases"]),
        ("strict", ["policy"]),
    ],
)
def test_a_suite_with_a_wrong_policy_is_refused(stated: Any, paths: list[str]) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_suite({**SUITE, "policy": stated})
    assert [path for path in refused.value.fields if path.startswith("policy")] == paths
