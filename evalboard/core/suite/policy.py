"""Parse policies: the thresholds that turn comparisons into a verdict (docs/verdict.md)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalboard.core.document import Problems, at
from evalboard.core.scoring import MEAN, MetricSpec, parse_metric

POLICY_RULES = ("strict", "paired")
# Looks → what each may spend. Repeats are pooled, so looks are correlated, and all three together spend 0.05.
ALPHAS: dict[tuple[int, ...], tuple[float, ...]] = {
    (5, 10, 20): (0.03, 0.017, 0.017),
    (3, 10, 20): (0.03, 0.0139, 0.0139),
}
LOOKS = tuple(ALPHAS)
# At a look, how many repeats of the noisiest cases alone stand in for the next look, and what that look may spend: all
# looks together stay within 0.05 whatever part of the noise those cases hold, up to 95 % (tests/core/test_policy.py).
TARGETED_REPEATS = {3: 12, 5: 12, 10: 24}
TARGETED_ALPHA = 0.0125
MIN_TOLERANCE, MAX_POINTS = 0.1, 100.0
MAX_WINDOW_HOURS = 24 * 366
POLICY_FIELDS = ("rule", "tolerance_points", "guard_points", "looks", "window_hours", "metric")


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Settings that have been checked.

    rule: `strict` refuses a verdict where either side's range is above guard_points, `paired` only says so.
    tolerance_points: the largest drop that people accept. looks: numbers of repeats at which a verdict may be taken.
    window_hours: how far apart the two sides may have run where nothing else says that they were served alike.
    metric: what of a case's draws is compared.
    """

    rule: str
    tolerance_points: float
    guard_points: float = 1.0
    looks: tuple[int, ...] = LOOKS[0]
    window_hours: float = 24.0
    metric: MetricSpec = MEAN

    @property
    def is_guarded(self) -> bool:
        return self.rule == "strict"

    def alpha(self, look: int) -> float:
        """Return the false-safe rate at this checkpoint for a candidate exactly at the tolerance."""
        return ALPHAS[self.looks][self.looks.index(look)]

    def later_looks(self, look: int, *, is_targeted: bool = False) -> tuple[int, ...]:
        """Return the checkpoints after this one. is_targeted: noisy-case repeats replaced the next."""
        later = tuple(each for each in self.looks if each > look)
        return later[1:] if is_targeted else later

    def without_guard(self) -> "PolicySettings":
        """Return the policy for sampled runs, without the range limit.

        Sampling alone makes scores vary, so no range limit applies.
        """
        return replace(self, rule="paired")

    def settings(self) -> dict[str, Any]:
        """Return the complete settings as JSON, the same for every way of writing them.

        A mean is not named: the settings of policies that were stored before there was another metric stay the same.
        """
        return {
            "rule": self.rule,
            "tolerance_points": self.tolerance_points,
            "guard_points": self.guard_points,
            "looks": list(self.looks),
            "window_hours": self.window_hours,
            **({} if self.metric.is_mean else {"metric": self.metric.name}),
        }


DEFAULT_POLICY, SAMPLED_POLICY = "strict", "paired"
DEFAULT_POLICIES: dict[str, dict[str, Any]] = {
    "strict": {
        "title": "Strict: no verdict from a bucket whose range is over 1 point",
        "settings": PolicySettings("strict", 1.0).settings(),
    },
    "paired": {
        "title": "Paired: decide case by case, however wide the range",
        "settings": PolicySettings("paired", 1.0).settings(),
    },
}


def default_policy(*, is_sampled: bool) -> str:
    """Return the default policy's name; for sampled runs one without a range limit."""
    return SAMPLED_POLICY if is_sampled else DEFAULT_POLICY


def parse_policy(settings: Mapping[str, Any]) -> PolicySettings:
    """Check a policy's settings strictly. Raises InvalidInput whose fields name each path.

    rule and tolerance_points must be stated, because they are what people agree on; the others have defaults.
    """
    problems = Problems()
    policy = read_policy(settings, "", problems)
    problems.raise_if_any("The policy is not valid")
    if policy is None:
        raise AssertionError("settings without problems were not read")
    return policy


def read_policy(settings: Any, path: str, problems: Problems) -> PolicySettings | None:
    """Return the policy in a part of a document, or None after adding to the problems."""
    n_before = problems.n_found
    if not isinstance(settings, Mapping):
        problems.add(path, "must be an object")
        return None
    for name in settings:
        if name not in POLICY_FIELDS:
            problems.add(at(path, str(name)), f"is unknown; known are {', '.join(POLICY_FIELDS)}")
    rule = settings.get("rule")
    if rule not in POLICY_RULES:
        problems.add(at(path, "rule"), f"must be one of {', '.join(POLICY_RULES)}")
    # A tolerance of 0 would never ship a candidate that is exactly as good.
    tolerance = _read_number(settings, "tolerance_points", None, (MIN_TOLERANCE, MAX_POINTS), path, problems)
    guard = _read_number(settings, "guard_points", 1.0, (0.0, MAX_POINTS), path, problems)
    window = _read_number(settings, "window_hours", 24.0, (0.0, MAX_WINDOW_HOURS), path, problems)
    looks = settings.get("looks", list(LOOKS[0]))
    if not isinstance(looks, list | tuple) or tuple(looks) not in LOOKS or any(type(look) is not int for look in looks):
        known = " or ".join(str(list(each)) for each in LOOKS)
        problems.add(at(path, "looks"), f"must be {known}")
    metric = _read_metric(settings.get("metric", MEAN.name), at(path, "metric"), problems)
    if problems.n_found == n_before and metric.k >= looks[0]:
        problems.add(at(path, "metric"), _describe_few_draws(metric, looks[0]))
    if problems.n_found > n_before:
        return None
    return PolicySettings(str(rule), tolerance, guard, tuple(looks), window, metric)


def _read_metric(name: Any, path: str, problems: Problems) -> MetricSpec:
    metric = parse_metric(name)
    if metric is None:
        problems.add(path, "must be mean, pass@k or pass^k with a number for k, as in pass@3")
    return metric or MEAN


def _describe_few_draws(metric: MetricSpec, first_look: int) -> str:
    """Say why a metric has no noise at the first look: leaving one draw out, there must be k others."""
    text = f"takes {metric.k + 1} draws of a case, one more than its k, and the first look has {first_look}"
    larger = [str(list(looks)) for looks in LOOKS if looks[0] > metric.k]
    return f"{text}: use a k of at most {first_look - 1}" + (f", or looks of {larger[0]}" if larger else "")


def _read_number(
    settings: Mapping[str, Any],
    name: str,
    default: float | None,
    limits: tuple[float, float],
    path: str,
    problems: Problems,
) -> float:
    value = settings.get(name, default)
    least, most = limits
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        problems.add(at(path, name), f"must be a number from {least:g} to {most:g}")
        return 0.0
    return float(value)
