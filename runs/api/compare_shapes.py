"""Comparisons as JSON; docs/api.md has the fields. Margins, gaps and logprobs are in nats, scores in points."""

from typing import Any
from urllib.parse import urlencode

from rest_framework.request import Request

from evalboard.core.larger_shifts import LargerShifts
from runs.api import compare_answers
from runs.api.shapes import bucket_share, instant, page_url, pair
from runs.selectors import ComparisonReport, DivergenceRow, OutcomeCase, TokenCell
from runs.selectors.comparison import ComparedCounts, NoiseLine, OutcomeCounts, PositionHistogram, SideReport
from runs.selectors.response import finite
from runs.selectors.trace_pair import PairReport, PairSide, Step
from runs.services.case_outcomes import CaseOutcome


def comparison(report: ComparisonReport, request: Request) -> compare_answers.Comparison:
    repeats = None if report.repeats is None else ",".join(map(str, report.repeats))
    url = page_url(request, "compare", report.baseline.run_id, report.candidate.run_id)
    return {
        "baseline": str(report.baseline.run_id),
        "candidate": str(report.candidate.run_id),
        "repeat": repeats,
        "progress": {
            "status": report.progress.status,
            "n_done": report.progress.n_done,
            "n_total": report.progress.n_total,
            "error": report.progress.error or None,
        },
        "comparable": report.comparable,
        "moved": [
            {"field": moved.field, "baseline": moved.baseline, "candidate": moved.candidate} for moved in report.moved
        ],
        "blocks": [{"code": block.code, "text": block.text} for block in report.blocks],
        "score": {
            "baseline": report.points_baseline,
            "candidate": report.points_candidate,
            "difference": report.difference,
        },
        "counts": _counts(report.counts),
        "outcomes": _outcomes(report.outcomes),
        "ledger": [
            {
                "cause": line.cause,
                "n_cases": line.n_cases,
                "points": line.points,
                "gained": line.gained,
                "lost": line.lost,
            }
            for line in report.ledger
        ],
        "larger_shifts": _larger_shifts(report.larger_shifts),
        "noise": _noise(report.noise),
        "onset_histogram": _histogram(report.onset_histogram),
        "flip_histogram": _histogram(report.flip_histogram),
        "clusters": [
            {
                "key": cluster.key,
                "cause": cluster.cause,
                "baseline_token": cluster.baseline_token,
                "candidate_token": cluster.candidate_token,
                "n_cases": cluster.n_cases,
                "n_of_cause": cluster.n_of_cause,
                "cases": list(cluster.case_ids),
            }
            for cluster in report.clusters
        ],
        "n_clusters": report.n_clusters,
        "sides": {"baseline": _side(report.baseline), "candidate": _side(report.candidate)},
        "finished_at": instant(report.finished_at),
        "url": url if repeats is None else f"{url}?{urlencode({'repeat': repeats})}",
    }


def case_row(row: DivergenceRow, report: ComparisonReport, request: Request) -> compare_answers.ComparedCase:
    """One pair that differs. Scores are points, as everywhere."""
    runs = report.baseline.run_id, report.candidate.run_id
    return {
        "case": row.case_id,
        "repeat_baseline": row.repeat_baseline,
        "repeat_candidate": row.repeat_candidate,
        "cause": row.cause,
        "numeric": row.numeric or None,
        "text": row.words,
        "evidence": row.evidence,
        "drift_onset": row.drift_onset,
        "flip_position": row.flip_position,
        "margin_baseline": row.margin_baseline,
        "margin_candidate": row.margin_candidate,
        "gap_at_onset": row.gap_at_onset,
        "score_baseline": points(row.score_baseline),
        "score_candidate": points(row.score_candidate),
        "backend_baseline": row.backend_baseline or None,
        "backend_candidate": row.backend_candidate or None,
        "url": _pair_url(request, *runs, row.case_id, row.repeat, row.at),
    }


def case_outcome(
    found: CaseOutcome, of: OutcomeCase, report: ComparisonReport, request: Request
) -> compare_answers.CaseOutcome:
    """One case, with where its gravest pair is shown to people."""
    pair = of.pair
    runs = report.baseline.run_id, report.candidate.run_id
    repeat = ",".join(map(str, report.repeats or (1, 1))) if pair is None else pair.repeat
    return {
        "case": of.case_id,
        "scores_baseline": [points(score) for score in found.baseline],
        "scores_candidate": [points(score) for score in found.candidate],
        "cause": None if pair is None else pair.cause,
        "url": _pair_url(request, *runs, of.case_id, repeat, None if pair is None else pair.at),
    }


