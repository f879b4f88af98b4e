"""Read a stored comparison for its page and `GET /compare/`, without its list of cases."""

from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Any
from urllib.parse import urlencode

from django.db.models import Avg, Count
from django.urls import reverse

from evalboard.compared.report import (
    NO_SIDES,
    Named,
    NamedSide,
    draw_token,
    read_computation,
    shown_cases,
    write_comparison,
)
from evalboard.contract import compare as contract
from evalboard.contract.run import SuiteNamed
from evalboard.contract.treatments import PROMPT_TREATMENT, Terms
from evalboard.core.errors import NotFound
from evalboard.path_converters import reverse_case
from runs.compare import inputs
from runs.compare.inputs import MODEL_TERMS
from runs.models import BucketRecord, Case, ComparisonRecord, RepeatRecord, RepeatScore, ResponseRecord, RunRecord
from runs.pairs import stored_words
from runs.pairs.pair_facts import read_names
from runs.run import read_costs
from runs.store.statements import Percentile

CASES_TIMED = 1000  # of each repeat: a page takes no longer for a very large suite


def report_of(row: ComparisonRecord, *, is_timed: bool = True) -> contract.Comparison:
    """Read what `compare` made, of the record that it has just returned.

    is_timed: with the time and tokens of both sides.
    """
    repeats = None if row.baseline_repeat is None else f"{row.baseline_repeat},{row.candidate_repeat or 0}"
    return write_comparison(
        row.summary,
        _name_parts(row, is_timed=is_timed),
        repeat=repeats,
        progress=contract.ComparisonProgress(
            status=row.status, n_done=row.n_done, n_total=row.n_pairs, error=row.error or None
        ),
        finished_at=row.finished_at,
        url=_address(row, repeats),
        id=row.pk,
    )


def read_computations(pairs: Collection[tuple[int, int]]) -> dict[tuple[int, int], contract.Computation]:
    """Return whether logprobs agree by (baseline, candidate), from the newest comparison each.

    pairs: run ids. Of two that nobody has compared, or whose comparison is at work, nothing is there.
    """
    baselines, candidates = {ours for ours, _ in pairs}, {theirs for _, theirs in pairs}
    rows = ComparisonRecord.objects.filter(baseline__in=baselines, candidate__in=candidates, baseline_repeat=None)
    rows = rows.exclude(treatment=PROMPT_TREATMENT)  # which says nothing of computations
    newest = rows.order_by("pk").values_list("baseline", "candidate", "summary__computation")
    stored = {(ours, theirs): judged for ours, theirs, judged in newest}
    return {pair: known for pair in pairs if (known := read_computation(stored.get(pair))) is not None}


def _address(row: ComparisonRecord, repeats: str | None) -> str:
    path = reverse("compare", args=[row.baseline_id, row.candidate_id])
    query = ({} if repeats is None else {"repeat": repeats}) | row.terms.query
    return f"{path}?{urlencode(query)}" if query else path


def pair_path(
    runs: tuple[int, int], case: str, repeats: tuple[int, int], at: int | None, terms: Terms = MODEL_TERMS
) -> str:
    """Return the page of one pair of responses, at a position."""
    query = terms.query | ({} if at is None else {"at": str(at)})
    place = f"{_pair_page(runs, case)}?repeat={repeats[0]}%2C{repeats[1]}"
    return f"{place}&{urlencode(query)}" if query else place


@lru_cache(maxsize=1024)  # a list asks for each case's once for every pair of repeats
def _pair_page(runs: tuple[int, int], case: str) -> str:
    return reverse_case("trace_diff", *runs, case)


