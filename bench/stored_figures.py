"""The last figures that were kept, and how new ones stand against them: better, equal within noise, worse."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path

from bench.row import Row, read_row

PATH = Path(__file__).with_name("figures.json")
# What one machine gives twice in a row: a time varies with its neighbours, a size or a count by nothing but the code.
TIME_NOISE, OTHER_NOISE = 0.15, 0.01


class Standing(StrEnum):
    BETTER = "better"
    EQUAL = "equal within noise"
    WORSE = "worse"
    OTHER = "other"  # of what is better neither higher nor lower


@dataclass(frozen=True)
class Figure:
    """Hold a stored row, and the yardstick of the machine when it was read, in seconds."""

    row: Row
    yardstick: float
    date: str

    def judge(self, row: Row, *, yardstick: float) -> Standing:
        """Hold a new row of the same unit against this one.

        Times are brought to the stored machine's speed first. Better or worse is what lies further off than the noise
        allows, and, where both were read several times, outside every reading of the other.
        """
        if isinstance(row.value, str) or isinstance(self.row.value, str):
            return Standing.EQUAL if row.value == self.row.value else Standing.OTHER
        scale = self._scale(row, yardstick)
        gain = row.value * scale - self.row.value
        if abs(gain) <= (TIME_NOISE if row.is_time else OTHER_NOISE) * abs(self.row.value):
            return Standing.EQUAL
        if row.trials and self.row.trials and _overlap([each * scale for each in row.trials], self.row.trials):
            return Standing.EQUAL
        if not row.sign:
            return Standing.OTHER
        return Standing.BETTER if gain * row.sign > 0 else Standing.WORSE

    def _scale(self, row: Row, yardstick: float) -> float:
        if not row.is_time:
            return 1.0
        return yardstick / self.yardstick if row.is_rate else self.yardstick / yardstick


def load() -> dict[str, dict[str, Figure]]:
    """Return the stored figures by part of the bench and by what was measured; none where nothing was stored."""
    if not PATH.exists():
        return {}
    parts = json.loads(PATH.read_text(encoding="utf-8"))
    return {
        part: {each["row"]["what"]: Figure(read_row(each["row"]), each["yardstick"], each["date"]) for each in figures}
        for part, figures in parts.items()
    }


def store(measured: Mapping[str, Iterable[Figure]]) -> None:
    """Put the figures of these parts in place of those stored; other parts stay."""
    parts = {part: list(figures.values()) for part, figures in load().items()}
    parts |= {part: list(figures) for part, figures in measured.items()}
    plain = {part: [asdict(figure) for figure in figures] for part, figures in sorted(parts.items())}
    PATH.write_text(json.dumps(plain, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _overlap(one: Sequence[float], other: Sequence[float]) -> bool:
    return min(one) <= max(other) and min(other) <= max(one)
