"""Typed calls of the REST API."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from http import HTTPStatus
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs, quote, urlsplit

import httpx

from evalboard.client.answers import Answer, Download, Json, Kind, parse
from evalboard.client.transport import Transport
from evalboard.contract.access import Follow, NewWebhook, Webhook
from evalboard.contract.audit import AuditCheck
from evalboard.contract.base import Page
from evalboard.contract.baseline import Baseline
from evalboard.contract.case import CaseHistory
from evalboard.contract.catalogue import Endpoint, Policy, Profile
from evalboard.contract.comment import Comment
from evalboard.contract.compare import ComparedCase, Comparison
from evalboard.contract.endpoint import EndpointReport
from evalboard.contract.imports import Import, ImportReading
from evalboard.contract.judge import Judging
from evalboard.contract.labels import RunLabels
from evalboard.contract.probe import Probe, ProbeEstimate
from evalboard.contract.release import Release, ReleaseRow, Settle
from evalboard.contract.replay import Replay
from evalboard.contract.response import CaseOfRun, Response
from evalboard.contract.rollouts import RolloutSeries, RolloutStep
from evalboard.contract.run import Rerun, Rescored, Run, RunEstimate, RunPair, RunRow
from evalboard.contract.schedule import Schedule
from evalboard.contract.stack import Worker
from evalboard.contract.suite import OwnScorer, RescoredCase, RescoredRun, SuiteRow, SuiteVersion, Trial
from evalboard.contract.upload import Upload, UploadPart
from evalboard.contract.vendors import VendorCard
from evalboard.importers.files import LogFile

PAGE_SIZE = 200  # rows; the most that the server gives at a time


def _by_key(key: str) -> dict[str, str]:
    return {"Idempotency-Key": key} if key else {}


def _case_path(suite: str, case_id: str) -> str:
    return f"/suites/{quote(suite, safe='')}/cases/{quote(case_id)}/"


class RestClient:
    """One server, one token. Each call raises Unreachable where asking again may help, else WrongUse."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._transport = Transport(url, token)
        self._polled: dict[str, tuple[str, Answer[Any]]] = {}  # the last answer by its address, with its tag

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._transport.close()

    def create_run(self, body: Mapping[str, Any], *, key: str = "") -> Answer[Run]:
        """Start a run; sent again with the same key and body, it answers with the run that was made first."""
        return self.post(Run, "/runs/", body, _by_key(key))

    def create_pair(self, body: Mapping[str, Any], *, key: str = "") -> Answer[RunPair]:
        """Start two runs, `baseline` and `candidate`, whose repeats take turns; sent again as `create_run` is."""
        return self.post(RunPair, "/runs/pairs/", body, _by_key(key))

    def run_estimate(self, **named: str) -> Answer[RunEstimate]:
        """Return what a run would take; named: suite, endpoint, profile, repeats."""
        return self.get(RunEstimate, "/runs/estimate/", named)

    def run(self, run_id: str) -> Answer[Run]:
        return self.poll(Run, f"/runs/{run_id}/")

    def runs(self, **filters: str) -> Iterator[Answer[RunRow]]:
        return self.rows(RunRow, "/runs/", filters)

    def cases(self, run_id: str, **filters: str) -> Iterator[Answer[CaseOfRun]]:
        return self.rows(CaseOfRun, f"/runs/{run_id}/cases/", filters)

    def responses(self, run_id: str, **filters: str) -> Iterator[Answer[Response]]:
        return self.rows(Response, f"/runs/{run_id}/responses/", filters)

    def compare(self, baseline: str, candidate: str, **more: str) -> Answer[Comparison]:
        return self.get(Comparison, "/compare/", {"baseline": baseline, "candidate": candidate, **more})

    def compared_cases(self, baseline: str, candidate: str, **filters: str) -> Iterator[Answer[ComparedCase]]:
        sides = {"baseline": baseline, "candidate": candidate}
        return self.rows(ComparedCase, "/compare/cases/", {**sides, **filters})

    def create_replay(self, run_id: str, body: Mapping[str, Any]) -> Answer[Replay]:
        return self.post(Replay, f"/runs/{run_id}/replays/", body)

    def create_body_replay(self, body: Mapping[str, Any]) -> Answer[Replay]:
        return self.post(Replay, "/replays/", body)

    def replay(self, replay_id: str) -> Answer[Replay]:
        return self.poll(Replay, f"/replays/{replay_id}/")

    def create_probe(self, body: Mapping[str, Any]) -> Answer[Probe]:
        return self.post(Probe, "/probes/", body)

    def probe_estimate(self, body: Mapping[str, Any]) -> Answer[ProbeEstimate]:
        """Return what a probe would take; the body is that of `create_probe`."""
        return self.post(ProbeEstimate, "/probes/estimate/", body)

    def vendor_card(self, **query: str) -> Answer[VendorCard]:
        return self.get(VendorCard, "/vendors/", query)

    def probe(self, probe_id: str) -> Answer[Probe]:
        return self.poll(Probe, f"/probes/{probe_id}/")

    def set_endings(self, endpoint: str, endings: Mapping[str, str]) -> Answer[Endpoint]:
        return self.post(Endpoint, f"/endpoints/{endpoint}/endings/", {"endings": endings})

    def ignore_fingerprint(self, endpoint: str, *, ignores: bool) -> Answer[Endpoint]:
        return self.post(Endpoint, f"/endpoints/{endpoint}/fingerprint/", {"ignores_fingerprint": ignores})

    def set_price(self, endpoint: str, price: Mapping[str, str] | None) -> Answer[Endpoint]:
        return self.post(Endpoint, f"/endpoints/{endpoint}/price/", {"price": price})

    def complete_run(self, run_id: str) -> Answer[Run]:
        return self.post(Run, f"/runs/{run_id}/complete/", {})

    def run_again(self, run_id: str, body: Mapping[str, Any], *, key: str = "") -> Answer[Run]:
        """Start a run with the settings of another; sent again as `create_run` is."""
        return self.post(Run, f"/runs/{run_id}/again/", body, _by_key(key))

    def try_endpoint(self, slug: str) -> Answer[Endpoint]:
        return self.post(Endpoint, f"/endpoints/{slug}/try/", {})

    def create_release(self, body: Mapping[str, Any]) -> Answer[Release]:
        return self.post(Release, "/releases/", body)

    def release(self, release_id: str) -> Answer[Release]:
        return self.get(Release, f"/releases/{release_id}/")

    def releases(self, **filters: str) -> Iterator[Answer[ReleaseRow]]:
        return self.rows(ReleaseRow, "/releases/", filters)

    def suites(self) -> Iterator[Answer[SuiteRow]]:
        return self.rows(SuiteRow, "/suites/", {})

    def suite(self, slug: str, **version: str) -> Answer[SuiteVersion]:
        return self.get(SuiteVersion, f"/suites/{quote(slug, safe='')}/", version)

    def case(self, suite: str, case_id: str, **part: str) -> Answer[CaseHistory]:
        return self.get(CaseHistory, _case_path(suite, case_id), part)

    def decode_case(self, suite: str, case_id: str) -> tuple[Answer[Replay], ...]:
        """Request a replay on each endpoint that ran the case."""
        page = self.post(Page[Replay], _case_path(suite, case_id), {})
        rows = zip(page.value.results, page.json["results"], strict=True)
        return tuple(Answer(value, json) for value, json in rows)

    def push_suite(self, document: Mapping[str, Any]) -> Answer[SuiteVersion]:
        return self.post(SuiteVersion, "/suites/", document)

    def scorers(self) -> Iterator[Answer[OwnScorer]]:
        """Yield the teams' own scorers that workers have."""
        return self.rows(OwnScorer, "/scorers/", {})

    def rescore(self, run_id: str, body: Mapping[str, Any]) -> Answer[Rescored]:
        """Score a run's stored responses with another `scorer`; its scores may come later."""
        return self.post(Rescored, f"/runs/{run_id}/rescore/", body)

    def rescored(self, run_id: str, scorer_id: str) -> Answer[RescoredRun]:
        return self.get(RescoredRun, f"/runs/{run_id}/rescored/{scorer_id}/")

    def rescored_cases(self, run_id: str, scorer_id: str) -> Iterator[Answer[RescoredCase]]:
        return self.rows(RescoredCase, f"/runs/{run_id}/rescored/{scorer_id}/cases/", {})

    def judgings(self, run_id: str) -> Answer[Page[Judging]]:
        """Return how judges scored a run: its suite's own judge first, newest first."""
        return self.get(Page[Judging], f"/runs/{run_id}/judgings/")

    def adopt_scorer(self, slug: str, body: Mapping[str, Any]) -> Answer[SuiteVersion]:
        return self.post(SuiteVersion, f"/suites/{quote(slug, safe='')}/scorer/", body)

    def label_answers(self, run_id: str, labels: Sequence[Mapping[str, Any]]) -> Answer[RunLabels]:
        """Say of a run's answers whether they are right: `case`, `is_right`, and `repeat` or `text` of each."""
        return self.post(RunLabels, f"/runs/{run_id}/labels/", {"labels": list(labels)})

    def agreement(self, run_id: str) -> Answer[RunLabels]:
        return self.get(RunLabels, f"/runs/{run_id}/agreement/")

    def comments(self, kind: str, name: str) -> Iterator[Answer[Comment]]:
        """Yield the comments on a run, case or release, newest first."""
        return self.rows(Comment, "/comments/", {"kind": kind, "name": name})

    def create_comment(self, kind: str, name: str, text: str) -> Answer[Comment]:
        return self.post(Comment, "/comments/", {"kind": kind, "name": name, "text": text})

    def withdraw_comment(self, comment_id: str) -> None:
        self._transport.request("DELETE", f"/comments/{quote(comment_id, safe='')}/")

    def audit_check(self) -> Answer[AuditCheck]:
        return self.get(AuditCheck, "/audit/check/")

    def log_rollout(self, series: str, body: Mapping[str, Any]) -> Answer[RolloutStep]:
        """Store a step of a training run; sent again, it replaces what was logged of it."""
        return self.post(RolloutStep, f"/rollouts/{quote(series, safe='')}/steps/", body)

    def rollout_series(self, series: str) -> Answer[RolloutSeries]:
        return self.get(RolloutSeries, f"/rollouts/{quote(series, safe='')}/")

    def rollouts(self) -> Iterator[Answer[RolloutSeries]]:
        return self.rows(RolloutSeries, "/rollouts/", {})

    def rollout_steps(self, series: str) -> Iterator[Answer[RolloutStep]]:
        """Yield the steps of a series, the newest step first."""
        return self.rows(RolloutStep, f"/rollouts/{quote(series, safe='')}/steps/", {})

    def follow(self, kind: str, name: str) -> Answer[Follow]:
        """Follow a run, suite, endpoint or other thing: Evalboard notifies you at your own addresses."""
        return self.post(Follow, "/follows/", {"kind": kind, "name": name})

    def follows(self) -> Iterator[Answer[Follow]]:
        return self.rows(Follow, "/follows/", {})

    def unfollow(self, follow_id: str) -> None:
        self._transport.request("DELETE", f"/follows/{follow_id}/")

    def addresses(self) -> Iterator[Answer[Webhook]]:
        """Yield the addresses where Evalboard notifies you about what you follow."""
        return self.rows(Webhook, "/follows/addresses/", {})

    def create_address(self, url: str) -> Answer[NewWebhook]:
        return self.post(NewWebhook, "/follows/addresses/", {"url": url})

    def create_trial(self, body: Mapping[str, Any]) -> Answer[Trial]:
        """Send one case of a suite document to an endpoint; the suite is not stored."""
        return self.post(Trial, "/trials/", body)

    def trial(self, trial_id: str) -> Answer[Trial]:
        return self.poll(Trial, f"/trials/{trial_id}/")

    def uploads(self, **filters: str) -> Iterator[Answer[Upload]]:
        return self.rows(Upload, "/uploads/", filters)

    def upload(self, upload_id: str) -> Answer[Upload]:
        return self.get(Upload, f"/uploads/{upload_id}/")

    def open_upload(self, body: Mapping[str, Any]) -> Answer[Upload]:
        """Begin a suite that is sent in parts (`client.suite_parts`)."""
        return self.post(Upload, "/uploads/", body)

    def send_part(self, upload_id: str, *, offset: int, packed: bytes, sha256: str) -> Answer[UploadPart]:
        """Send whole lines that begin at a byte of the file, in a zstd frame; sha256: of the lines."""
        path = f"/uploads/{upload_id}/parts/{offset}/"
        headers = {"Content-Type": "application/x-ndjson", "Content-Encoding": "zstd"}
        return self._read(UploadPart, self._transport.send(path, packed, params={"sha256": sha256}, headers=headers))

    def close_upload(self, upload_id: str, *, n_bytes: int, sha256: str) -> Answer[Upload]:
        """Say that an upload is whole; sha256: of all its lines in order, before they were compressed."""
        return self.post(Upload, f"/uploads/{upload_id}/close/", {"n_bytes": n_bytes, "sha256": sha256})

    def endpoints(self) -> Iterator[Answer[Endpoint]]:
        return self.rows(Endpoint, "/endpoints/", {})

    def endpoint(self, slug: str) -> Answer[EndpointReport]:
        return self.get(EndpointReport, f"/endpoints/{quote(slug, safe='')}/")

    def workers(self) -> Iterator[Answer[Worker]]:
        return self.rows(Worker, "/workers/", {})

    def create_endpoint(self, body: Mapping[str, Any]) -> Answer[Endpoint]:
        return self.post(Endpoint, "/endpoints/", body)

    def profiles(self) -> Iterator[Answer[Profile]]:
        return self.rows(Profile, "/profiles/", {})

    def create_profile(self, body: Mapping[str, Any]) -> Answer[Profile]:
        return self.post(Profile, "/profiles/", body)

    def schedules(self) -> Iterator[Answer[Schedule]]:
        return self.rows(Schedule, "/schedules/", {})

    def create_schedule(self, body: Mapping[str, Any]) -> Answer[Schedule]:
        return self.post(Schedule, "/schedules/", body)

    def pause_schedule(self, schedule_id: str) -> Answer[Schedule]:
        return self.post(Schedule, f"/schedules/{schedule_id}/pause/", {})

    def resume_schedule(self, schedule_id: str) -> Answer[Schedule]:
        return self.post(Schedule, f"/schedules/{schedule_id}/resume/", {})

    def delete_schedule(self, schedule_id: str) -> None:
        self._transport.request("DELETE", f"/schedules/{schedule_id}/")

    def settle_plan(self, release_id: str) -> Answer[Settle]:
        return self.get(Settle, f"/releases/{release_id}/settle/")

    def settle(self, release_id: str, body: Mapping[str, Any]) -> Answer[Release]:
        """Add the repeats of a plan: its `cases`, `look` and `n_responses` are sent back."""
        return self.post(Release, f"/releases/{release_id}/settle/", body)

    def rerun(self, release_id: str, body: Mapping[str, Any], *, key: str = "") -> Answer[Rerun]:
        """Run sides of a release again; sent again as `create_run` is."""
        return self.post(Rerun, f"/releases/{release_id}/rerun/", body, _by_key(key))

    def policies(self) -> Iterator[Answer[Policy]]:
        return self.rows(Policy, "/policies/", {})

    def baselines(self, suite: str) -> Iterator[Answer[Baseline]]:
        return self.rows(Baseline, f"/suites/{quote(suite, safe='')}/baselines/", {})

    def set_baseline(self, suite: str, body: Mapping[str, Any]) -> Answer[Baseline]:
        return self.post(Baseline, f"/suites/{quote(suite, safe='')}/baselines/", body)

    def import_logs(
        self, files: Sequence[LogFile], *, log_format: str, tell: Callable[[int], None], **given: str
    ) -> Answer[Import] | Answer[ImportReading]:
        """Upload a log's files; the server reads a large log after it answered. Raises WrongUse without files.

        tell: called with the total bytes sent so far. given: `suite`, `scale` and `second_of`, if not empty.
        """
        fields = {"format": log_format} | {name: value for name, value in given.items() if value}
        answer = self._transport.upload("/imports/", files, fields, tell)
        if answer.status_code == HTTPStatus.ACCEPTED:
            return self._read(ImportReading, answer)
        return self._read(Import, answer)

    def import_reading(self, reading_id: str) -> Answer[ImportReading]:
        return self.get(ImportReading, f"/imports/readings/{reading_id}/")

    def imported_log(self, import_id: str) -> Answer[Import]:
        return self.get(Import, f"/imports/{import_id}/")

    def download(self, path: str, media_type: str, params: Mapping[str, str]) -> AbstractContextManager[Download]:
        """Take a file of the server's as it comes; raises Unreachable where it breaks off."""
        return self._transport.download(path, media_type, params)

    def get(self, kind: type[Kind], path: str, params: Mapping[str, str] | None = None) -> Answer[Kind]:
        return self._read(kind, self._transport.request("GET", path, params=params))

    def post(
        self, kind: type[Kind], path: str, body: Mapping[str, Any], headers: Mapping[str, str] | None = None
    ) -> Answer[Kind]:
        return self._read(kind, self._transport.request("POST", path, body, headers=headers))

    def poll(self, kind: type[Kind], path: str) -> Answer[Kind]:
        """Return the resource, reusing the last answer while its ETag is unchanged."""
        tag, last = self._polled.get(path, ("", None))
        answer = self._transport.request("GET", path, headers={"If-None-Match": tag} if tag else {})
        if last is not None and answer.status_code == HTTPStatus.NOT_MODIFIED:
            return last
        current = self._read(kind, answer)
        if tag := answer.headers.get("ETag", ""):
            self._polled[path] = (tag, current)
        return current

    def rows(self, kind: type[Kind], path: str, filters: Mapping[str, str]) -> Iterator[Answer[Kind]]:
        """Yield every row of a list, page by page."""
        params: dict[str, str] = {"page_size": str(PAGE_SIZE), **filters}
        while True:
            page = self.get(Page[Json], path, params).value
            for row in page.results:
                yield Answer(parse(kind, row, url=self._url), row)
            if page.next is None:
                return
            # The cursor alone: the host that the server knows itself by need not be the one it is reached by.
            params["cursor"] = parse_qs(urlsplit(page.next).query)["cursor"][0]

    def _read(self, kind: type[Kind], answer: httpx.Response) -> Answer[Kind]:
        json = answer.json()
        return Answer(parse(kind, json, url=self._url), json, is_new=answer.status_code == HTTPStatus.CREATED)
