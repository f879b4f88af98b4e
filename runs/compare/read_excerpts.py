"""Read excerpts of both answers of a pair, where they diverge or match the search."""

from collections.abc import Collection, Sequence
from functools import partial
from typing import NamedTuple

from django.db.models import Subquery
from django.db.models.functions import Coalesce, Right

from evalboard.contract.compare import ComparedCase
from evalboard.contract.excerpt import AnswerExcerpt, PairExcerpt
from evalboard.contract.treatments import Terms
from evalboard.core.compare import cut_hit, cut_pair, cut_text, cut_texts, find_text_divergence
from runs.compare.inputs import MODEL_TERMS, find_others
from runs.models import ComparisonRecord, ResponseRecord
from runs.pairs import stored_words
from runs.run import words_of_query
from runs.store import TracePlace, bulk, stored_traces

END_READ = 200  # characters; an excerpt shows fewer
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


class _Answer(NamedTuple):
    """An answer. place, vocabulary_id: None if not stored; text: None if not read."""

    place: TracePlace | None
    vocabulary_id: int | None
    text: str | None


_Pair = tuple[_Answer, _Answer]
_Cut = tuple[AnswerExcerpt, AnswerExcerpt]


def pair_excerpts(
    runs: tuple[int, int],
    pairs: Sequence[ComparedCase],
    reasons: Sequence[str],
    *,
    query: str = "",
    terms: Terms = MODEL_TERMS,
) -> tuple[PairExcerpt | None, ...]:
    """Return both answers around their divergence, in the order of `pairs`; None if one is missing.

    runs, terms: those of the comparison. reasons: the scorer's of each pair, as `ChosenPair` has them. query: what is
    looked for in them; an answer that holds it is cut around that. As many statements for a list as for one pair.
    """
    read = partial(_read_pairs, runs, pairs, terms)
    both = read()
    cuts = _cut_by_tokens(both)
    untold = {at: pair for at, pair in both.items() if at not in cuts}
    unread = [at for at, pair in untold.items() if None in (pair[0].text, pair[1].text)]
    for at, (ours, theirs) in (untold | read(only=unread)).items():
        cuts[at] = cut_texts(ours.text or "", theirs.text or "")
    if query:
        cuts |= _cut_by_hits(read(only=sorted(cuts)), cuts, words_of_query(query))
    return tuple(
        PairExcerpt(baseline=cuts[at][0], candidate=cuts[at][1], reason=reason) if at in cuts else None
        for at, reason in enumerate(reasons)
    )


def equal_excerpts(comparison_id: int, run_id: int, case_indexes: Collection[int]) -> dict[int, PairExcerpt]:
    """Return the end of the answer that both sides gave to each case, where no pair differs.

    run_id: of the baseline, whose first compared repeat is read.
    """
    if not case_indexes:
        return {}
    repeat = ComparisonRecord.objects.filter(pk=comparison_id).values("baseline_repeat")
    answers = ResponseRecord.objects.filter(
        repeat__run=run_id, repeat__index=Coalesce(Subquery(repeat), 1), case_index__in=case_indexes, error_code=""
    )
    ends = answers.annotate(end=Right("text", END_READ)).values_list("case_index", "end")
    cuts = ((index, cut_text(end, None)) for index, end in ends)
    return {index: PairExcerpt(baseline=cut, candidate=cut, reason="") for index, cut in cuts}


def _read_pairs(
    runs: tuple[int, int], pairs: Sequence[ComparedCase], terms: Terms, *, only: Sequence[int] | None = None
) -> dict[int, _Pair]:
    """Return complete pairs by place in `pairs`. only: these places, with texts."""
    places = range(len(pairs)) if only is None else only
    if not places:
        return {}
    wanted = [(runs[0], pairs[at].repeat_baseline, pairs[at].case_index) for at in places]
    others = find_others(runs, {pairs[at].case_index for at in places}, terms)
    wanted += [(runs[1], pairs[at].repeat_candidate, others[pairs[at].case_index]) for at in places]
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


def _cut_by_hits(both: dict[int, _Pair], cuts: dict[int, _Cut], words: str) -> dict[int, _Cut]:
    """Return the excerpts, cut around the match of `words` nearest to the divergence if there is one."""
    moved = {}
    for at, (ours, theirs) in both.items():
        texts = ours.text or "", theirs.text or ""
        place = find_text_divergence(*texts).text_position
        hits = [cut_hit(text, words, place) for text in texts]
        moved[at] = hits[0] or cuts[at][0], hits[1] or cuts[at][1]
    return moved


def _cut_by_tokens(both: dict[int, _Pair]) -> dict[int, _Cut]:
    """Cut the pairs whose tokens are of one vocabulary."""
    traced = {
        at: (ours.place, theirs.place, ours.vocabulary_id)
        for at, (ours, theirs) in both.items()
        if ours.place and theirs.place and ours.vocabulary_id and ours.vocabulary_id == theirs.vocabulary_id
    }
    traces = stored_traces.read([place for ours, theirs, _ in traced.values() for place in (ours, theirs)])
    cuts: dict[int, _Cut] = {}
    for n, (at, (_, _, vocabulary_id)) in enumerate(traced.items()):
        ours, theirs = traces[2 * n : 2 * n + 2]
        if cut := cut_pair(ours, theirs, stored_words(vocabulary_id)):
            cuts[at] = cut
    return cuts
