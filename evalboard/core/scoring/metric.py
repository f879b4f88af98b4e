"""Name the metrics over several samples of a case: mean, pass@k or pass^k (docs/verdict.md)."""

import re
from dataclasses import dataclass

PASS_AT, PASS_ALL = "pass@", "pass^"
NAMED = re.compile(r"(pass@|pass\^)([1-9][0-9]{0,2})")


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """A metric over samples.

    kind: `mean`, PASS_AT (at least one of k is right) or PASS_ALL (all k are right). k: number of samples.
    """

    kind: str = "mean"
    k: int = 1

    @property
    def is_mean(self) -> bool:
        return self.kind == "mean"

    @property
    def name(self) -> str:
        return self.kind if self.is_mean else f"{self.kind}{self.k}"


MEAN = MetricSpec()


def parse_metric(name: object) -> MetricSpec | None:
    """Return the metric of a name such as "pass@3", None if it is no metric.

    With k = 1 both are the mean.
    """
    if name == MEAN.kind:
        return MEAN
    match = NAMED.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return None
    return MEAN if match[2] == "1" else MetricSpec(match[1], int(match[2]))
