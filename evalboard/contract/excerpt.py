"""Two answers around the place where they part, cut to a line each: for lists of cases that changed."""

from evalboard.contract.base import Contract, Count
from evalboard.contract.compare import CaseOutcome


class AnswerExcerpt(Contract):
    """A window of an answer. before, after: its text on either side, with ⏎ for a line's end; `before` is the same of
    both answers. token: what stands where they part, drawn as tokens are; "" where they do not part. is_hit: it is what
    was looked for in the answer, as text, and `before` is what stands before it.
    """

    before: str
    is_cut: bool  # whether more stands before
    token: str
    after: str
    is_hit: bool


class PairExcerpt(Contract):
    """Both answers of a pair. reason: what the candidate's scorer said of it, "" where it said nothing."""

    baseline: AnswerExcerpt
    candidate: AnswerExcerpt
    reason: str


class ShownCase(Contract):
    """A case that changed; `outcome.pair` is the one that stands for it, null where no pair differs.

    n_alike: pairs of the case that part at the same tokens, of n_pairs that differ. excerpt: null where an answer never
    came.
    """

    outcome: CaseOutcome
    n_alike: Count
    n_pairs: Count
    excerpt: PairExcerpt | None
