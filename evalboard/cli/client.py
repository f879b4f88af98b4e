"""The REST API from Python: typed answers, and every failure as one sentence. The only file that knows httpx."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import httpx

from evalboard.cli.errors import Unreachable, WrongUse
from evalboard.cli.place import Place

TIMEOUT_SECONDS = 30.0
TERMINAL = ("finished", "incomplete", "failed", "cancelled")
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FIELDS_NAMED = 5


@dataclass(frozen=True, slots=True)
class RunAnswer:
    """A run as the server gave it: `json` whole, and the parts that commands read."""

    json: dict[str, Any]

    @property
    def id(self) -> str:
        return str(self.json["id"])

    @property
    def status(self) -> str:
        return str(self.json["status"])

    @property
    def url(self) -> str:
        return str(self.json["url"])

    @property
    def n_done(self) -> int:
        return int(self.json["progress"]["n_done"])

    @property
    def n_total(self) -> int:
        return int(self.json["progress"]["n_total"])

    @property
    def eta_seconds(self) -> float | None:
        eta = self.json["progress"]["eta_seconds"]
        return None if eta is None else float(eta)

    @property
    def range(self) -> tuple[float, float] | None:
        span = self.json["range"]
        return None if span is None else (float(span[0]), float(span[1]))

    @property
    def warnings(self) -> list[str]:
        return [str(warning["text"]) for warning in self.json["warnings"]]

    @property
    def is_terminal(self) -> bool:
        return self.status in TERMINAL


@dataclass(frozen=True, slots=True)
class SuiteAnswer:
    """A suite version; `is_new` is False where the server had the same content already."""

    json: dict[str, Any]
    is_new: bool


class Client:
    """One server, one token. Each call raises Unreachable where asking again may help, else WrongUse."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._http = httpx.Client(
            base_url=f"{place.url}/api/v1",
            headers={"Authorization": f"Bearer {place.token}", "Accept": "application/json"},
            timeout=TIMEOUT_SECONDS,
            # A proxy of the environment must not stand between a machine and itself.
            trust_env=urlsplit(place.url).hostname not in LOOPBACK,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def create_run(self, body: Mapping[str, Any]) -> RunAnswer:
        return RunAnswer(self._ask("POST", "/runs/", body).json())

    def run(self, run_id: str) -> RunAnswer:
        return RunAnswer(self._ask("GET", f"/runs/{run_id}/").json())

    def push_suite(self, document: Mapping[str, Any]) -> SuiteAnswer:
        answer = self._ask("POST", "/suites/", document)
        return SuiteAnswer(answer.json(), is_new=answer.status_code == httpx.codes.CREATED)

    def _ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> httpx.Response:
        try:
            answer = self._http.request(method, path, json=body)
        except httpx.TransportError as problem:
            raise Unreachable(f"{self._place.url} does not answer: {problem or type(problem).__name__}.") from problem
        except httpx.InvalidURL as problem:
            raise WrongUse(f"{self._place.url} is no address: {problem}.") from problem
        if answer.is_server_error:
            raise Unreachable(f"{self._place.url} cannot answer now: {_words(answer)}")
        if not answer.is_success:
            raise WrongUse(_words(answer))
        if not _is_json(answer):
            raise WrongUse(f"{self._place.url} is no Evalboard: it answered with {_media_type(answer) or 'nothing'}.")
        return answer


def _words(answer: httpx.Response) -> str:
    """What a problem document says, on one line."""
    try:
        problem = answer.json()
        detail, fields = str(problem["detail"]), dict(problem.get("fields", {}))
    except (ValueError, KeyError, TypeError):
        return f"it answered with {answer.status_code} {answer.reason_phrase}."
    if answer.status_code == httpx.codes.UNAUTHORIZED:
        return f"{detail} Check EVALBOARD_TOKEN."
    named = [f"{name}: {text}" for name, text in list(fields.items())[:FIELDS_NAMED] if str(text) not in detail]
    return " ".join([detail, *named])


def _is_json(answer: httpx.Response) -> bool:
    return _media_type(answer) == "application/json"


def _media_type(answer: httpx.Response) -> str:
    return str(answer.headers.get("Content-Type", "")).partition(";")[0].strip()
