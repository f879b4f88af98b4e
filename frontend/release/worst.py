"""The worst cases of a verdict, each a line of its prompt and both answers where they part."""

from dataclasses import dataclass

from evalboard.contract.compare import CaseOutcome, Comparison
from evalboard.contract.excerpt import AnswerExcerpt, PairExcerpt, ShownCase
from evalboard.contract.release import Gate
from evalboard.wording.numbers import counted, in_words
from evalboard.wording.outcomes import explain_passes
from frontend.compare.pair_address import pair_url
from runs.compare import worst_cases

N_SHOWN = 3

Scores = tuple[float | None, ...]
Answers = tuple[tuple[str, Scores, AnswerExcerpt | None, str], ...]


@dataclass(frozen=True, slots=True)
class WorstLine:
    """A case. url: where its answers diverge. cause: by the numbers, "" if no pair differs.

    here: "4 of 5 here" where its repeats part differently.
    """

    case: CaseOutcome
    url: str
    cause: str
    excerpt: PairExcerpt | None
    here: str

    @property
    def answers(self) -> Answers:
        """Return (side, scores, answer, the scorer's reason) of the baseline, then of the candidate."""
        ours, theirs = (self.excerpt.baseline, self.excerpt.candidate) if self.excerpt else (None, None)
        reason = self.excerpt.reason if self.excerpt else ""
        return (
            ("baseline", self.case.scores_baseline, ours, ""),
            ("candidate", self.case.scores_candidate, theirs, reason),
        )


@dataclass(frozen=True, slots=True)
class Worst:
    """The worst cases of a gate. passes: which repeats their passes leave out, else ""."""

    title: str
    lines: tuple[WorstLine, ...]
    suite: str
    passes: str


def worst(gate: Gate, comparison: Comparison | None) -> Worst | None:
    """Return the broken cases, or else the fixed ones; None without either, or while comparing."""
    if comparison is None or not comparison.progress.is_finished or gate.verdict == "not_comparable":
        return None
    n, outcome = gate.changed.n_broken, "broken"
    if not n:
        n, outcome = gate.changed.n_fixed, "fixed"
    if not n:
        return None
    look = _look(gate)
    runs, terms = comparison.run_ids, comparison.terms
    shown = worst_cases(comparison.id, runs, outcome=outcome, look=look, n=N_SHOWN, terms=terms)
    filters = {"outcome": outcome} | ({} if gate.look is None else {"look": str(gate.look)})
    lines = tuple(_line(gate, each, filters) for each in shown)
    passes = explain_passes(comparison.sides, [each.outcome for each in shown])
    return Worst(_title(gate, outcome, len(lines), n), lines, gate.suite, passes)


def _look(gate: Gate) -> int | None:
    """Return the look, None where it takes all the repeats there are."""
    n_most = max(gate.baseline.n_repeats, gate.candidate.n_repeats)
    return None if gate.look is None or gate.look >= n_most else gate.look


def _title(gate: Gate, outcome: str, n_shown: int, n: int) -> str:
    if outcome == "fixed":
        return f"What changed in {gate.suite}"
    if n_shown < n:
        return f"The {in_words(n_shown)} worst cases"
    return f"The {counted(n, 'case')} that broke" if n > 1 else "The case that broke"


def _line(gate: Gate, shown: ShownCase, filters: dict[str, str]) -> WorstLine:
    runs, case, pair = (gate.baseline.run_id, gate.candidate.run_id), shown.outcome.case, shown.outcome.pair
    if pair is None:
        return WorstLine(
            shown.outcome, pair_url(*runs, case, repeats=(1, 1), filters=filters, terms=gate.terms), "", None, ""
        )
    url = pair_url(*runs, case, repeats=pair.repeats, at=pair.at, filters=filters, terms=gate.terms)
    here = "" if shown.n_alike == shown.n_pairs else f"{shown.n_alike} of {shown.n_pairs} here"
    return WorstLine(shown.outcome, url, pair.numeric or pair.cause, shown.excerpt, here)
