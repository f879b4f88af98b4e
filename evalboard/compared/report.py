"""Build a comparison for its page, `GET /compare/` and `evalboard diff`, without its list of cases."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any

from evalboard.contract import compare as contract
from evalboard.contract.base import Note
from evalboard.contract.compare import SIDES, ComparedCounts
from evalboard.contract.parts import Cost, FingerprintNamed, RepeatScored
from evalboard.contract.run import SuiteNamed
from evalboard.contract.treatments import MODEL_TREATMENT
from evalboard.core.compare import name_served, round_to_tenths
from evalboard.core.stats import NOISE_LEVEL, drawn_points, find_beyond, span
from evalboard.core.trace import Vocabulary
from evalboard.wording.cause import count_larger_shifts, explain_noise
from evalboard.wording.comparability import explain_block, write_prompts
from evalboard.wording.computation import write_computation
from evalboard.wording.noise_share import write_noise_share

CLUSTERS_SHOWN, FACETS_SHOWN = 23, 40
NO_SIDES: dict[str, Any] = {name: {"repeats": [], "buckets": [], "vocabulary": None} for name in SIDES}
NOTHING_COUNTED = dict.fromkeys(ComparedCounts.model_fields, 0)
NO_PARTS = dict.fromkeys(contract.CaseParts.model_fields, 0)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedSide:
    """The names and scores of one side. model: for a side without answers.

    points: by repeat, None where it has no score; left_out: by repeat, how many responses are no draws. targeted: a bit
    a case, of each repeat of chosen cases alone.
    """

    run: str
    suite: SuiteNamed
    endpoint: str
    profile: str
    profile_version: int
    model: str
    scorer_digest: str
    points: Mapping[int, float | None]
    left_out: Mapping[int, int | None]
    targeted: Sequence[int]
    speed: contract.SpeedAndTokens | None = None
    cost: Cost | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """The names behind a summary's numbers. buckets: by id, with model and fingerprint.

    backends: by id, what each is called. case_ids: by index, of the shown clusters. read_words: returns a vocabulary
    by its id.
    """

    sides: tuple[NamedSide, NamedSide]
    buckets: Mapping[int, Any]
    backends: Mapping[int, str]
    case_ids: Mapping[int, str]
    read_words: Callable[[int], Vocabulary]


def write_comparison(
    summary: Json,
    named: Named,
    *,
    repeat: str | None,
    progress: contract.ComparisonProgress,
    finished_at: datetime | None,
    url: str,
    id: int = 0,  # noqa: A002  the name that it has in the contract
) -> contract.Comparison:
    """Return the comparison of a summary, which may not be whole yet."""
    points = summary.get("score") or {"baseline": None, "candidate": None, "difference": None}
    sides = summary.get("sides", NO_SIDES)
    by_letter = named.backends
    return contract.Comparison(
        baseline=named.sides[0].run,
        candidate=named.sides[1].run,
        repeat=repeat,
        progress=progress,
        treatment=summary.get("treatment", MODEL_TREATMENT),
        comparable=bool(summary.get("comparable", False)),
        moved=tuple(contract.Moved(**moved) for moved in summary.get("moved", ())),
        prompts=_prompts(summary.get("prompts")),
        blocks=tuple(Note(code=block["code"], text=block["text"]) for block in summary.get("blocks", ())),
        score=contract.ScoreCompared(**points),
        counts=ComparedCounts(**summary.get("counts", NOTHING_COUNTED)),
        parts=contract.CaseParts(**summary.get("parts", NO_PARTS)),
        outcomes=contract.OutcomeCounts(**known) if (known := summary.get("outcomes")) else None,
        ledger=_ledger(summary),
        noise_share=_noise_share(summary),
        computation=read_computation(summary.get("computation")),
        larger_shifts=_larger_shifts(summary.get("larger_shifts")),
        noise=_noise(summary.get("noise")),
        onset_histogram=_histogram(summary.get("onsets")),
        flip_histogram=_histogram(summary.get("flips")),
        clusters=tuple(_cluster(each, sides, named) for each in summary.get("clusters", ())[:CLUSTERS_SHOWN]),
        n_clusters=summary.get("n_clusters", 0),
        causes=tuple(contract.CauseCount(**count) for count in summary.get("causes", ())),
        looks=tuple(contract.CauseCount(**count) for count in summary.get("looks", ())),
        unseen=tuple(summary.get("unseen", ())),
        sides=contract.ComparedSides(
            baseline=_side(sides["baseline"], named.sides[0], named.buckets, by_letter),
            candidate=_side(sides["candidate"], named.sides[1], named.buckets, by_letter),
        ),
        finished_at=finished_at,
        url=url,
        id=id,
        **_for_pages(summary, by_letter),
    )


def write_blocks(blocks: Sequence[Json]) -> list[Json]:
    """Return the blocks of a report with their sentences, as a summary keeps them."""
    return [{"code": block["code"], "text": explain_block(block["code"], block["facts"])} for block in blocks]


def shown_cases(summary: Json) -> set[int]:
    """Return the indexes of the cases that a summary's clusters name."""
    return {index for cluster in summary.get("clusters", ())[:CLUSTERS_SHOWN] for index in cluster["cases"]}


