"""A policy is checked in full, and written one way."""

import math
from typing import Any

import pytest
from scipy.stats import multivariate_normal

from evalboard.core.errors import InvalidInput
from evalboard.core.stats import quantiles
from evalboard.core.suite import policy
from evalboard.core.suite.policy import DEFAULT_POLICIES, DEFAULT_POLICY, PolicySettings
from evalboard.core.suite.suite import parse_suite

LEAST = {"rule": "paired", "tolerance_points": 2}


def test_what_is_left_out_has_a_default_and_is_written_out() -> None:
    found = policy.parse_policy(LEAST)
    assert found == PolicySettings("paired", 2.0, 1.0, (5, 10, 20), 24.0)
    assert found.settings() == {
        "rule": "paired",
        "tolerance_points": 2.0,
        "guard_points": 1.0,
        "looks": [5, 10, 20],
        "window_hours": 24.0,
    }
    assert policy.parse_policy(found.settings()) == found


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
        pytest.param({**LEAST, "metric": "maj@3"}, "metric", id="another-metric"),
        pytest.param({**LEAST, "metric": 2}, "metric", id="a-metric-without-a-name"),
        pytest.param({**LEAST, "metric": "pass@5"}, "metric", id="as-many-draws-as-the-first-look"),
        pytest.param({**LEAST, "metric": "pass^3", "looks": [3, 10, 20]}, "metric", id="more-than-a-quick-look"),
        pytest.param({**LEAST, "alpha": 0.5}, "alpha", id="unknown"),
        pytest.param([], "", id="not-an-object"),
    ],
)
def test_what_is_refused_names_its_field(settings: Any, path: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        policy.parse_policy(settings)
    assert list(refused.value.fields) == [path]


def test_a_metric_is_named_where_it_is_not_the_mean_and_a_refusal_says_which_k_would_do() -> None:
    stated = policy.parse_policy({**LEAST, "metric": "pass@4"})
    assert stated.settings()["metric"] == "pass@4"
    assert policy.parse_policy(stated.settings()) == stated
    assert policy.parse_policy({**LEAST, "metric": "mean"}).settings() == policy.parse_policy(LEAST).settings()
    with pytest.raises(InvalidInput) as refused:
        policy.parse_policy({**LEAST, "metric": "pass@4", "looks": [3, 10, 20]})
    assert refused.value.fields["metric"] == (
        "takes 5 draws of a case, one more than its k, and the first look has 3: use a k of at most 2, or looks of "
        "[5, 10, 20]"
    )


@pytest.mark.parametrize(
    ("looks", "bounds", "spent"), [((5, 10, 20), (1.881, 2.12, 2.12), 0.0500), ((3, 10, 20), (1.881, 2.2, 2.2), 0.0487)]
)
def test_all_looks_together_ship_one_in_twenty_at_the_tolerance_and_waste_none_of_it(
    looks: tuple[int, ...], bounds: tuple[float, ...], spent: float
) -> None:
    """Repeats are pooled, so two looks at j and k of them are correlated by sqrt(j/k); the tail is exact."""
    found = policy.parse_policy({**LEAST, "looks": list(looks)})
    taken = [quantiles.normal_quantile(1 - found.alpha(look)) for look in found.looks]
    assert taken == pytest.approx(bounds, abs=0.001)
    correlations = [[math.sqrt(min(one, other) / max(one, other)) for other in looks] for one in looks]
    pooled = multivariate_normal([0.0] * 3, correlations, abseps=1e-8, releps=1e-8, maxpts=10**6, seed=1)
    assert 1 - pooled.cdf(taken) == pytest.approx(spent, abs=0.00005)


def test_every_installation_has_a_strict_and_a_paired_policy_of_one_point() -> None:
    assert list(DEFAULT_POLICIES) == ["strict", "paired"]
    assert DEFAULT_POLICY == "strict"
    for slug, default in DEFAULT_POLICIES.items():
        found = policy.parse_policy(default["settings"])
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
    assert carrying.policy.settings == policy.parse_policy(LEAST)
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


@pytest.mark.parametrize("looks", policy.LOOKS)
@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, 0.8, 0.95])
def test_a_targeted_look_in_place_of_the_next_spends_no_more_than_one_in_twenty(
    looks: tuple[int, ...], share: float
) -> None:
    """share: of the noise, what the noisy fifth holds. Repeats are pooled: cov(d, d later) is the later variance."""
    found = policy.parse_policy({**LEAST, "looks": list(looks)})
    for first in looks[:-1]:
        whole = [look for look in looks if look <= first]
        alphas = [*map(found.alpha, whole), policy.TARGETED_ALPHA]
        n_targeted = policy.TARGETED_REPEATS[first]
        variances = [1 / look for look in whole] + [(1 - share) / first + share / (first + n_targeted)]
        for later in found.later_looks(first, is_targeted=True):
            alphas.append(found.alpha(later))
            variances.append((1 - share) / later + share / (later + n_targeted))
        bounds = [quantiles.normal_quantile(1 - alpha) for alpha in alphas]
        correlations = [[(min(one, other) / max(one, other)) ** 0.5 for other in variances] for one in variances]
        spent = 1 - multivariate_normal(mean=[0] * len(bounds), cov=correlations, seed=1).cdf(bounds)
        assert spent <= 0.0501
