"""Send another tool's log, and wait where the server reads a large one after it answered."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalboard.client.progress import WaitProgress, render_size
from evalboard.client.waiting import GIVE_UP_SECONDS, follow, follow_transfer, make_follower
from evalboard.importers.files import LogFile

if TYPE_CHECKING:
    from evalboard.client.answers import Answer
    from evalboard.client.rest import RestClient
    from evalboard.contract.imports import Import, ImportReading


def import_log(client: "RestClient", files: Sequence[LogFile], *, log_format: str, **given: str) -> "Answer[Import]":
    """Import the files of one log. Raises WrongUse or Unreachable where the server refuses it.

    given: `suite`, `scale` and `second_of`, where they are not empty.
    """
    from evalboard.client.transport import refusal_of  # here, since they bring httpx and pydantic
    from evalboard.contract.imports import ImportReading

    with follow_transfer(files[0].name if len(files) == 1 else f"{len(files)} files") as transfer:
        sent = client.import_logs(files, log_format=log_format, tell=transfer.tell, **given)
    if not isinstance(sent.value, ImportReading):
        return sent
    reading_id = sent.value.id
    with make_follower() as follower:
        read = follow(
            lambda: client.import_reading(reading_id),
            _progress,
            follower,
            come_back="evalboard import, with the same file",
            give_up_after=GIVE_UP_SECONDS,
        ).value
    if read.problem is not None or read.imported is None:
        raise refusal_of(read.problem)
    return replace(client.imported_log(read.imported), is_new=bool(read.is_new))


def _progress(answer: "Answer[ImportReading]") -> WaitProgress:
    reading = answer.value
    name = f"log of {render_size(reading.n_bytes)}"
    return WaitProgress(name, "logs", reading.status, reading.is_terminal, 1, reading.is_terminal)
