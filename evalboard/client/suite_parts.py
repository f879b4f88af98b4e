"""Upload a suite in compressed parts with checksums, and resume after an interruption."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import zstandard

from evalboard.client.answers import Answer
from evalboard.client.errors import WrongUse
from evalboard.client.progress import WaitProgress
from evalboard.client.rest import RestClient
from evalboard.client.waiting import Follower, ask_until_answered, follow, make_follower
from evalboard.contract.suite import SuiteVersion
from evalboard.contract.upload import Upload

PART_BYTES = 4 * 2**20  # about; a part ends where a line does
FIELDS_NAMED = 10
AGAIN = "The parts sent are kept for a day. Push the file again to send only the rest."


@dataclass(frozen=True, slots=True)
class SuiteLines:
    """A suite as JSONL, line by line, each with its end; `title` wins over that of the first line."""

    slug: str
    title: str
    lines: Iterable[bytes]


@dataclass(frozen=True, slots=True)
class SuitePart:
    """Whole lines, and where they begin among all lines."""

    offset: int
    lines: bytes
    sha256: str


def cut(lines: Iterable[bytes]) -> Iterator[SuitePart]:
    """Put lines, each with its end, together into parts; the same lines come out as the same parts."""
    offset, waiting, n_waiting = 0, list[bytes](), 0
    for line in lines:
        if waiting and n_waiting + len(line) > PART_BYTES:
            yield _part(offset, waiting)
            offset, waiting, n_waiting = offset + n_waiting, [], 0
        waiting.append(line)
        n_waiting += len(line)
    if waiting:
        yield _part(offset, waiting)


def _part(offset: int, lines: list[bytes]) -> SuitePart:
    together = b"".join(lines)
    return SuitePart(offset, together, hashlib.sha256(together).hexdigest())


def send_parts(client: RestClient, suite: SuiteLines, *, tell: Callable[[int], None], give_up_after: float) -> str:
    """Send the lines of a suite, and return the id of the upload, which a worker reads from then on.

    An upload of that suite that the caller began is continued: parts that are there are not sent again. `tell` gets the
    number of bytes that are there. A connection that breaks is tried again.
    """
    named = {"slug": suite.slug} | ({"title": suite.title} if suite.title else {})
    upload = _resumed(client, suite.slug) or client.open_upload(named).value
    there = {(part.offset, part.sha256) for part in upload.parts}
    end, whole = 0, hashlib.sha256()
    with make_follower() as follower:
        again = partial(ask_until_answered, follower=follower, advice=AGAIN, give_up_after=give_up_after)
        for part in cut(suite.lines):
            end = part.offset + len(part.lines)
            whole.update(part.lines)
            if (part.offset, part.sha256) not in there:
                packed = zstandard.ZstdCompressor().compress(part.lines)
                again(partial(client.send_part, upload.id, offset=part.offset, packed=packed, sha256=part.sha256))
            tell(end)
        again(partial(client.close_upload, upload.id, n_bytes=end, sha256=whole.hexdigest()))
    return upload.id


def read_upload(
    client: RestClient, upload_id: str, follower: Follower, *, give_up_after: float
) -> Answer[SuiteVersion]:
    """Wait until an upload is parsed, and return the version. Raises WrongUse, naming the wrong lines."""
    read = follow(
        lambda: client.upload(upload_id),
        _progress,
        follower,
        come_back="evalboard suite push, with the same file",
        give_up_after=give_up_after,
    ).value
    if read.version is None:
        wrong = "; ".join(f"{place}: {text}" for place, text in list(read.fields.items())[:FIELDS_NAMED])
        raise WrongUse(f"The suite is not valid, and nothing of it is stored: {wrong}.")
    stored = client.suite(read.suite, version=str(read.version))
    return replace(stored, is_new=bool(read.is_new))


def _resumed(client: RestClient, slug: str) -> Upload | None:
    """Return the caller's newest upload of a suite that still takes parts."""
    uploads = (each.value for each in client.uploads(own="true"))
    return next((upload for upload in uploads if (upload.suite, upload.status) == (slug, "open")), None)


def _progress(answer: Answer[Upload]) -> WaitProgress:
    upload, done = answer.value, answer.value.progress
    name = f"suite {upload.suite}"
    return WaitProgress(name, "bytes", upload.status, done.n_done, done.n_total, upload.is_terminal)
