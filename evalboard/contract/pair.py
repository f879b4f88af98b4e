"""Two responses to one case side by side. Margins, gaps and logprobs are in nats, scores in points."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Digest, Id, Number, PageAddress, Points, page_only, says
from evalboard.contract.compare import SIDES, ChangedMessage, Moved, PartedPair
from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.response import ResponseContent
from evalboard.contract.trace import Position, TokenAtPosition
from evalboard.contract.treatments import Terms


class PairPosition(Contract):
    """The tokens of both sides at one position; a side that has ended has none."""

    at: Position
    baseline: tuple[TokenAtPosition, ...]
    candidate: tuple[TokenAtPosition, ...]


class PairSide(ResponseContent):
    run: Id
    score: Points | None
    n_tokens: Count | None
    fingerprint: Digest | None
    batch_class: str | None
    n_repeats: int = page_only
    model: str = page_only
    stack: FingerprintNamed | None = page_only
    scorer_digest: str = page_only
    is_vouched: bool = page_only
    can_replay: bool = page_only


class MarginPoint(Contract):
    """One position of charts and tables, which end where the sides diverge; null: unknown, "": no token.

    tokens, margins: the baseline's and the candidate's.
    """

    at: Position
    tokens: tuple[str, str]
    margins: tuple[float | None, float | None]
    gap: float | None

    @property
    def margin(self) -> float | None:
        """The smaller of both."""
        return min((margin for margin in self.margins if margin is not None), default=None)


class PromptPiece(Contract):
    """Readable tokens of `side`: "baseline", "candidate" or "both". `n_left_out` precede them."""

    side: str
    tokens: tuple[str, ...]
    n_left_out: Count


class PairPrompts(Contract):
    """Lengths in tokens. are_same: null if unknown. pieces: if both sides' ids are known and differ."""

    n_baseline: Count | None
    n_candidate: Count | None
    are_same: bool | None
    pieces: tuple[PromptPiece, ...]


class LeakSource(Contract):
    """The response whose text an answer continues with: of the same run and repeat, decoded in its batch."""

    side: Annotated[str, says(enum=SIDES, description="the side whose answer continues with it")]
    run: Id
    case: str
    repeat: Number
    stands_in: Annotated[str, says(enum=("answer", "prompt"))]
    at: Annotated[Position, says(description="of its first token there")]
    n_tokens: Number
    url: PageAddress


class Leak(Contract):
    """The evidence for the cause `leak`.

    `n_beside_*`: how many responses were decoded together with that side's, as far as known; null if not. `source`:
    null if none of them has the text, or if as much of it is found elsewhere.
    """

    source: LeakSource | None
    n_beside_baseline: Count | None
    n_beside_candidate: Count | None
    text: str


class ForcedFlip(Contract):
    """A stack's choices at the flip when it reads the other side's answer up to there."""

    stack: Annotated[str, says(enum=SIDES, description="the side whose stack it is")]
    scoring: Annotated[Id, says(description="its forced scoring")]
    first: Annotated[str, says(description="its most likely token there, made readable")]
    second: str
    margin: Annotated[float, says(description="margin between the two, in nats")]


class TracePair(PartedPair):
    """A pair of responses around position `at`; only that position's tokens have alternatives."""

    baseline: PairSide
    candidate: PairSide
    n_positions: Count
    at: Position | None
    positions: tuple[PairPosition, ...]
    provenance: tuple[Moved, ...]
    moved: tuple[Moved, ...]
    url: PageAddress
    leak: Annotated[Leak | None, says(description="if the cause is `leak`")]
    at_flip: Annotated[tuple[ForcedFlip, ...], says(description="if answers were scored on the other side's stack")]
    at_flip_text: Annotated[str, says(description='the same in a sentence, "" without any')]
    changed: Annotated[
        tuple[ChangedMessage, ...], says(description="what changed in the prompt, where the prompt is judged")
    ]
    suite: str = page_only  # of the baseline; none of two logs
    treatment: str = page_only  # of the comparison that it is a pair of, as pair_by
    pair_by: str = page_only
    comparison: int | None = page_only  # the id of one that lists this pair
    has_forced: bool = page_only  # whether anything was scored of either run
    messages: tuple[dict[str, Any], ...] = page_only
    target: Any = page_only
    prompts: PairPrompts = page_only
    parts_at: int | None = page_only  # the first position that differs
    shorter: str | None = page_only  # the side that ends there
    text_position: int | None = page_only  # the character where texts without both traces part
    is_approximate: bool = page_only  # bytes were compared, because the vocabularies differ
    last_at: int = page_only
    earlier: int | None = page_only  # nearest positions of interest: onset, parting, narrow margins before it
    later: int | None = page_only
    points: tuple[MarginPoint, ...] = page_only  # of a long trace, those that stand for all
    n_points: int = page_only
    shown_points: tuple[MarginPoint, ...] = page_only  # all of those around `at`
    n_within_noise: int = page_only  # positions before the parting whose margin noise explains
    gap_range: tuple[float, float] | None = page_only  # smallest and largest above 0, from the onset on
    n_settings_equal: int = page_only  # known on both sides, besides those in `moved`

    @property
    def run_ids(self) -> tuple[int, int]:
        return int(self.baseline.run), int(self.candidate.run)

    @property
    def terms(self) -> Terms:
        return Terms(self.treatment, self.pair_by)

    @property
    def repeats(self) -> tuple[int, int]:
        return self.baseline.repeat, self.candidate.repeat

    @property
    def is_same_run(self) -> bool:
        return self.baseline.run == self.candidate.run

    @property
    def has_flip(self) -> bool:
        return self.flip_position is not None

    @property
    def selected(self) -> PairPosition | None:
        return next((position for position in self.positions if position.at == self.at), None)
