"""One server, one token, and a method for each call that people make from a notebook."""

import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from evalboard.cli import client as rest
from evalboard.cli import place
from evalboard.cli.patience import GIVE_UP_SECONDS, follow
from evalboard.cli.progress import follower
from evalboard.client.answers import Comparison, Release, Run, id_of
from evalboard.client.rows import Rows

Json = dict[str, Any]
Named = Run | int | str  # a run, by itself or by its id


class Client:
    """Talks to one server. `url` and `token` are EVALBOARD_URL and EVALBOARD_TOKEN where they are not given.

    Every method raises WrongUse where what was asked cannot be, and Unreachable where asking again may help; both are
    EvalboardError.
    """

    def __init__(self, url: str = "", token: str = "") -> None:
        given = {"EVALBOARD_URL": url, "EVALBOARD_TOKEN": token}
        self._rest = rest.Client(place.find({**os.environ, **{name: value for name, value in given.items() if value}}))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._rest.close()

    def suites(self) -> Rows:
        return Rows(self._rest.suites())

    def suite(self, slug: str, *, version: int | None = None) -> Json:
        """A suite's newest version, or another."""
        return self._rest.suite(slug, **({} if version is None else {"version": str(version)}))

    def push_suite(self, document: Mapping[str, Any]) -> Json:
        """Store a suite's next version, or find that its content is stored already."""
        return self._rest.push_suite(document).json

    def baselines(self, suite: str) -> Rows:
        return Rows(self._rest.baselines(suite))

    def set_baseline(self, run: Named, reason: str) -> Json:
        """Make a run the current baseline of its suite, model line and profile."""
        suite = self._rest.run(id_of(run)).suite
        return self._rest.set_baseline(suite, {"run": id_of(run), "reason": reason})

    def runs(self, **filters: str) -> Rows:
        """Runs, newest first. Filters: suite, endpoint, status, bucket, label ("branch=main"), date ("2026-11-20")."""
        return Rows(self._rest.runs(**filters))

    def run(self, run: Named) -> Run:
        return Run(self._rest.run(id_of(run)).json)

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
        key: str = "",
    ) -> Run:
        """Start a run. With a `key` of the caller's, the same call within a day finds the run that it made before.

        seed: what the seeds of all calls follow from where the profile samples; the profile's without one.
        """
        body: Json = {"suite": suite, "endpoint": endpoint, "profile": profile, "repeats": repeats}
        body |= {} if seed is None else {"seed": seed}
        body |= {"labels": dict(labels or {})} | ({"model": dict(model)} if model else {})
        return Run(self._rest.create_run(body, key=key or f"evalboard-{uuid.uuid4()}").json)

    def wait(self, run: Named, *, give_up_after: float = GIVE_UP_SECONDS) -> Run:
        """Follow a run to its end, whatever that is: look at `status`. A server that restarts is waited for.

        Raises EvalboardError after `give_up_after` seconds without an answer; the run goes on.
        """
        run_id = id_of(run)
        with follower() as told:
            again = f"evalboard wait {run_id}"
            return follow(lambda: self.run(run_id), told, come_back=again, give_up_after=give_up_after)

    def cases(self, run: Named, **filters: str) -> Rows:
        """A row for each case over the repeats; scores from 0 to 1. Filters: only ("failed", "missing", …), query."""
        return Rows(self._rest.cases(id_of(run), **filters))

    def responses(self, run: Named, *, case: str = "", repeat: int | None = None) -> Rows:
        """Text, score, reason and provenance by repeat and case; of one case or one repeat where given."""
        filters = ({"case": case} if case else {}) | ({} if repeat is None else {"repeat": str(repeat)})
        return Rows(self._rest.responses(id_of(run), **filters))

    def import_logs(self, *files: str | Path, log_format: str = "auto", suite: str = "") -> list[Run]:
        """The runs of another tool's log, read from its files; the same log again gives those that are there."""
        paths = [Path(file) for file in files]
        found = self._rest.import_logs(paths, log_format=log_format, suite=suite, tell=lambda _: None)
        return [self.run(run.id) for run in found.runs]

    def compare(self, baseline: Named, candidate: Named, *, give_up_after: float = GIVE_UP_SECONDS) -> Comparison:
        """Two runs compared; waits where workers must read their traces first."""
        runs = id_of(baseline), id_of(candidate)
        with follower() as told:
            again = f"evalboard compare {runs[0]} {runs[1]}"
            return follow(
                lambda: Comparison(self._rest.compare(*runs).json), told, come_back=again, give_up_after=give_up_after
            )

    def compared_cases(self, baseline: Named, candidate: Named, **filters: str) -> Rows:
        """The pairs of responses that differ, the gravest first. Filters: cause, changed ("1"), tag, query, …"""
        return Rows(self._rest.compared_cases(id_of(baseline), id_of(candidate), **filters))

    def releases(self, **filters: str) -> Rows:
        """Releases, newest first. Filters: suite, verdict, outcome."""
        return Rows(self._rest.releases(**filters))

    def release(self, release: int | str) -> Release:
        """A release, decided anew where what it rests on has changed."""
        return Release(self._rest.release(str(release)).json)

    def create_release(
        self,
        candidate: Named,
        *,
        baseline: Named = "current",
        policy: str = "",
        treatment: str = "model",
        labels: Mapping[str, str] | None = None,
    ) -> Release:
        """Judge a run that has ended against a baseline: a run, or the suite's current one."""
        run_id = id_of(candidate)
        gate = {"suite": self._rest.run(run_id).suite, "candidate": run_id, "baseline": id_of(baseline)}
        body: Json = {"gates": [gate], "treatment": treatment, "labels": dict(labels or {})}
        return Release(self._rest.create_release(body | ({"policy": policy} if policy else {})).json)
