"""What came back from a server of others for one case: its answer, who it says answered, and how the call went."""

from dataclasses import dataclass

from evalboard.contract.call import CallFacts
from evalboard.core.trace import Failed, Outcome
from evalboard.importers.records import LoggedResponse


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """An answer in the shape that logs are read into: one reader for what was logged and what is called.

    Its `case_id` is empty and its `repeat` 1: the shard knows both.
    """

    case_index: int
    response: LoggedResponse
    call: CallFacts


@dataclass(frozen=True, slots=True)
class FailedCall(Failed):
    """A failure of a call that was made, with how the last try of it went."""

    call: CallFacts


CallOutcome = Answered | Outcome
