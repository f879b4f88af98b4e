"""Forced scorings as they are shown, and what a worker needs to know of one that it has claimed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, F, FloatField, QuerySet
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Abs, Cast
from django.urls import reverse

from evalboard.contract import forced as contract
from evalboard.contract.parts import FingerprintNamed
from evalboard.core.errors import NotFound
from evalboard.core.profile import list_reshaping
from evalboard.core.trace import TokenTrace, Vocabulary, unpack_selection
from evalboard.wording.forced import explain_forced
from runs.forced.figures import read_figures
from runs.forced.scorings import choose_answers
from runs.models import BucketRecord, Case, ForcedAnswerRecord, ForcedScoringRecord, RunRecord
from runs.pairs import draws_of
from runs.pairs.pair_facts import setting_facts
from runs.pairs.scored_answers import answers_of_response, read_scored, responses_at
from runs.store import imported, newest_page, require_first, require_row
from runs.work import Serving, serving_of

RELATED = ("run__suite_version", "run__profile", "run__source", "endpoint", "profile", "created_by")


@dataclass(frozen=True, slots=True)
class ForcedWork:
    """What a worker scores. bucket_id: of the answers stored so far, None before the first."""

    run_id: int
    serving: Serving
    bucket_id: int | None


def forced_work(scoring_id: int) -> ForcedWork:
    scoring = ForcedScoringRecord.objects.select_related("endpoint", "profile").get(pk=scoring_id)
    assert scoring.endpoint is not None  # noqa: S101  for the type checker: what is reported is never claimed
    assert scoring.profile is not None  # noqa: S101
    return ForcedWork(
        run_id=scoring.run_id,
        serving=serving_of(scoring.endpoint, scoring.profile, scoring.model_override, max_tokens=1),
        bucket_id=scoring.bucket_id,
    )


def forced_cost(
    run_id: int,
    *,
    cases: Sequence[str] | None = None,
    tag: str | None = None,
    repeats: Sequence[int] | None = None,
) -> contract.ForcedCost:
    """Count the cost of scoring answers of a run, chosen as in `create_forced`.

    Default: all repeats that have ended. Raises NotFound, and InvalidInput with fields.
    """
    return choose_answers(_existing(run_id), cases=cases, tag=tag, repeats=repeats).cost()


def forced_row(scoring_id: int) -> contract.ForcedScoring:
    """Return a scoring and its results so far. Raises NotFound."""
    return require_first(
        _rows(ForcedScoringRecord.objects.filter(pk=scoring_id)), f"There is no forced scoring {scoring_id}."
    )


def reported_scoring(run_id: int) -> contract.ForcedScoring | None:
    """Return the trainer's logprobs of a run as a scoring, None if its log has none."""
    rows = _rows(ForcedScoringRecord.objects.filter(run=run_id, endpoint=None).order_by("-pk")[:1])
    return rows[0] if rows else None


def forced_state(scoring_id: int) -> str:
    """Return what `forced_row` is made of, in short: equal texts, equal rows. Raises NotFound."""
    row = require_row(
        ForcedScoringRecord.objects.filter(pk=scoring_id).values_list("status", "n_done", "error", "finished_at"),
        f"There is no forced scoring {scoring_id}.",
    )
    return "|".join(map(str, (scoring_id, *row)))


def forced_rows(
    run_id: int, *, after: int | None = None, before: int | None = None, limit: int
) -> tuple[contract.ForcedScoring, ...]:
    """Return up to `limit` scorings of a run, newest first: older than `after`, or just above `before`."""
    run = _existing(run_id)
    return newest_page(ForcedScoringRecord.objects.filter(run=run), _rows, after=after, before=before, limit=limit)


def forced_answers(
    scoring_id: int, *, after: int | None = None, before: int | None = None, limit: int
) -> tuple[contract.ForcedAnswer, ...]:
    """Return up to `limit` scored answers by case: after the id `after`, or before `before`.

    Raises NotFound.
    """
    scoring = require_row(
        ForcedScoringRecord.objects.select_related("run").filter(pk=scoring_id),
        f"There is no forced scoring {scoring_id}.",
    )
    rows = ForcedAnswerRecord.objects.filter(scoring=scoring)
    if before is not None:
        return _answers(scoring, rows.filter(pk__lt=before).order_by("-pk")[:limit])[::-1]
    later = rows if after is None else rows.filter(pk__gt=after)
    return _answers(scoring, later.order_by("pk")[:limit])


def worst_answers(scoring_id: int, *, limit: int) -> tuple[contract.ForcedAnswer, ...]:
    """Return the answers with the most different tokens, by log ratio or else by top-choice gap."""
    scoring = ForcedScoringRecord.objects.select_related("run").get(pk=scoring_id)
    rows = ForcedAnswerRecord.objects.filter(scoring=scoring, error_code="").annotate(
        ratio=Abs(Cast(KeyTextTransform("worst_log_ratio", "figures"), FloatField())),
        deficit=Cast(KeyTextTransform("deficit_mean", "figures"), FloatField()),
    )
    order = F("ratio").desc(nulls_last=True), F("deficit").desc(nulls_last=True), "pk"
    return _answers(scoring, rows.order_by(*order)[:limit])