def read_computation(judged: Json | None) -> contract.Computation | None:
    """Return whether both sides' logprobs agree, from a summary."""
    return contract.Computation(**judged, text=write_computation(judged)) if judged else None


def draw_token(token: int | None, words: Vocabulary | None) -> str:
    """Return a readable token, "" for none; by its id if the vocabulary is not stored."""
    if token is None:
        return ""
    return f"⟨token {token}⟩" if words is None else words.draw([token])[0]


def to_points(score: float | None) -> float | None:
    """Return a score from 0 to 1 in points."""
    return None if score is None else 100 * score


def join_names(ours: Mapping[int, str], theirs: Mapping[int, str], endpoint: str) -> dict[int, str]:
    """Return what the buckets of both sides are called, by id.

    A name that the baseline's endpoint gives to another bucket stands after the candidate's endpoint.
    """
    own = {bucket: f"{endpoint} {name}" if name in ours.values() else name for bucket, name in theirs.items()}
    return {**own, **ours}


def _side(
    side: Json, named: NamedSide, known: Mapping[int, Any], by_letter: Mapping[int, str]
) -> contract.ComparedSide:
    repeats = tuple(side["repeats"])
    scores = tuple(named.points.get(index) for index in repeats)
    buckets = tuple(_bucket(known[bucket], n, share, by_letter) for bucket, n, share in side["buckets"])
    is_whole = len(buckets) <= 1 and None not in scores
    return contract.ComparedSide(
        run=named.run,
        suite=named.suite,
        endpoint=named.endpoint,
        profile=named.profile,
        profile_version=named.profile_version,
        model=buckets[0].model.name if buckets else named.model,
        repeats=tuple(RepeatScored(index=index, score=score) for index, score in zip(repeats, scores, strict=True)),
        range=span(drawn_points(scores, [named.left_out[index] or 0 for index in repeats])) if is_whole else None,
        scorer=contract.ScorerOfSide(digest=named.scorer_digest),
        buckets=buckets,
        targeted=_targeted(named.targeted),
        speed=named.speed,
        cost=named.cost,
        n_repeats=len(named.left_out),
    )


def _targeted(selections: Sequence[int]) -> contract.TargetedBeside | None:
    if not selections:
        return None
    return contract.TargetedBeside(n_repeats=len(selections), n_cases=reduce(or_, selections).bit_count())


def _bucket(bucket: Any, n: int, share: float, by_letter: Mapping[int, str]) -> contract.BucketOfSide:
    fingerprint = bucket.fingerprint
    return contract.BucketOfSide(
        id=str(bucket.pk),
        model=name_served(bucket.model),
        fingerprint=FingerprintNamed(id=str(fingerprint.pk), digest=fingerprint.digest, label=fingerprint.label),
        batch_class=bucket.batch_class,
        n_responses=n,
        share=share,
        backend=by_letter[bucket.pk],
    )


def _for_pages(summary: Json, by_letter: Mapping[int, str]) -> Json:
    """Return what only the page shows: the scatter of flips, and the case list's filters."""
    backends = summary.get("backends", ())[:FACETS_SHOWN]
    return {
        "flips": tuple(contract.FlipPoint(**flip) for flip in summary.get("sample", ())),
        "n_flips": summary["flips"]["n"] if "flips" in summary else 0,
        "backends": tuple((by_letter.get(ours, ""), by_letter.get(theirs, "")) for ours, theirs in backends),
        "tags": tuple(summary.get("tags", ())[:FACETS_SHOWN]),
    }


