"""Name what several draws of a case come to: the mean of their scores, pass@k or pass^k (docs/verdict.md)."""

import re
from dataclasses import dataclass

PASS_AT, PASS_ALL = "pass@", "pass^"
NAMED = re.compile(r"(pass@|pass\^)([1-9][0-9]{0,2})")


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """kind: `mean`, PASS_AT for one right draw of k at least, or PASS_ALL for k of k; k: the draws that it is about."""

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
    """Return the metric of a name such as "pass@3"; None where it names none. Of one draw both are the mean."""
    if name == MEAN.kind:
        return MEAN
    match = NAMED.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        return None
    return MEAN if match[2] == "1" else MetricSpec(match[1], int(match[2]))
