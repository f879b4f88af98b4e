"""The REST API from Python: typed answers, and every failure as one sentence. The only file that knows httpx."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self
from urllib.parse import parse_qs, quote, urlsplit

import httpx

from evalboard.cli.answers import (
    ComparisonAnswer,
    Download,
    ImportAnswer,
    ProbeAnswer,
    ReleaseAnswer,
    ReplayAnswer,
    RunAnswer,
    SuiteAnswer,
)
from evalboard.cli.errors import Unreachable, WrongUse
from evalboard.cli.place import Place
from evalboard.cli.transfer import Outgoing

TIMEOUT_SECONDS = 30.0
IMPORT_SECONDS = 600.0  # a log is read and stored before the answer
LOOPBACK = ("127.0.0.1", "localhost", "::1")
FIELDS_NAMED = 5
PAGE_SIZE = 200  # rows; the most that the server gives at a time
# Refusals that say: not now.
ASK_AGAIN = ("request_in_flight", "too_many_requests")

Json = dict[str, Any]


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
        self._seen: dict[str, tuple[str, Json]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._http.close()

    def close(self) -> None:
        self._http.close()

    def create_run(self, body: Mapping[str, Any], *, key: str = "") -> RunAnswer:
        """Start a run; sent again with the same key and body, it answers with the run that was made first."""
        return RunAnswer(self._ask("POST", "/runs/", body, headers={"Idempotency-Key": key} if key else {}).json())

    def run(self, run_id: str) -> RunAnswer:
        return RunAnswer(self._poll(f"/runs/{run_id}/"))

    def runs(self, **filters: str) -> Iterator[Json]:
        return self._rows("/runs/", filters)

    def cases(self, run_id: str, **filters: str) -> Iterator[Json]:
        return self._rows(f"/runs/{run_id}/cases/", filters)

    def responses(self, run_id: str, **filters: str) -> Iterator[Json]:
        return self._rows(f"/runs/{run_id}/responses/", filters)

    def compare(self, baseline: str, candidate: str, **more: str) -> ComparisonAnswer:
        asked = {"baseline": baseline, "candidate": candidate, **more}
        return ComparisonAnswer(self._ask("GET", "/compare/", params=asked).json())

    def compared_cases(self, baseline: str, candidate: str, **filters: str) -> Iterator[Json]:
        return self._rows("/compare/cases/", {"baseline": baseline, "candidate": candidate, **filters})

    def create_replay(self, run_id: str, body: Mapping[str, Any]) -> ReplayAnswer:
        return ReplayAnswer(self._ask("POST", f"/runs/{run_id}/replays/", body).json())

    def replay(self, replay_id: str) -> ReplayAnswer:
        return ReplayAnswer(self._ask("GET", f"/replays/{replay_id}/").json())

    def create_probe(self, body: Mapping[str, Any]) -> ProbeAnswer:
        return ProbeAnswer(self._ask("POST", "/probes/", body).json())

    def probe(self, probe_id: str) -> ProbeAnswer:
        return ProbeAnswer(self._poll(f"/probes/{probe_id}/"))

    def create_release(self, body: Mapping[str, Any]) -> ReleaseAnswer:
        return ReleaseAnswer(self._ask("POST", "/releases/", body).json())

    def release(self, release_id: str) -> ReleaseAnswer:
        return ReleaseAnswer(self._ask("GET", f"/releases/{release_id}/").json())

    def releases(self, **filters: str) -> Iterator[Json]:
        return self._rows("/releases/", filters)

    def suites(self) -> Iterator[Json]:
        return self._rows("/suites/", {})

    def suite(self, slug: str, **version: str) -> Json:
        found: Json = self._ask("GET", f"/suites/{quote(slug, safe='')}/", params=version).json()
        return found

    def endpoints(self) -> Iterator[Json]:
        return self._rows("/endpoints/", {})

    def profiles(self) -> Iterator[Json]:
        return self._rows("/profiles/", {})

    def policies(self) -> Iterator[Json]:
        return self._rows("/policies/", {})

    def baselines(self, suite: str) -> Iterator[Json]:
        return self._rows(f"/suites/{quote(suite, safe='')}/baselines/", {})

    def set_baseline(self, suite: str, body: Mapping[str, Any]) -> dict[str, Any]:
        answer: dict[str, Any] = self._ask("POST", f"/suites/{quote(suite, safe='')}/baselines/", body).json()
        return answer

    def push_suite(self, document: Mapping[str, Any]) -> SuiteAnswer:
        answer = self._ask("POST", "/suites/", document)
        return SuiteAnswer(answer.json(), is_new=answer.status_code == httpx.codes.CREATED)

    def import_logs(
        self, files: Sequence[Path], *, log_format: str, suite: str, tell: Callable[[int], None]
    ) -> ImportAnswer:
        """Send a log's files; `tell` hears how many bytes of all of them have gone. Raises WrongUse for no file."""
        n_sent = 0

        def sent(n_bytes: int) -> None:
            nonlocal n_sent
            n_sent += n_bytes
            tell(n_sent)

        fields = {"format": log_format} | ({"suite": suite} if suite else {})
        with ExitStack() as opened:
            parts = [("files", (file.name, Outgoing(opened.enter_context(_opened(file)), sent))) for file in files]
            answer = self._answered(
                "POST",
                "/imports/",
                files=parts,
                data=fields,
                timeout=httpx.Timeout(TIMEOUT_SECONDS, read=IMPORT_SECONDS),
            )
        self._refuse(answer, "application/json")
        return ImportAnswer(answer.json(), is_new=answer.status_code == httpx.codes.CREATED)

    @contextmanager
    def download(self, path: str, media_type: str, params: Mapping[str, str]) -> Iterator[Download]:
        """A file of the server's, taken as it comes; raises Unreachable where it breaks off."""
        asked = self._http.stream("GET", path, params=params, headers={"Accept": media_type})
        try:
            with asked as answer:
                if not answer.is_success:
                    answer.read()
                self._refuse(answer, media_type)
                n_rows = answer.headers.get("X-Row-Count", "")
                yield Download(answer.iter_bytes(), int(n_rows) if n_rows.isdigit() else None)
        except httpx.TransportError as problem:
            said = problem or type(problem).__name__
            raise Unreachable(f"{self._place.url} does not answer, or no longer: {said}.") from problem
        except httpx.InvalidURL as problem:
            raise WrongUse(f"{self._place.url} is no address: {problem}.") from problem

    def _poll(self, path: str) -> Json:
        """What is there; the server is spared making it anew where it is as it was the last time."""
        tag, known = self._seen.get(path, ("", {}))
        answer = self._ask("GET", path, headers={"If-None-Match": tag} if tag else {})
        if answer.status_code == httpx.codes.NOT_MODIFIED:
            return known
        found: Json = answer.json()
        if tag := answer.headers.get("ETag", ""):
            self._seen[path] = (tag, found)
        return found

    def _rows(self, path: str, filters: Mapping[str, str]) -> Iterator[Json]:
        """Every row of a list, page by page."""
        asked: dict[str, str] = {"page_size": str(PAGE_SIZE), **filters}
        while True:
            page: Json = self._ask("GET", path, params=asked).json()
            yield from page["results"]
            if page["next"] is None:
                return
            # The cursor alone: the host that the server knows itself by need not be the one it is reached by.
            asked["cursor"] = parse_qs(urlsplit(page["next"]).query)["cursor"][0]

    def _ask(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        answer = self._answered(method, path, json=body, params=params, headers=headers)
        if answer.status_code == httpx.codes.NOT_MODIFIED:
            return answer
        self._refuse(answer, "application/json")
        return answer

    def _answered(self, method: str, path: str, **sent: Any) -> httpx.Response:
        """The answer to a request as httpx takes it, whatever it is."""
        try:
            return self._http.request(method, path, **sent)
        except httpx.TransportError as problem:
            raise Unreachable(f"{self._place.url} does not answer: {problem or type(problem).__name__}.") from problem
        except httpx.InvalidURL as problem:
            raise WrongUse(f"{self._place.url} is no address: {problem}.") from problem

    def _refuse(self, answer: httpx.Response, media_type: str) -> None:
        """Raise what an answer says that is no success, or none of Evalboard's."""
        if answer.is_server_error:
            raise Unreachable(f"{self._place.url} cannot answer now: {_words(answer)}")
        if _code(answer) in ASK_AGAIN:
            raise Unreachable(_words(answer))
        if not answer.is_success:
            raise WrongUse(_words(answer))
        if _media_type(answer) != media_type:
            raise WrongUse(f"{self._place.url} is no Evalboard: it answered with {_media_type(answer) or 'nothing'}.")


def _opened(file: Path) -> BinaryIO:
    try:
        return file.open("rb")
    except OSError as problem:
        raise WrongUse(f"{file} cannot be read: {problem.strerror}.") from problem


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


def _code(answer: httpx.Response) -> str:
    """The code of a problem document; "" where it is none."""
    if _media_type(answer) != "application/problem+json":
        return ""
    try:
        return str(answer.json()["code"])
    except (ValueError, KeyError, TypeError):
        return ""


def _media_type(answer: httpx.Response) -> str:
    return str(answer.headers.get("Content-Type", "")).partition(";")[0].strip()