def failed_answers(scoring_id: int, *, limit: int) -> tuple[contract.ForcedAnswer, ...]:
    """Return the first answers that could not be scored."""
    scoring = ForcedScoringRecord.objects.select_related("run").get(pk=scoring_id)
    return _answers(
        scoring, ForcedAnswerRecord.objects.filter(scoring=scoring).exclude(error_code="").order_by("pk")[:limit]
    )


def _answers(scoring: ForcedScoringRecord, rows: "QuerySet[ForcedAnswerRecord]") -> tuple[contract.ForcedAnswer, ...]:
    answers = list(rows.select_related("repeat"))
    cases = Case.objects.filter(
        suite_version=scoring.run.suite_version_id, index__in={answer.case_index for answer in answers}
    )
    names = dict(cases.values_list("index", "case_id"))
    return tuple(_answer(answer, names[answer.case_index]) for answer in answers)


def stored_forced_trace(scoring_id: int, *, repeat: int, case_id: str) -> tuple[TokenTrace, Vocabulary | None]:
    """Return the trace of a response's answer on the other stack, and the words of that. Raises NotFound."""
    scoring = require_row(
        ForcedScoringRecord.objects.filter(pk=scoring_id), f"There is no forced scoring {scoring_id}."
    )
    response = require_row(
        responses_at(scoring.run_id, repeat=repeat, case_id=case_id),
        f"Run {scoring.run_id} has no response to case {case_id} in repeat {repeat}.",
    )
    answer = answers_of_response(scoring.run_id, response).filter(scoring=scoring).first()
    if answer is None or answer.trace_block is None:
        why = "has not been scored" if answer is None else f"could not be scored ({answer.error_code})"
        raise NotFound(f"This response {why}, so it has no forced trace.")
    return read_scored(answer)


def _existing(run_id: int) -> RunRecord:
    return require_row(RunRecord.objects.filter(pk=run_id), f"There is no run {run_id}.")


def _rows(scorings: "QuerySet[ForcedScoringRecord]") -> tuple[contract.ForcedScoring, ...]:
    rows = list(scorings.select_related(*RELATED))
    ids = {part["bucket"] for row in rows for part in row.figures_by_bucket}
    buckets = BucketRecord.objects.select_related("fingerprint").in_bulk(ids) if ids else {}
    return tuple(_row(scoring, buckets) for scoring in rows)


def _row(scoring: ForcedScoringRecord, buckets: Mapping[int, BucketRecord]) -> contract.ForcedScoring:
    alike = ForcedAnswerRecord.objects.filter(scoring=scoring).values_list("error_code", "tokens", "is_rendered")
    errors: Counter[str] = Counter()
    tokens: Counter[str] = Counter()
    n_rendered = 0
    for code, kind, is_rendered, n in alike.annotate(n=Count("pk")).order_by("error_code", "tokens"):
        if code:
            errors[code] += n
        else:
            tokens[kind] += n
            n_rendered += n if is_rendered else 0
    n_cases = scoring.run.suite_version.n_cases
    row = contract.ForcedScoring.from_record(
        scoring,
        id=str(scoring.pk),
        run=str(scoring.run_id),
        endpoint=None if scoring.endpoint is None else scoring.endpoint.slug,
        profile=None if scoring.profile is None else str(scoring.profile),
        model=scoring.model_override,
        repeats=tuple(scoring.repeats),
        n_cases=None if scoring.cases is None else int(unpack_selection(bytes(scoring.cases), n_cases).sum()),
        errors=dict(errors),
        tokens=dict(tokens),
        n_rendered=n_rendered,
        bucket=None if scoring.bucket_id is None else str(scoring.bucket_id),
        is_sampled=_is_rollouts(scoring.run) or draws_of(scoring.run).is_sampled,
        reshaped_by=list_reshaping(setting_facts(scoring.run)),
        figures=None if scoring.figures is None else read_figures(scoring.figures),
        by_bucket=tuple(_bucket_figures(part, buckets[part["bucket"]]) for part in scoring.figures_by_bucket),
        error=scoring.error or None,
        created_by=scoring.created_by.get_username() if scoring.created_by else None,
        url=reverse("forced", args=[scoring.pk]),
        reading=(),
    )
    return row.model_copy(update={"reading": explain_forced(row)}) if row.status == "finished" else row


def _is_rollouts(run: RunRecord) -> bool:
    """Tell whether a run's answers are rollouts: always sampled, at a temperature not in the log."""
    return run.source is not None and run.source.format == imported.ROLLOUTS


def _bucket_figures(part: Mapping[str, Any], bucket: BucketRecord) -> contract.ForcedOfBucket:
    fingerprint = bucket.fingerprint
    return contract.ForcedOfBucket(
        bucket=str(bucket.pk),
        fingerprint=FingerprintNamed(id=str(fingerprint.pk), digest=fingerprint.digest, label=fingerprint.label),
        figures=read_figures(part["figures"]),
    )


def _answer(answer: ForcedAnswerRecord, case_id: str) -> contract.ForcedAnswer:
    error = contract.ForcedError(code=answer.error_code, detail=answer.error_detail) if answer.error_code else None
    return contract.ForcedAnswer(
        id=str(answer.pk),
        case=case_id,
        repeat=answer.repeat.index,
        n_tokens=answer.n_tokens,
        tokens=answer.tokens or None,
        is_rendered=answer.is_rendered,
        engine_process=None if answer.engine_process_id is None else str(answer.engine_process_id),
        figures=None if answer.figures is None else contract.AnswerFigures.from_stored(answer.figures),
        error=error,
    )