def _name_parts(row: ComparisonRecord, *, is_timed: bool) -> Named:
    """Read the names behind a stored summary's numbers."""
    runs = {run.pk: run for run in (row.baseline, row.candidate)}
    sides = row.summary.get("sides", NO_SIDES)
    named = list(zip(contract.SIDES, (row.baseline, row.candidate), strict=True))
    judged_by = {run.pk: sides[side].get("scorer") or run.suite_version.scorer.digest for side, run in named}
    scored_by = {run.pk: sides[side].get("judged_again") or judged_by[run.pk] for side, run in named}
    points: dict[int, dict[int, float | None]] = {run_id: {} for run_id in runs}
    scored = RepeatScore.objects.filter(repeat__run__in=runs, repeat__cases=None, scorer__digest__in=scored_by.values())
    for run_id, digest, index, value in scored.values_list("repeat__run", "scorer__digest", "repeat__index", "points"):
        if digest == scored_by[run_id]:
            points[run_id][index] = value
    left_out: dict[int, dict[int, int | None]] = {run_id: {} for run_id in runs}
    targeted: dict[int, list[int]] = {run_id: [] for run_id in runs}
    repeats = RepeatRecord.objects.filter(run__in=runs).order_by("run", "index")
    columns = "run", "index", "columns__n_left_out", "cases", "status", "finished_at"
    for run_id, index, n_left_out, cases, status, finished_at in repeats.values_list(*columns):
        if cases is None:
            left_out[run_id][index] = n_left_out
        elif finished_at is not None and status not in RepeatRecord.WITHOUT_SCORE:
            targeted[run_id].append(int.from_bytes(bytes(cases)))

    speeds = _read_speeds(runs) if is_timed else {}
    costs = read_costs(runs.values()) if is_timed else {}

    def name_side(run: RunRecord) -> NamedSide:
        return NamedSide(
            run=str(run.pk),
            suite=SuiteNamed(slug=run.suite_version.suite.slug, version=run.suite_version.number),
            endpoint=run.endpoint.slug,
            profile=run.profile.slug,
            profile_version=run.profile.version,
            model=run.endpoint.model_name,
            scorer_digest=judged_by[run.pk],
            points=points[run.pk],
            left_out=left_out[run.pk],
            targeted=targeted[run.pk],
            speed=speeds.get(run.pk),
            cost=costs[run.pk].whole if run.pk in costs else None,
        )

    ids = {bucket for side in sides.values() for bucket, _, _ in side["buckets"]}
    buckets = BucketRecord.objects.filter(pk__in=ids).select_related("model", "fingerprint")
    return Named(
        sides=(name_side(runs[row.baseline_id]), name_side(runs[row.candidate_id])),
        buckets={bucket.pk: bucket for bucket in buckets},
        backends=name_backends(sides, runs[row.baseline_id], runs[row.candidate_id]),
        case_ids=case_ids(row.baseline_id, shown_cases(row.summary)),
        read_words=stored_words,
    )


def _read_speeds(run_ids: Collection[int]) -> dict[int, contract.SpeedAndTokens]:
    """Return by run how fast its answers came and how long they are, of the first cases."""
    answered = ResponseRecord.objects.filter(repeat__run__in=run_ids, error_code="", case_index__lt=CASES_TIMED)
    fields = {
        "n_responses": Count("id"),
        "median_seconds": Percentile("decode_seconds", share=0.5),
        "p95_seconds": Percentile("decode_seconds", share=0.95),
        "tokens": Avg("n_tokens"),
        "prompt_tokens": Avg("n_prompt_tokens"),
    }
    rows = answered.order_by().values("repeat__run").annotate(**fields).values_list("repeat__run", *fields)
    return {run: contract.SpeedAndTokens(**dict(zip(fields, values, strict=True))) for run, *values in rows}


def name_backends(sides: Mapping[str, Any], baseline: RunRecord, candidate: RunRecord) -> dict[int, str]:
    """Return what `inputs.name_backends` does, by the sides of a summary."""
    bucket_ids = [[bucket for bucket, _, _ in sides[side]["buckets"]] for side in contract.SIDES]
    return inputs.name_backends((baseline, candidate), bucket_ids, find=read_names)


def case_ids(run_id: int, indexes: Iterable[int]) -> dict[int, str]:
    """Return case index → id for these cases of a run's suite version.

    Raises NotFound where the run has been deleted since its cases were named.
    """
    wanted = set(indexes)
    cases = Case.objects.filter(suite_version__runs=run_id, index__in=wanted).order_by()
    ids = dict(cases.values_list("index", "case_id"))
    if ids.keys() != wanted:
        raise NotFound(f"There is no run {run_id} any more.")
    return ids


def drawn(token: int | None, vocabulary_id: int | None) -> str:
    """Return a token as people see it, "" for none."""
    return draw_token(token, None if token is None or vocabulary_id is None else stored_words(vocabulary_id))
