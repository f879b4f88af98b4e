"""A probe's numbers as a chart: x in percent of the plot, y in pixels, colours left to the stylesheet."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.wording import probe_states
from evalboard.wording.numbers import counted, fixed
from frontend.probes.numbers import prompt_name, significant
from frontend.probes.words import SAID
from frontend.shell.charts.axes import (
    CountBar,
    Scale,
    Tick,
    Upright,
    counts_upright,
    position_ticks,
    scale_of_positions,
)
from frontend.shell.findings import Headline
from runs.probes import CanaryLine

Numbers = Mapping[str, Any]

MIN_POSITIONS = 8
PLACES_HEIGHT, PLACES_TOP, PLACES_FOOT = 190.0, 14.0, 36.0
LARGEST_BAR = 3.0  # percent
SAME_Y, DIFFERENT_Y = 9.0, 23.0
MIN_RADIUS, MAX_RADIUS = 3.0, 6.5


@dataclass(frozen=True, slots=True)
class CopyPlace:
    """Where copies diverge from their prompt's most common text, and both tokens; "" if unknown."""

    prompt: str
    position: int
    modal: str
    other: str
    n: int


@dataclass(frozen=True, slots=True)
class PlacesChart:
    """Copies by the position of their first divergence; `places` are the same numbers."""

    bars: tuple[CountBar, ...]
    ticks: tuple[Tick, ...]
    levels: list[tuple[float, str]]
    places: tuple[CopyPlace, ...]
    axis_y: float
    height: float
    caption: Headline
    label: str
    unit: str


def places(numbers: Numbers, prompts: Sequence[str], tokens: Mapping[int, str]) -> PlacesChart | None:
    """Return None where every copy has its prompt's commonest text. `tokens` draws ids."""
    divergences = numbers["first_divergences"]
    if not divergences:
        return None
    by_position = Counter[int]()
    for each in divergences:
        by_position[each["position"]] += each["n"]
    last = max(*by_position, MIN_POSITIONS)
    axis_y = PLACES_HEIGHT - PLACES_FOOT
    scale = scale_of_positions(last + 1)
    axis, levels = counts_upright(max(by_position.values()), PLACES_TOP, axis_y)
    width = min(LARGEST_BAR, 0.8 * scale.width / (last + 1))
    bars = tuple(
        CountBar(
            round(scale.x(position) - width / 2, 3),
            axis.y(n),
            round(width, 3),
            axis.height(n),
            f"position {position}: {n:,} copies",
        )
        for position, n in sorted(by_position.items())
    )
    return PlacesChart(
        bars=bars,
        ticks=position_ticks(scale),
        levels=levels,
        places=tuple(_place(each, prompts, tokens) for each in divergences),
        axis_y=axis_y,
        height=PLACES_HEIGHT,
        caption=_describe_places(numbers, by_position),
        label=f"copies by the position where they part, from 0 to {last}",
        unit=numbers["compared"],
    )


def token_ids(numbers: Numbers) -> tuple[int, ...]:
    """Return the tokens that the chart names."""
    named = (divergence[name] for divergence in numbers["first_divergences"] for name in ("token_modal", "token_other"))
    return tuple(sorted({token for token in named if token is not None}))


@dataclass(frozen=True, slots=True)
class PairsDot:
    """Pairs that share the same number of tokens: the more there are, the larger."""

    x: float
    radius: float
    label: str


@dataclass(frozen=True, slots=True)
class PairsRow:
    prompt: str
    same: tuple[PairsDot, ...]
    different: tuple[PairsDot, ...]
    label: str


@dataclass(frozen=True, slots=True)
class PairsChart:
    """By prompt, the tokens shared by pairs with one seed, above those with other seeds."""

    rows: tuple[PairsRow, ...]
    ticks: tuple[Tick, ...]
    same_y: float
    different_y: float
    caption: Headline
    unit: str


