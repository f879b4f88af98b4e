"""Two answers around the place where they part, cut to a line each: for lists of cases that changed."""

from evalboard.contract.base import Contract, Count
from evalboard.contract.compare import CaseOutcome


class AnswerExcerpt(Contract):
    """A window of an answer.

    before, after: its text on either side, with ⏎ for a line's end; `before` is the same for both answers. token: the
    text where they diverge, as readable tokens; "" if they do not. is_hit: `token` is the searched text, and `before`
    is what precedes it.
    """

    before: str
    is_cut: bool  # whether more text precedes it
    token: str
    after: str
    is_hit: bool


class PairExcerpt(Contract):
    """Both answers of a pair. reason: by the candidate's scorer; "" if it gave none."""

    baseline: AnswerExcerpt
    candidate: AnswerExcerpt
    reason: str


class ShownCase(Contract):
    """A case that changed; `outcome.pair` is its representative pair, null if no pair differs.

    n_alike: pairs of the case that diverge at the same tokens, of n_pairs that differ. excerpt: null if an answer is
    missing.
    """

    outcome: CaseOutcome
    n_alike: Count
    n_pairs: Count
    excerpt: PairExcerpt | None