def trace_pair(report: PairReport, request: Request) -> compare_answers.TracePair:
    repeats = f"{report.baseline.repeat},{report.candidate.repeat}"
    runs = report.baseline.run_id, report.candidate.run_id
    parted = report.divergence
    return {
        "case": report.case_id,
        "baseline": _pair_side(report.baseline),
        "candidate": _pair_side(report.candidate),
        "cause": report.cause.code,
        "numeric": report.cause.numeric,
        "text": report.words,
        "evidence": {name: value for name, value in report.cause.evidence.items() if name != "buckets"},
        "drift_onset": report.onset,
        "flip_position": parted.flip if parted else None,
        "margin_baseline": parted.margin_baseline if parted else None,
        "margin_candidate": parted.margin_candidate if parted else None,
        "gap_at_onset": parted.gap_at_onset if parted else None,
        "n_positions": report.n_steps,
        "at": report.selected.key if report.selected else None,
        "positions": [_step(step, report.selected) for step in report.steps],
        "provenance": [
            {"field": fact.name, "baseline": fact.baseline, "candidate": fact.candidate} for fact in report.facts
        ],
        "moved": [
            {"field": moved.field, "baseline": moved.baseline, "candidate": moved.candidate} for moved in report.moved
        ],
        "url": _pair_url(request, *runs, report.case_id, repeats, report.selected.key if report.selected else None),
    }


def points(score: float | None) -> float | None:
    return None if score is None else 100 * score


def _counts(counts: ComparedCounts) -> compare_answers.ComparedCounts:
    return {
        "n_pairs": counts.n_pairs,
        "identical": counts.identical,
        "drift_only": counts.drift_only,
        "flipped": counts.flipped,
        "text_only": counts.text_only,
        "missing": counts.missing,
        "unread": counts.unread,
        "score_changed": counts.score_changed,
        "n_cases": counts.n_cases,
        "n_cases_missing": counts.n_cases_missing,
    }


def _outcomes(found: OutcomeCounts | None) -> compare_answers.OutcomeCounts | None:
    return None if found is None else {"broken": found.broken, "fixed": found.fixed, "unstable": found.unstable}


def _larger_shifts(found: LargerShifts | None) -> compare_answers.LargerShifts | None:
    if found is None:
        return None
    return {
        "n_cases": found.n_cases,
        "n_read": found.n_read,
        "n_established": found.n_established,
        "text": found.sentence or None,
    }


def _noise(found: NoiseLine | None) -> compare_answers.NumericNoise | None:
    if found is None:
        return None
    return {
        "sd": found.sd,
        "near": found.near,
        "ulp": found.ulp or None,
        "is_assumed": found.is_assumed,
        "dtype": found.dtype or None,
        "text": found.sentence,
    }


def _histogram(found: PositionHistogram | None) -> compare_answers.PositionHistogram | None:
    if found is None:
        return None
    return {
        "width": found.width,
        "starts": list(found.starts),
        "series": [{"cause": line.cause, "counts": list(line.counts)} for line in found.series],
        "n": found.n,
        "n_at_start": found.n_at_start,
    }


def _side(side: SideReport) -> compare_answers.ComparedSide:
    return {
        "run": str(side.run_id),
        "suite": {"slug": side.suite, "version": side.suite_version},
        "endpoint": side.endpoint,
        "profile": side.profile_slug,
        "profile_version": side.profile_version,
        "model": side.model_name,
        "repeats": [{"index": index, "score": score} for index, score in zip(side.repeats, side.points, strict=True)],
        "range": pair(side.range),
        "scorer": {"digest": side.scorer_digest},
        "buckets": [{"backend": bucket.letter, **bucket_share(bucket)} for bucket in side.buckets],
    }


def _pair_side(side: PairSide) -> compare_answers.PairSide:
    return {
        "run": str(side.run_id),
        "repeat": side.repeat,
        "text": side.text,
        "finish_reason": side.finish_reason or None,
        "error": {"code": side.error_code, "detail": side.error_detail} if side.error_code else None,
        "score": points(side.score),
        "reason": side.reason or None,
        "n_tokens": side.n_tokens,
        "trace_digest": side.trace_digest or None,
        "fingerprint": side.fingerprint_digest or None,
        "batch_class": side.batch_class or None,
    }


def _step(step: Step, selected: Step | None) -> compare_answers.PairPosition:
    """The selected position comes with its alternatives."""
    shown = selected if selected is not None and selected.key == step.key else step
    return {
        "at": step.key,
        "baseline": [_token(cell) for cell in shown.baseline],
        "candidate": [_token(cell) for cell in shown.candidate],
    }


def _token(cell: TokenCell) -> compare_answers.TokenAtPosition:
    return {
        "position": cell.position,
        "token_id": cell.token_id,
        "drawn": cell.token,
        "logprob": finite(cell.logprob),
        "margin": cell.margin,
        "alternatives": [
            {"token_id": other.token_id, "drawn": other.token, "logprob": finite(other.logprob)}
            for other in cell.alternatives
        ],
    }


def _pair_url(request: Request, baseline: int, candidate: int, case: str, repeat: str, at: int | None) -> str:
    query: dict[str, Any] = {"repeat": repeat} if at is None else {"repeat": repeat, "at": at}
    return f"{page_url(request, 'trace_diff', baseline, candidate, case)}?{urlencode(query)}"
