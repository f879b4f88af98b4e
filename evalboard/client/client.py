"""One server, one token, and a method for each call that people make from a notebook."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evalboard.client.access import find_access
from evalboard.client.answers import Json
from evalboard.client.log_imports import import_log
from evalboard.client.notebook import NotebookComparison, NotebookRelease, NotebookRun, Rows, read_run_id
from evalboard.client.progress import comparison_progress, run_progress
from evalboard.client.rest import RestClient
from evalboard.client.waiting import GIVE_UP_SECONDS, follow, make_follower
from evalboard.importers.paths import open_logs

Named = NotebookRun | int | str  # a run, by itself or by its id


class Client:
    """A connection to one server. Defaults: `url` EVALBOARD_URL and `token` EVALBOARD_TOKEN.

    Every method raises WrongUse where what was asked cannot be, and Unreachable where asking again may help; both are
    EvalboardError.
    """

    def __init__(self, url: str = "", token: str = "") -> None:
        arguments = {"EVALBOARD_URL": url, "EVALBOARD_TOKEN": token}
        environment = {**os.environ, **{name: value for name, value in arguments.items() if value}}
        access = find_access(environment)
        self._rest = RestClient(access.url, access.token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._rest.close()

    def suites(self) -> Rows:
        return Rows(self._rest.suites())

    def suite(self, slug: str, *, version: int | None = None) -> Json:
        """Return a suite's newest version, or another."""
        return self._rest.suite(slug, **({} if version is None else {"version": str(version)})).json

    def push_suite(self, document: Mapping[str, Any]) -> Json:
        """Store a suite's next version, or find that its content is stored already."""
        return self._rest.push_suite(document).json

    def baselines(self, suite: str) -> Rows:
        return Rows(self._rest.baselines(suite))

    def set_baseline(self, run: Named, reason: str) -> Json:
        """Make a run the current baseline of its suite, model line and profile."""
        suite = self._rest.run(read_run_id(run)).value.suite.slug
        return self._rest.set_baseline(suite, {"run": read_run_id(run), "reason": reason}).json

    def runs(self, **filters: str) -> Rows:
        """List runs, newest first. Filters: suite, endpoint, status, bucket, label ("branch=main"), date."""
        return Rows(self._rest.runs(**filters))

    def run(self, run: Named) -> NotebookRun:
        return NotebookRun(self._rest.run(read_run_id(run)))

    def create_run(
        self,
        suite: str,
        *,
        endpoint: str,
        profile: str,
        repeats: int = 5,
        seed: int | None = None,
        labels: Mapping[str, str] | None = None,
        model: Mapping[str, str] | None = None,
        priority: str = "",
        key: str = "",
    ) -> NotebookRun:
        """Start a run. With a `key`, the same call within a day returns the run it made before.

        seed: what the seeds of all calls follow from, where the profile samples or the server is external; default:
        the profile's.
        priority: "normal", or "bulk" for what may wait for all that is normal.
        """
        body: Json = {"suite": suite, "endpoint": endpoint, "profile": profile, "repeats": repeats}
        body |= {} if seed is None else {"seed": seed}
        body |= {"priority": priority} if priority else {}
        body |= {"labels": dict(labels or {})} | ({"model": dict(model)} if model else {})
        return NotebookRun(self._rest.create_run(body, key=key or f"evalboard-{uuid.uuid4()}"))

    def wait(self, run: Named, *, give_up_after: float = GIVE_UP_SECONDS) -> NotebookRun:
        """Follow a run to its end, whatever that is: look at `status`. A server that restarts is waited for.

        Raises EvalboardError after `give_up_after` seconds without an answer; the run goes on.
        """
        run_id = read_run_id(run)
        with make_follower() as follower:
            answer = follow(
                lambda: self._rest.run(run_id),
                run_progress,
                follower,
                come_back=f"evalboard wait {run_id}",
                give_up_after=give_up_after,
            )
        return NotebookRun(answer)

    def cases(self, run: Named, **filters: str) -> Rows:
        """List a row for each case over the repeats; scores from 0 to 1.

        Filters: only ("failed", "missing", …), query.
        """
        return Rows(self._rest.cases(read_run_id(run), **filters))

    def responses(self, run: Named, *, case: str = "", repeat: int | None = None) -> Rows:
        """List text, score, reason and provenance by repeat and case. case, repeat: filters."""
        filters = ({"case": case} if case else {}) | ({} if repeat is None else {"repeat": str(repeat)})
        return Rows(self._rest.responses(read_run_id(run), **filters))

    def import_logs(
        self, *files: str | Path, log_format: str = "auto", suite: str = "", scale: str = "", second_of: str = ""
    ) -> list[NotebookRun]:
        """Store the runs of another tool's log, read from its files, or from the logs in folders.

        The same log again gives the runs that are there.

        scale: of scores outside 0 to 1, such as 0..10. second_of: the id of a run whose side this is a second log of.
        """
        given = {"suite": suite, "scale": scale, "second_of": second_of}
        with open_logs([Path(file) for file in files]) as logs:
            sent = [import_log(self._rest, group, log_format=log_format, **given) for group in logs.groups(log_format)]
        return [self.run(run.id) for answer in sent for run in answer.value.runs]

    def compare(
        self, baseline: Named, candidate: Named, *, give_up_after: float = GIVE_UP_SECONDS, **terms: str
    ) -> NotebookComparison:
        """Compare two runs, and wait while workers read their traces. terms: `treatment`, `pair_by`."""
        runs = read_run_id(baseline), read_run_id(candidate)
        with make_follower() as follower:
            answer = follow(
                lambda: self._rest.compare(*runs, **terms),
                comparison_progress,
                follower,
                come_back=f"evalboard compare {runs[0]} {runs[1]}",
                give_up_after=give_up_after,
            )
        return NotebookComparison(answer)

    def compared_cases(self, baseline: Named, candidate: Named, **filters: str) -> Rows:
        """List the pairs of responses that differ, the most severe first.

        filters: cause, changed ("1"), tag, query, …
        """
        return Rows(self._rest.compared_cases(read_run_id(baseline), read_run_id(candidate), **filters))

    def releases(self, **filters: str) -> Rows:
        """List releases, newest first. Filters: suite, verdict, outcome."""
        return Rows(self._rest.releases(**filters))

    def release(self, release: int | str) -> NotebookRelease:
        """Return a release, judged again if its inputs have changed."""
        return NotebookRelease(self._rest.release(str(release)))

    def create_release(
        self,
        candidate: Named,
        *,
        baseline: Named = "current",
        policy: str = "",
        treatment: str = "model",
        pair_by: str = "",
        labels: Mapping[str, str] | None = None,
    ) -> NotebookRelease:
        """Judge a run that has ended against a baseline: a run, or the suite's current one."""
        run_id = read_run_id(candidate)
        gate = {
            "suite": self._rest.run(run_id).value.suite.slug,
            "candidate": run_id,
            "baseline": read_run_id(baseline),
        }
        body: Json = {"gates": [gate], "treatment": treatment, "labels": dict(labels or {})}
        more = {name: value for name, value in (("policy", policy), ("pair_by", pair_by)) if value}
        return NotebookRelease(self._rest.create_release(body | more))
