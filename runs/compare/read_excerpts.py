"""What both answers of a pair say where they part, a line each, and which pair of a case to show them of."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from django.db.models import Count, FloatField, Max, Min
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from evalboard.contract.comparison import ComparedCase
from evalboard.contract.excerpt import AnswerExcerpt, PairExcerpt, TellingPair
from evalboard.core.compare import Excerpt, cut_text, cut_tokens, find_text_divergence
from evalboard.core.trace import Trace, unpack_reasons
from runs.compare.read_divergences import rows_by_id
from runs.models import Comparison, Divergence
from runs.pairs import stored_words
from runs.store import TracePlace, bulk, stored_traces

PARTED_ALIKE = ("case_index", "consequence", "cause", "flip_position", "token_baseline", "token_candidate")
# A parameter a column for all answers; a text is read only where there are no tokens to lay beside each other.
ANSWERS = """
SELECT wanted.place, response.trace_block_id, response.trace_slot, process.vocabulary_id,
       CASE WHEN %s OR process.vocabulary_id IS NULL OR response.trace_block_id IS NULL THEN response.text END
  FROM unnest(%s::bigint[], %s::bigint[], %s::bigint[]) WITH ORDINALITY AS wanted (run, repeat, index, place)
  JOIN runs_repeat AS repeat ON repeat.run_id = wanted.run AND repeat.index = wanted.repeat
  JOIN runs_response AS response ON response.repeat_id = repeat.id AND response.case_index = wanted.index
  LEFT JOIN runs_engineprocess AS process ON process.id = response.engine_process_id
 WHERE response.error_code = ''
"""
REASONS = """
SELECT repeat.index, score.reasons
  FROM runs_repeat AS repeat
  JOIN runs_run AS run ON run.id = repeat.run_id
  JOIN runs_suiteversion AS version ON version.id = run.suite_version_id
  JOIN runs_repeatscore AS score ON score.repeat_id = repeat.id AND score.scorer_id = version.scorer_id
 WHERE repeat.run_id = %s AND repeat.index = ANY(%s::bigint[])
"""


class ChosenPair(NamedTuple):
    """The key of a pair's row; how many pairs of its case part alike, of how many that differ.

    story: cases with the same one, a cause and two tokens, are of one cluster. movement: how far the logits at the flip
    moved, in nats; 0 where that is not known.
    """

    row: int
    n_alike: int
    n_pairs: int
    story: tuple[str, int | None, int | None]
    movement: float


class _Answer(NamedTuple):
    """place, vocabulary_id: None where nobody stored them; text: None where it was not read for the tokens' sake."""

    place: TracePlace | None
    vocabulary_id: int | None
    text: str | None


_Pair = tuple[_Answer, _Answer]


def telling_pairs(comparison_id: int, case_indexes: Sequence[int]) -> dict[int, TellingPair]:
    """Return by case index the pair that stands for a case: of its gravest ones, one that parts as most of them do.

    A case whose pairs are all the same is not there. Raises NotFound.
    """
    chosen = choose_pairs(comparison_id, case_indexes)
    pairs = rows_by_id(comparison_id, [each.row for each in chosen.values()])
    return {
        case: TellingPair(pair=pairs[each.row], n_alike=each.n_alike, n_pairs=each.n_pairs)
        for case, each in chosen.items()
    }


def choose_pairs(comparison_id: int, case_indexes: Sequence[int]) -> dict[int, ChosenPair]:
    """Return the same by the keys of their rows, in one statement that reads none of them."""
    rows = Divergence.objects.filter(comparison=comparison_id, case_index__in=list(case_indexes)).order_by()
    groups: dict[int, list[dict[str, Any]]] = {}
    moved = Max(Cast(KeyTextTransform("movement", "evidence"), FloatField()))
    for group in rows.values(*PARTED_ALIKE).annotate(n=Count("pk"), first=Min("pk"), moved=moved):
        groups.setdefault(group["case_index"], []).append(group)
    chosen = {}
    for case, alike in groups.items():
        one = min(alike, key=lambda group: (group["consequence"], -group["n"], group["first"]))
        story = (one["cause"], one["token_baseline"], one["token_candidate"])
        chosen[case] = ChosenPair(
            one["first"], one["n"], sum(group["n"] for group in alike), story, one["moved"] or 0.0
        )
    return chosen


