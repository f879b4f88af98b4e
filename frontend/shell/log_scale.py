"""A logarithmic axis that shows a true zero too."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

ZERO = 0.7  # decades below the axis, the line of an exact zero
SMALLEST = -6  # power of ten; what is smaller is drawn there


@dataclass(frozen=True, slots=True)
class LogScale:
    """Powers of ten that an axis shows. Values are placed by their logarithm, zero below all of them."""

    low: int
    high: int

    def y(self, value: float) -> float:
        if value == 0:
            return self.low - ZERO
        return round(min(max(math.log10(value), self.low), self.high), 3)

    @property
    def axis(self) -> dict[str, Any]:
        powers = range(self.low, self.high + 1)
        values = [f"{10.0**power:.{max(-power, 0)}f}" for power in powers]
        return {
            "range": [self.low - ZERO - 0.25, self.high + 0.3],
            "tickvals": [self.low - ZERO, *powers],
            "ticktext": ["0", *values[:-1], f"{values[-1]} nats"],
        }


def scale_of(values: Iterable[float | None], *, least: int, most: int) -> LogScale:
    """Return a scale that shows the values, and at least the powers from `least` to `most`."""
    powers = [math.log10(value) for value in values if value]
    low = min([least, *(math.floor(power) for power in powers)])
    return LogScale(max(low, SMALLEST), max([most, *(math.ceil(power) for power in powers if power < 3)]))
