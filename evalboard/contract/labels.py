"""What people say of a run's answers, and what their labels show of its scorers."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Id, Number, PageAddress, Share, says
from evalboard.contract.judge import Agreement, CorrectedRate
from evalboard.contract.run import ScorerOfRun

Label = Annotated[Share, says(description="1 is right, 0 is wrong; the mean where several people labelled the answer")]


class LabelledAnswer(Contract):
    """An answer of a run with a label, in the order of the run's random sample.

    The same text to the same case is one answer, in every run of the suite.
    """

    case: str
    repeat: Annotated[Number, says(description="the first repeat that gave the answer")]
    n_responses: Annotated[Count, says(description="responses of the run that gave it")]
    label: Label
    n_people: Annotated[Count, says(description="labels of it; a person has one")]
    is_disputed: Annotated[bool, says(description="as many people say right as wrong")]
    is_sampled: Annotated[bool, says(description="of the run's random sample: figures count no other label")]
    mine: Annotated[bool | None, says(description="what the caller says; null: nothing")]
    score: Annotated[Share | None, says(description="by the suite's own scorer, averaged over these responses")]
    url: PageAddress


class AnswerToLabel(Contract):
    """An answer of a run's random sample that the caller has not labelled, without its score."""

    case: str
    repeat: Number
    messages: tuple[dict[str, Any], ...]
    target: Any
    answer: str
    url: PageAddress


class ScorerLabels(Contract):
    """What the labels of a run's sample show of one of its scorers.

    rate: null where several buckets answered, as no score is pooled over them.
    """

    scorer: ScorerOfRun
    agreement: Agreement
    rate: CorrectedRate | None


class RunLabels(Contract):
    """The labels of a run's answers, and each of its scorers next to them, the suite's own first.

    The sample is the start of a random order of the answers, up to the first without a label.
    """

    run: Id
    n_answers: Annotated[Count, says(description="different answers; the same text to the same case is one")]
    n_labelled: Annotated[Count, says(description="answers with a label")]
    n_sampled: Annotated[Count, says(description="answers of the sample; figures count no other label")]
    n_disputed: Count
    n_people: Count
    scorers: Annotated[tuple[ScorerLabels, ...], says(description="empty until an answer of the sample is labelled")]
    url: PageAddress