def pairs(numbers: Numbers, prompts: Sequence[str]) -> PairsChart:
    scale = scale_of_positions(max(prompt["length"] for prompt in numbers["prompts"]) + 1)
    unit = f"{numbers['compared']}s"
    rows = tuple(
        PairsRow(
            prompt=prompt_name(prompt["prompt"], prompts),
            same=_dots(prompt["pairs_same"], scale, f"{unit} alike, one seed"),
            different=_dots(prompt["pairs_different"], scale, f"{unit} alike, other seeds"),
            label=f"mean {unit} alike: {fixed(prompt['shared_same'], 1)} under one seed, "
            f"{fixed(prompt['shared_different'], 1)} under others",
        )
        for prompt in numbers["prompts"]
    )
    same, other = (fixed(numbers[f"shared_{which}"], 1) for which in ("same", "different"))
    claim, rest = SAID.write("pairs", unit=unit, same=same, other=other), SAID.write("pair_marks")
    return PairsChart(rows, position_ticks(scale), SAME_Y, DIFFERENT_Y, Headline(claim, rest), unit)


@dataclass(frozen=True, slots=True)
class CanaryMark:
    """One canary; no y where there were too few runs to measure. `standing` decides its look."""

    x: float
    y: float
    standing: str
    line: CanaryLine
    word: str
    moved: str
    noise: str


@dataclass(frozen=True, slots=True)
class CanaryChart:
    """How far logprobs moved at each canary, oldest first. noise_y: the newest noise between runs."""

    marks: tuple[CanaryMark, ...]
    levels: list[tuple[float, str]]
    noise_y: float | None
    axis_y: float
    height: float
    caption: Headline
    label: str


def canaries(lines: Sequence[CanaryLine]) -> CanaryChart | None:
    """Draw canaries in a row; None with fewer than two values."""
    known = [(line, line.moved) for line in lines if line.moved is not None]
    if len(known) < 2:
        return None
    noise = known[-1][0].noise
    highest = max(*(moved for _, moved in known), noise or 0.0) or 1.0
    axis_y = PLACES_HEIGHT - PLACES_FOOT
    axis, scale = Upright(highest, PLACES_TOP, axis_y), scale_of_positions(len(known))
    marks = tuple(
        CanaryMark(
            scale.x(place),
            axis.y(moved),
            (state := probe_states.describe_state("canary", line.state)).standing,
            line,
            state.word,
            significant(moved),
            significant(line.noise),
        )
        for place, (line, moved) in enumerate(known)
    )
    ill = sum(mark.standing == "bad" for mark in marks)
    claim = SAID.write("canaries_moved" if ill else "canaries_held", n=ill, n_all=len(marks))
    return CanaryChart(
        marks=marks,
        levels=axis.levels(),
        noise_y=axis.y(noise) if noise else None,
        axis_y=axis_y,
        height=PLACES_HEIGHT,
        caption=Headline(claim, SAID.write("canary_marks")),
        label=f"movement of logprobs at {len(marks)} canaries, up to {significant(highest)} nats",
    )


def _dots(shared: Sequence[int], scale: Scale, what: str) -> tuple[PairsDot, ...]:
    n_pairs = Counter(shared)
    return tuple(
        PairsDot(
            scale.x(value),
            round(min(MIN_RADIUS + 0.6 * (n - 1) ** 0.5, MAX_RADIUS), 2),
            f"{value} {what}: {counted(n, 'pair')}",
        )
        for value, n in sorted(n_pairs.items())
    )


def _place(divergence: Mapping[str, Any], prompts: Sequence[str], tokens: Mapping[int, str]) -> CopyPlace:
    modal, other = (tokens.get(divergence[name], "") for name in ("token_modal", "token_other"))
    return CopyPlace(prompt_name(divergence["prompt"], prompts), divergence["position"], modal, other, divergence["n"])


def _describe_places(numbers: Numbers, by_position: Counter[int]) -> Headline:
    n_other = numbers["n_copies"] - numbers["n_modal"]
    position, n = by_position.most_common(1)[0]
    claim = SAID.write("copies", n=n, n_other=n_other, position=position)
    return Headline(claim, SAID.write("copy_bars"))
