"""The folded parts of a run's page: each in one line, and the table of what repeats say of its noise."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from evalboard.contract.bucket import Bucket
from evalboard.contract.run import Run
from evalboard.core.profile import OBSERVED
from evalboard.core.stats import ASSUMED_CHURN, CONFIDENCE_LEVEL
from evalboard.wording.numbers import capital, counted, fixed
from frontend.runs.charts import BackendPart
from frontend.runs.words import SAID, describe_few_draws
from frontend.templatetags.numbers import MISSING, NARROW, count, noise_floor, points, seconds, share, span


@dataclass(frozen=True, slots=True)
class Fold:
    """A folded section. text: its result; note: at the end of its line."""

    text: str
    note: str = ""


def summarise(run: Run, backends: tuple[BackendPart, ...], n_measures: int) -> dict[str, Fold]:
    """Return each part's line by the part's name."""
    return {
        "noise": Fold(_noise(run, backends), counted(n_measures, "measure") if n_measures else ""),
        "shards": Fold(_shards(run), f"{run.progress.n_done:,} of {run.progress.n_total:,} responses"),
        "environment": Fold(_environment(run), "manifest" if run.manifest else ""),
        "pins": Fold(_pins(run)),
        "scores": Fold(_scores(run), str(len(run.scores)) if run.scores else ""),
        "history": Fold(_history(run), counted(len(run.events), "line")),
    }


def _noise(run: Run, backends: tuple[BackendPart, ...]) -> str:
    if backends:
        floors = [
            f"{noise_floor(part.bucket.noise.sd_points)} on {part.letter}"
            if part.bucket.noise.sd_points is not None
            else f"not known on {part.letter}"
            for part in backends
        ]
        return SAID.write("floor_by_backend", floors=floors)
    noise = run.noise
    if run.draws.is_one:
        return SAID.write("is_one_sample")
    if noise.sd_points is None:
        return describe_few_draws(run)
    floor = f"{noise_floor(noise.sd_points)}{' points' if noise.sd_points else ''}"
    more = ""
    if noise.resolution is not None:
        here, elsewhere = points(noise.resolution.points), points(noise.resolution.elsewhere_points)
        more += f"; detects changes of {here} here, {elsewhere} on new cases"
    if noise.disagreement_rate is not None:
        more += f"; {share(noise.disagreement_rate)} of pairs disagree"
    return SAID.write("floor", floor=floor, more=more)


def _shards(run: Run) -> str:
    shards = [shard for line in run.every_repeat for shard in line.shards]
    n, n_finished, n_retried = (
        sum(getattr(shard, name) for shard in shards) for name in ("n_shards", "n_finished", "n_retried")
    )
    if run.source is not None:
        return SAID.write("imported")
    took = _took(run.started_at, run.finished_at)
    retried = f"; {n_retried:,} on another attempt" if n_retried else ""
    return SAID.write("shards", n=n, n_finished=n_finished, took=took, retried=retried)


def _took(since: datetime | None, until: datetime | None) -> str:
    return f" in {seconds((until - since).total_seconds())}" if since and until else ""


def _environment(run: Run) -> str:
    known = [
        f"{' · '.join(dict.fromkeys((bucket.backend, bucket.fingerprint.label)))}, {_batching(bucket.batch_class)}"
        for bucket in run.buckets
    ]
    code = "several_buckets" if len(known) > 1 else "one_bucket" if known else "no_engine"
    return SAID.write(code, n=len(known), names="; ".join(known))


def _batching(batch_class: str) -> str:
    return "batching unknown" if batch_class == OBSERVED else f"batch class {batch_class}"


def _pins(run: Run) -> str:
    seed = "a seed for each call, from {}" if run.draws.has_call_seeds else "seed {}"
    named = {"temperature": "temperature {}", "seed": seed, "max_tokens": "at most {} tokens"}
    known = {name: run.sampling.get(name) for name in named}
    sampling = [named[name].format(f"{value:g}") for name, value in known.items() if isinstance(value, int | float)]
    pins = run.pins
    if pins.broken:
        attested = f"{len(pins.broken)} of {len(pins.every)} pins broken"
    elif pins.every:
        attested = f"all {counted(len(pins.every), 'pin')} read back as wanted"
    else:
        attested = "its profile wants no pin" if pins.held else "pins are not attested"
    settings = f"{', '.join(sampling)}; {attested}" if sampling else capital(attested)
    return SAID.write("pins", settings=settings)


def _scores(run: Run) -> str:
    if not any(line.scorer.is_own for line in run.scores):
        return SAID.write("not_scored")
    n_more = len(run.scores) - 1
    more = f"; {counted(n_more, 'other scorer')}" if n_more else "; score again with another scorer"
    return SAID.write("scorer", more=more)


def _history(run: Run) -> str:
    by = f" by {run.created_by}" if run.created_by else ""
    parts = [f"{'Imported' if run.source else 'Requested'}{by}, {_at(run.created_at)}"]
    if run.started_at and not run.source:
        parts.append(f"started {_at(run.started_at)}")
    if run.finished_at:
        parts.append(f"ended {_at(run.finished_at)}")
    return SAID.write("history", steps="; ".join(parts))


def _at(value: datetime) -> str:
    return value.astimezone(UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True, slots=True)
class NoiseRow:
    """`values` has one text a bucket."""

    name: str
    values: tuple[str, ...]
    meaning: str


@dataclass(frozen=True, slots=True)
class _Measure:
    name: str
    show: Callable[[Bucket], str]
    meaning: str


def noise_rows(buckets: Sequence[Bucket]) -> tuple[NoiseRow, ...]:
    """Return the table's rows.

    What is known of no bucket has no row: one repeat has a range and a reach, and two have the rest.
    """
    lines = (
        NoiseRow(measure.name, tuple(measure.show(bucket) for bucket in buckets), measure.meaning)
        for measure in MEASURES
    )
    return tuple(row for row in lines if set(row.values) != {MISSING})


def _width(value: float | None) -> str:
    return MISSING if value is None else f"{points(value)}{NARROW}points"


def _floor(value: float | None) -> str:
    return _width(value) if value else noise_floor(value)


def _unlikely(value: float | None) -> str:
    """Return the chance of repeats that differ as much: small enough to say so, or ordinary."""
    if value is None:
        return MISSING
    return f"p{NARROW}{'under 0.001' if value < 0.001 else fixed(value, 3)}"


MEASURES = (
    _Measure("Range", lambda bucket: span(bucket.range_so_far), "lowest to highest repeat"),
    _Measure(
        "On these cases",
        lambda bucket: span(bucket.noise_so_far.interval),
        f"measurement interval, {share(CONFIDENCE_LEVEL)}: the score that unlimited repeats would reach",
    ),
    _Measure(
        "On cases like these",
        lambda bucket: span(bucket.noise_so_far.reach),
        f"reach, {share(CONFIDENCE_LEVEL)}: no number of repeats makes it narrower, only more cases do",
    ),
    _Measure(
        "Noise floor",
        lambda bucket: _floor(bucket.noise.sd_points),
        "standard deviation of one repeat’s score, from flips within cases",
    ),
    _Measure(
        "Range of 5 repeats",
        lambda bucket: _width(bucket.noise_so_far.range5_points),
        "what any 5 of these repeats span; where nothing is drawn, the policy strict decides nothing above its guard",
    ),
    _Measure(
        "Range to expect",
        lambda bucket: _floor(bucket.noise.expected_range_points),
        "of 5 repeats, by the noise floor",
    ),
    _Measure(
        "Repeats disagree",
        lambda bucket: share(bucket.noise.disagreement_rate),
        "chance that two repeats of one case differ in score",
    ),
    _Measure(
        "Unstable cases",
        lambda bucket: count(bucket.noise.n_unstable),
        "seen with two scores; there may be more",
    ),
    _Measure(
        "Same text",
        lambda bucket: share(bucket.noise.texts_alike),
        "cases of which every repeat gave one text (TARr)",
    ),
    _Measure(
        "Same score",
        lambda bucket: share(bucket.noise.scores_alike),
        "cases of which every repeat gave one score (TARa)",
    ),
    _Measure(
        "Runs as a whole",
        lambda bucket: _unlikely(bucket.noise.overdispersion),
        "chance of repeats this far apart if only cases flip; under 0.005 look for routing, load or a changed backend",
    ),
    _Measure(
        "Detects here",
        lambda bucket: _width(bucket.noise.resolution.points if bucket.noise.resolution else None),
        "smallest change on these cases that such repeats on both sides tell from noise, 4 times in 5",
    ),
    _Measure(
        "Detects elsewhere",
        lambda bucket: _width(bucket.noise.resolution.elsewhere_points if bucket.noise.resolution else None),
        f"the same for other cases like these, where {share(ASSUMED_CHURN)} change their score",
    ),
    _Measure(
        "Likely to flip",
        lambda bucket: count(bucket.noise.n_likely_to_flip),
        "cases, predicted from the margins of the first repeat alone",
    ),
)
