"""Requests to one server, and every failure as one sentence."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, BinaryIO
from urllib.parse import urlsplit

import httpx
from pydantic import ValidationError

from evalboard.client.answers import Download
from evalboard.client.errors import Unreachable, WrongUse
from evalboard.contract.base import Problem
from evalboard.importers.files import LogFile

TIMEOUT_SECONDS = 30.0
UPLOAD_SECONDS = 600.0  # a log is read and stored before the answer
LOOPBACK = ("127.0.0.1", "localhost", "::1")
MAX_FIELDS_NAMED = 5
# Refusals that say: not now.
PASSING = ("request_in_flight", "too_many_requests")


class Transport:
    """One server, one token. Each call raises Unreachable where asking again may help, else WrongUse."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._http = httpx.Client(
            base_url=f"{url}/api/v1",
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            timeout=TIMEOUT_SECONDS,
            # A proxy of the environment must not stand between a machine and itself.
            trust_env=urlsplit(url).hostname not in LOOPBACK,
        )

    def close(self) -> None:
        self._http.close()

    def request(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request and return its answer: JSON, or none where nothing changed or was deleted."""
        answer = self._send(method, path, json=body, params=params, headers=headers)
        if answer.status_code not in (httpx.codes.NOT_MODIFIED, httpx.codes.NO_CONTENT):
            self._refuse(answer, "application/json")
        return answer

    def send(
        self, path: str, content: bytes, *, params: Mapping[str, str], headers: Mapping[str, str]
    ) -> httpx.Response:
        """Post raw bytes and return the JSON answer."""
        answer = self._send("POST", path, content=content, params=params, headers=headers)
        self._refuse(answer, "application/json")
        return answer

    def upload(
        self, path: str, files: Sequence[LogFile], fields: Mapping[str, str], tell: Callable[[int], None]
    ) -> httpx.Response:
        """Send files; `tell` hears how many bytes of all of them have gone. Raises WrongUse for no file."""
        n_sent = 0

        def count(n_bytes: int) -> None:
            nonlocal n_sent
            n_sent += n_bytes
            tell(n_sent)

        with ExitStack() as opened:
            sent = [(file.name, opened.enter_context(_open(file.path))) for file in files]
            parts = [("files", (name, Outgoing(content, count))) for name, content in sent]
            timeout = httpx.Timeout(TIMEOUT_SECONDS, read=UPLOAD_SECONDS)
            answer = self._send("POST", path, files=parts, data=fields, timeout=timeout)
        self._refuse(answer, "application/json")
        return answer

    @contextmanager
    def download(self, path: str, media_type: str, params: Mapping[str, str]) -> Iterator[Download]:
        """Take a file of the server's as it comes; raises Unreachable where it breaks off."""
        stream = self._http.stream("GET", path, params=params, headers={"Accept": media_type})
        try:
            with stream as answer:
                if not answer.is_success:
                    answer.read()
                self._refuse(answer, media_type)
                n_rows = answer.headers.get("X-Row-Count", "")
                yield Download(answer.iter_bytes(), int(n_rows) if n_rows.isdigit() else None)
        except httpx.TransportError as problem:
            reason = problem or type(problem).__name__
            raise Unreachable(f"{self._url} does not answer, or no longer: {reason}.") from problem
        except httpx.InvalidURL as problem:
            raise WrongUse(f"{self._url} is no address: {problem}.") from problem

    def _send(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Return the answer to a request, whatever its status; `options` are those of httpx."""
        try:
            return self._http.request(method, path, **options)
        except httpx.ConnectError as problem:
            here = urlsplit(self._url).hostname in LOOPBACK
            advice = " It is not running, or still starts; `make up` starts it." if here else ""
            raise Unreachable(f"{self._url} does not answer: {problem}.{advice}") from problem
        except httpx.TransportError as problem:
            reason = str(problem).rstrip(".") or type(problem).__name__  # httpx ends some of its sentences
            raise Unreachable(f"{self._url} does not answer: {reason}.") from problem
        except httpx.InvalidURL as problem:
            raise WrongUse(f"{self._url} is no address: {problem}.") from problem

    def _refuse(self, answer: httpx.Response, media_type: str) -> None:
        """Raise the answer's error unless it is a success from Evalboard."""
        if not answer.is_success:
            problem = _read_problem(answer)
            sentence = _describe_refusal(answer, problem)
            if answer.is_server_error:
                raise Unreachable(f"{self._url} cannot answer now: {sentence}")
            is_passing = problem is not None and problem.code in PASSING
            raise Unreachable(sentence) if is_passing else WrongUse(sentence)
        if _media_type(answer) != media_type:
            raise WrongUse(f"{self._url} is no Evalboard: it answered with {_media_type(answer) or 'nothing'}.")


class Outgoing:
    """A file that is sent, as httpx reads it: `tell` hears of every part how long it is."""

    def __init__(self, file: IO[bytes], tell: Callable[[int], None]) -> None:
        self._file, self._tell = file, tell

    def read(self, n_bytes: int = -1) -> bytes:
        part = self._file.read(n_bytes)
        self._tell(len(part))
        return part

    def fileno(self) -> int:
        """Return what httpx learns the length by before it sends."""
        return self._file.fileno()


def _open(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as problem:
        raise WrongUse(f"{file} cannot be read: {problem.strerror}.") from problem


def _describe_refusal(answer: httpx.Response, problem: Problem | None) -> str:
    """Return the error text of an answer, on one line."""
    if problem is None:
        return f"it answered with {answer.status_code} {answer.reason_phrase}."
    if problem.status == httpx.codes.UNAUTHORIZED:
        return f"{problem.detail} Check EVALBOARD_TOKEN."
    return _describe_problem(problem)


def refusal_of(problem: Problem | None) -> WrongUse | Unreachable:
    """Return the error of work that failed after its request was answered, as a refused request raises it."""
    if problem is None:
        return Unreachable("The server does not say why it failed.")
    kind = Unreachable if problem.status >= httpx.codes.INTERNAL_SERVER_ERROR else WrongUse
    return kind(_describe_problem(problem))


def _describe_problem(problem: Problem) -> str:
    fields = list((problem.fields or {}).items())[:MAX_FIELDS_NAMED]
    return " ".join([problem.detail, *(f"{name}: {text}" for name, text in fields if text not in problem.detail)])


def _read_problem(answer: httpx.Response) -> Problem | None:
    """Return a problem document, None where the answer is another: a gateway's page, say."""
    if _media_type(answer) != "application/problem+json":
        return None
    try:
        return Problem.model_validate_json(answer.content, extra="ignore")
    except ValidationError:
        return None


def _media_type(answer: httpx.Response) -> str:
    return str(answer.headers.get("Content-Type", "")).partition(";")[0].strip()
