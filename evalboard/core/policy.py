"""A policy: the thresholds that turn comparisons into a verdict. docs/verdict.md says what each one decides."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from evalboard.core.document import Problems, at

RULES = ("strict", "paired")
# Looks → what each may spend. Repeats are pooled, so looks are correlated, and all three together spend 0.05.
ALPHAS: dict[tuple[int, ...], tuple[float, ...]] = {
    (5, 10, 20): (0.03, 0.017, 0.017),
    (3, 10, 20): (0.03, 0.0139, 0.0139),
}
LOOKS = tuple(ALPHAS)
LEAST_TOLERANCE, MOST_POINTS = 0.1, 100.0
MOST_WINDOW_HOURS = 24 * 366
FIELDS = ("rule", "tolerance_points", "guard_points", "looks", "window_hours")


@dataclass(frozen=True, slots=True)
class PolicySettings:
    """Settings that have been checked.

    rule: `strict` refuses a verdict where either side's range is above guard_points, `paired` only says so.
    tolerance_points: the largest drop that people accept. looks: numbers of repeats at which a verdict may be taken.
    window_hours: how far apart the two sides may have run where nothing else says that they were served alike.
    """

    rule: str
    tolerance_points: float
    guard_points: float = 1.0
    looks: tuple[int, ...] = LOOKS[0]
    window_hours: float = 24.0

    @property
    def is_guarded(self) -> bool:
        return self.rule == "strict"

    def alpha(self, look: int) -> float:
        """The share of candidates exactly at the tolerance that may be called safe at this look."""
        return ALPHAS[self.looks][self.looks.index(look)]

    def of_draws(self) -> "PolicySettings":
        """The policy as it judges sampled runs: the range of draws is the sampler's, so no guard is asked of it."""
        return replace(self, rule="paired")

    def settings(self) -> dict[str, Any]:
        """The complete settings as JSON, the same for every way of writing them."""
        return {
            "rule": self.rule,
            "tolerance_points": self.tolerance_points,
            "guard_points": self.guard_points,
            "looks": list(self.looks),
            "window_hours": self.window_hours,
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
    """The policy where nobody named one. The range of draws is the sampler's, which a guard would take for noise."""
    return SAMPLED_POLICY if is_sampled else DEFAULT_POLICY


def parse(settings: Mapping[str, Any]) -> PolicySettings:
    """Check a policy's settings strictly. Raises InvalidInput whose fields name each path.

    rule and tolerance_points must be stated, because they are what people agree on; the others have defaults.
    """
    problems = Problems()
    found = read(settings, "", problems)
    problems.raise_if_any("The policy is not valid")
    if found is None:
        raise AssertionError("settings without problems were not read")
    return found


def read(settings: Any, path: str, problems: Problems) -> PolicySettings | None:
    """Return the policy in a part of a document, or None after adding to the problems."""
    n_before = problems.n_found
    if not isinstance(settings, Mapping):
        problems.add(path, "must be an object")
        return None
    for name in settings:
        if name not in FIELDS:
            problems.add(at(path, str(name)), f"is unknown; known are {', '.join(FIELDS)}")
    rule = settings.get("rule")
    if rule not in RULES:
        problems.add(at(path, "rule"), f"must be one of {', '.join(RULES)}")
    # A tolerance of 0 would never ship a candidate that is exactly as good.
    tolerance = _read_number(settings, "tolerance_points", None, (LEAST_TOLERANCE, MOST_POINTS), path, problems)
    guard = _read_number(settings, "guard_points", 1.0, (0.0, MOST_POINTS), path, problems)
    window = _read_number(settings, "window_hours", 24.0, (0.0, MOST_WINDOW_HOURS), path, problems)
    looks = settings.get("looks", list(LOOKS[0]))
    if not isinstance(looks, list | tuple) or tuple(looks) not in LOOKS or any(type(look) is not int for look in looks):
        known = " or ".join(str(list(each)) for each in LOOKS)
        problems.add(at(path, "looks"), f"must be {known}")
    if problems.n_found > n_before:
        return None
    return PolicySettings(str(rule), tolerance, guard, tuple(looks), window)


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