def pair_excerpts(comparison_id: int, pairs: Sequence[ComparedCase]) -> tuple[PairExcerpt | None, ...]:
    """Return both answers around where they part, in the order of `pairs`; None where one of them never came.

    As many statements for a list as for one pair. Raises Comparison.DoesNotExist.
    """
    runs = Comparison.objects.values_list("baseline_id", "candidate_id").get(pk=comparison_id)
    return excerpts_between(runs, pairs)


def excerpts_between(runs: tuple[int, int], pairs: Sequence[ComparedCase]) -> tuple[PairExcerpt | None, ...]:
    """Return the same where the runs of the comparison are known."""
    both = _read_pairs(runs, pairs)
    cuts = _cut_by_tokens(both)
    untold = {at: pair for at, pair in both.items() if at not in cuts}
    unread = [at for at, pair in untold.items() if None in (pair[0].text, pair[1].text)]
    for at, (ours, theirs) in (untold | _read_pairs(runs, pairs, only=unread)).items():
        place = find_text_divergence(ours.text or "", theirs.text or "").text_position
        cuts[at] = cut_text(ours.text or "", place), cut_text(theirs.text or "", place)
    reasons = _read_reasons(runs[1], {pair.repeat_candidate for pair in pairs})
    return tuple(
        PairExcerpt(
            baseline=_excerpt(cuts[at][0]),
            candidate=_excerpt(cuts[at][1]),
            reason=(reasons.get(pair.repeat_candidate) or {}).get(pair.case_index) or "",
        )
        if at in cuts
        else None
        for at, pair in enumerate(pairs)
    )


def _excerpt(cut: Excerpt) -> AnswerExcerpt:
    return AnswerExcerpt(before=cut.before, is_cut=cut.is_cut, token=cut.token, after=cut.after)


def _read_pairs(
    runs: tuple[int, int], pairs: Sequence[ComparedCase], *, only: Sequence[int] | None = None
) -> dict[int, _Pair]:
    """Return by its place in `pairs` each pair whose answers both came; `only`: of these places, with their texts."""
    places = range(len(pairs)) if only is None else only
    if not places:
        return {}
    wanted = [(runs[0], pairs[at].repeat_baseline, pairs[at].case_index) for at in places]
    wanted += [(runs[1], pairs[at].repeat_candidate, pairs[at].case_index) for at in places]
    columns = [list(column) for column in zip(*wanted, strict=True)]
    answers = {
        place - 1: _Answer(None if block is None else (block, slot), vocabulary, text)
        for place, block, slot, vocabulary, text in bulk.stream_binary(
            ANSWERS, [only is not None, *columns], at_once=100
        )
    }
    n = len(places)
    return {
        at: (answers[place], answers[place + n])
        for place, at in enumerate(places)
        if place in answers and place + n in answers
    }


def _cut_by_tokens(both: dict[int, _Pair]) -> dict[int, tuple[Excerpt, Excerpt]]:
    """Cut the pairs whose tokens are of one vocabulary."""
    traced = {
        at: (ours.place, theirs.place, ours.vocabulary_id)
        for at, (ours, theirs) in both.items()
        if ours.place and theirs.place and ours.vocabulary_id and ours.vocabulary_id == theirs.vocabulary_id
    }
    traces = stored_traces.read([place for ours, theirs, _ in traced.values() for place in (ours, theirs)])
    cuts = {}
    for n, (at, (_, _, vocabulary_id)) in enumerate(traced.items()):
        ours, theirs = traces[2 * n : 2 * n + 2]
        place = _parting(ours, theirs)
        if place is not None:
            words = stored_words(vocabulary_id)
            cuts[at] = cut_tokens(ours, words, place), cut_tokens(theirs, words, place)
    return cuts


def _parting(ours: Trace, theirs: Trace) -> int | None:
    """Return the first position whose tokens differ, or at which one answer alone ended; None of the same tokens."""
    n = min(len(ours), len(theirs))
    apart = np.flatnonzero(ours.token_ids[:n] != theirs.token_ids[:n])
    if len(apart):
        return int(apart[0])
    return None if len(ours) == len(theirs) else n


def _read_reasons(run_id: int, repeats: set[int]) -> dict[int, dict[int, str | None]]:
    """Return by repeat the reasons by case index, under the run's own scorer."""
    rows = bulk.stream_binary(REASONS, [run_id, sorted(repeats)])
    return {repeat: dict(enumerate(unpack_reasons(packed))) for repeat, packed in rows}
