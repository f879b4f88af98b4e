"""How good a judge is as an instrument: its noise, whether it moved, and how far people agree with it."""

from typing import Annotated

from evalboard.contract.base import Contract, Count, Digest, Id, Instant, PageAddress, Points, Range, Share, says


class JudgeNoise(Contract):
    """How far a judge differs from itself on the same answers, of which each was judged several times.

    variance: of one judgement of an answer, of scores from 0 to 1, averaged over the answers.
    """

    n_answers: Annotated[Count, says(description="answers judged at least twice")]
    n_draws: Annotated[Count, says(description="judgements of them, in all")]
    disagreement: Annotated[Share, says(description="the chance that two judgements of an answer differ")]
    disagreement_interval: Annotated[Range, says(description="its interval, from 0 to 1, at 95 %")]
    variance: float


class AnchorShift(Contract):
    """The change of a judge's scores of fixed answers from one run to another.

    detectable: the smallest shift, in points, that a test of these anchors finds 19 times in 20.
    """

    n_anchors: Count
    points: Annotated[float, says(description="candidate minus baseline")]
    interval: Annotated[Range, says(description="interval of the shift in points, at 99 %")]
    p: Annotated[Share, says(description="the chance of a shift like this if the judge did not move")]
    has_moved: Annotated[bool, says(description="whether p is at most 0.01")]
    detectable: float | None


class Agreement(Contract):
    """The agreement of people's labels with a judge. Rates are null without such labels.

    Intervals are at 95 %. A judgement counts as right from 0.5.
    """

    n_labels: Annotated[Count, says(description="answers with a label and a score")]
    kappa: Annotated[float | None, says(description="Cohen's kappa; null where only one word was used")]
    kappa_interval: Range | None
    true_positive: Annotated[Share | None, says(description="of the answers labelled right, those judged right")]
    true_positive_interval: Range | None
    false_positive: Annotated[Share | None, says(description="of the answers labelled wrong, those judged right")]
    false_positive_interval: Range | None


class CorrectedRate(Contract):
    """A run's pass rate by its scorer, and as people's labels correct it (docs/suites.md).

    All in points, intervals at 95 %. Prediction-powered: the labels correct the scorer's bias.
    """

    n_answers: Count
    n_labels: Count
    raw: Points
    corrected: Points | None
    interval: Range | None


class JudgeVarianceSplit(Contract):
    """The parts of the spread of a run's score, as standard deviations in points whose squares add up."""

    total: float
    model: Annotated[float, says(description="of the answers themselves")]
    judge: Annotated[float, says(description="of judging one and the same answer")]


class JudgedAnchors(Contract):
    """The fixed answers that a judge scored with a run."""

    digest: Digest
    n_anchors: Count
    n_draws: Annotated[Count, says(description="judgements of each")]
    before: Annotated[Id | None, says(description="the run with which the same judge scored them last before")]
    shift: Annotated[AnchorShift | None, says(description="against that run; null without it")]


class Judging(Contract):
    """A judge's scores of a run: by which run of its own, its noise, and whether it moved."""

    id: Id
    run: Id
    scorer: Digest
    is_own: Annotated[bool, says(description="the suite's own scorer, which decides")]
    number: Annotated[int, says(minimum=1, description="1 for the judge's first judging of the run, then 2")]
    status: Annotated[str, says(enum=("running", "finished", "failed"))]
    error: str | None
    judge_run: Annotated[Id | None, says(description="the run of the judge; null until it has begun")]
    endpoint: str
    profile: str
    served: Annotated[tuple[str, ...], says(description="what judged, as pages name it")]
    n_judgements: Count
    n_done: Count
    n_tokens: Annotated[Count, says(description="tokens that the judge wrote")]
    noise: JudgeNoise | None
    split: JudgeVarianceSplit | None
    anchors: JudgedAnchors | None
    created_at: Instant
    finished_at: Instant | None
    text: Annotated[str, says(description="the same in words")]
    url: Annotated[PageAddress, says(description="of the judge's run, or of the run that waits for it")]