def _cluster(cluster: Json, sides: Json, named: Named) -> contract.Cluster:
    words = [None if (of := sides[name]["vocabulary"]) is None else named.read_words(of) for name in SIDES]
    ours, theirs = cluster["tokens"][0]
    return contract.Cluster(
        key=cluster["key"],
        cause=cluster["cause"],
        baseline_token=draw_token(ours, words[0]),
        candidate_token=draw_token(theirs, words[1]),
        n_cases=cluster["n_cases"],
        n_of_cause=cluster["n_of_cause"],
        cases=tuple(named.case_ids[index] for index in cluster["cases"]),
    )


def _noise(noise: dict[str, Any] | None) -> contract.NumericNoise | None:
    if not noise:
        return None
    known = {**noise, "ulp": noise["ulp"] or None, "dtype": noise["dtype"] or None}
    return contract.NumericNoise.from_stored(known, text=explain_noise(noise))


def _larger_shifts(counts: dict[str, int] | None) -> contract.LargerShifts | None:
    return contract.LargerShifts(**counts, text=count_larger_shifts(**counts) or None) if counts else None


def _ledger(summary: dict[str, Any]) -> tuple[contract.LedgerLine, ...]:
    n_pairs = {count["cause"]: count["n_pairs"] for count in summary.get("causes", ())}
    rows = summary.get("ledger", ())
    return tuple(
        contract.LedgerLine(
            **line,
            parts=tuple(contract.LedgerPart(**part) for part, _ in _lines(parts, line["shown"])),
            n_pairs=n_pairs.get(line["cause"], 0),
        )
        for line, parts in _lines(rows, summary["score"]["difference"] if rows else 0.0)
    )


def _noise_share(summary: dict[str, Any]) -> contract.NoiseShare | None:
    share, rows = summary.get("noise_share"), summary.get("ledger")
    if not share or not rows:
        return None
    difference, up_to = summary["score"]["difference"], share["up_to"]
    each = [row for line in rows for row in (line, *line["parts"]) if row["cause"] == "near_tie"]
    facts = {
        **share,
        "level": NOISE_LEVEL,
        "difference": difference,
        "near_ties": math.fsum(row["points"] for row in each) if each else None,
    }
    return contract.NoiseShare(
        **share,
        level=NOISE_LEVEL,
        beyond=None if up_to is None else find_beyond(difference, up_to),
        text=write_noise_share(facts, with_codes=_outcome_codes(summary.get("outcomes"))),
    )


def _outcome_codes(outcomes: Json | None) -> list[str]:
    """Return the codes of what a comparison claims of cases that changed and chance."""
    known = outcomes or {}
    if known.get("is_in_every_repeat"):
        return ["outcomes.in_every_repeat"]
    by_chance = (known.get(f"{outcome}_by_chance") or {} for outcome in ("broken", "fixed"))
    return ["outcomes.beyond"] if any(each.get("n_beyond") for each in by_chance) else []


def _lines(rows: Sequence[dict[str, Any]], whole: float) -> Iterator[tuple[dict[str, Any], Sequence[dict[str, Any]]]]:
    """Yield (fields, parts) of each row, with tenths that add up to the shown whole."""
    shown = round_to_tenths([row["points"] for row in rows], whole)
    for row, tenths in zip(rows, shown, strict=True):
        yield {name: value for name, value in row.items() if name != "parts"} | {"shown": tenths}, row.get("parts", ())


def write_change(message: Json) -> contract.ChangedMessage:
    """Return a message of two prompts that differs, as `core.compare.compare_prompts` gives it."""
    pieces = tuple(contract.ChangedText(kind=kind, text=text) for kind, text in message["pieces"])
    return contract.ChangedMessage(role=message["role"], pieces=pieces)


def _prompts(judged: Json | None) -> contract.PromptsCompared | None:
    if not judged:
        return None
    changes = tuple(
        contract.PromptChange(
            n_cases=change["n_cases"],
            case=change["case"],
            messages=tuple(map(write_change, change["messages"])),
        )
        for change in judged["changes"]
    )
    return contract.PromptsCompared(**{**judged, "changes": changes}, text=write_prompts(judged))


def _histogram(stored: dict[str, Any] | None) -> contract.PositionHistogram | None:
    return None if stored is None else contract.PositionHistogram.from_stored(stored)
