"""The one engine that a worker keeps warm between shards, and the record of what it attested."""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings

from evalboard.calling.calls import EngineFailure
from evalboard.contract.catalogue import is_in_repo, name_adapted
from evalboard.core import digest
from evalboard.core.profile import EnginePlan, ProfileSettings, parse_profile, plan_engine
from evalboard.core.trace import pack_vocabulary
from runs.models import EngineProcess, WorkerRecord
from runs.work import Serving, ShardWork, close_engine_process, open_engine_process, record_self_check, store_vocabulary
from worker.engines.base import Engine, EngineSpec, Started
from worker.engines.named_secrets import read_secret
from worker.engines.vllm import BUCKET

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """A started engine with its record and the plan that it was started by."""

    engine: Engine
    process: EngineProcess
    plan: EnginePlan


class EngineSession:
    """Starts, checks and ends engines; at most one lives at a time."""

    def __init__(
        self, *, worker: WorkerRecord, hardware: Mapping[str, Any], make_engine: Callable[[EngineSpec], Engine]
    ) -> None:
        self._worker = worker
        self._hardware = hardware
        self._make_engine = make_engine
        self._opened: Opened | None = None
        self._key = ""
        self._adapter = ""  # that the warm engine decodes with
        self._checked_at = 0.0
        self._served: dict[int, set[int]] = {}
        self._starting: Engine | None = None
        self.n_starts = 0  # of engines that came up

    @property
    def is_open(self) -> bool:
        """Return whether an engine is warm."""
        return self._opened is not None

    def open_for(self, work: ShardWork) -> Opened:
        """Return the engine for this shard, started afresh where the warm one may not serve it.

        Raises EngineFailure where it does not start or dies in its self-check.
        """
        if self._must_be_fresh(work):
            self.close()
        opened = self.open_apart(work.serving)
        self._served.setdefault(work.run_id, set()).add(work.repeat_index)
        return opened

    def open_apart(
        self, serving: Serving, *, decoding: ProfileSettings | None = None, dtype: str | None = None
    ) -> Opened:
        """Return the engine for a replay or a probe. Raises EngineFailure as `open_for` does.

        decoding, dtype: other ones than the profile's and the endpoint's.
        """
        plan = plan_engine(
            decoding or parse_profile(serving.profile_settings),
            self._hardware,
            dtype=dtype or serving.endpoint.dtype,
            quantization=serving.endpoint.quantization or None,
            max_model_len=serving.endpoint.max_model_len or 0,
            max_tokens=serving.max_tokens,
            stop=serving.stop,
            sizes=serving.endpoint.sizes,
        )
        base = [serving.model_path, serving.model_repo, serving.model_revision]
        adapter = serving.model_adapter
        # An engine gets the node's AWS credentials at its start, or never.
        key = digest.digest_json([plan.digest, *base, bool(adapter), adapter.startswith(BUCKET)])
        if self._opened is not None and key != self._key:
            self.close()
        if self._opened is not None and adapter != self._adapter:
            self._adapt(plan, serving)
        if self._opened is not None and time.monotonic() - self._checked_at > settings.SELF_CHECK_SECONDS:
            self._check_or_discard()
        if self._opened is None:
            self._opened, self._key = self._start(plan, serving), key
            self._begin(self._opened, serving)
        return replace(self._opened, plan=plan)  # a warm engine serves other sampling settings as well

    def abort(self) -> None:
        """Make a decode or start that is under way end early; callable from another thread."""
        opened = self._opened  # read once: the other thread may let it go meanwhile
        engine = opened.engine if opened is not None else self._starting
        if engine is not None:
            engine.abort()

    def close(self) -> None:
        """Stop the engine after a last self-check that vouches for its answers."""
        if self._opened is not None:
            self._check_or_discard()
            self.discard()

    def discard(self) -> None:
        """Stop the engine without a check: it has died, hangs, or is not needed."""
        if self._opened is None:
            return
        opened, self._opened, self._served = self._opened, None, {}
        opened.engine.stop()
        close_engine_process(process=opened.process, last_words=opened.engine.last_words())

    def _must_be_fresh(self, work: ShardWork) -> bool:
        """Return whether the run needs a new process, since repeats must include an engine start.

        One process never serves both halves of a run's repeats, and of a restarted run never two repeats.
        """
        if work.is_restarted:
            return bool(self._served.get(work.run_id, set()) - {work.repeat_index})
        half = (work.n_repeats + 1) // 2
        is_late = work.repeat_index > half
        return any((index > half) != is_late for index in self._served.get(work.run_id, ()))

    def _start(self, plan: EnginePlan, serving: Serving) -> Opened:
        model = serving.model_path or serving.model_repo
        spec = EngineSpec(
            model=model,
            revision=serving.model_revision or None,
            plan=plan,
            token=_hub_token(serving),
            adapter=serving.model_adapter,
        )
        engine = self._starting = self._make_engine(spec)
        try:
            started = engine.start()
            self.n_starts += 1
            process = self._record(started, plan, serving)
        except BaseException:
            engine.stop()  # or it would hold the machine's memory against the next one
            raise
        finally:
            self._starting = None
        return Opened(engine=engine, process=process, plan=plan)

    def _adapt(self, plan: EnginePlan, serving: Serving) -> None:
        """Exchange the warm engine's adapter, or end it where the other adapter needs an engine of its own.

        Each adapter has an engine process on record, with self-checks of its own: an adapter is another model.
        """
        self._check_or_discard()
        if (opened := self._opened) is None:
            return
        try:
            started = opened.engine.adapt(serving.model_adapter, _hub_token(serving))
        except EngineFailure:
            self.discard()
            raise
        if started is None:
            self.discard()  # what it decoded is vouched for by the check above
            return
        close_engine_process(process=opened.process, last_words="")
        try:
            self._opened = replace(opened, process=self._record(started, plan, serving), plan=plan)
        except BaseException:
            self.discard()
            raise
        self._begin(self._opened, serving)

    def _record(self, started: Started, plan: EnginePlan, serving: Serving) -> EngineProcess:
        return open_engine_process(
            worker=self._worker,
            manifest=started.manifest,
            wanted_pins=plan.pins,
            batch_class=plan.batch_class,
            line=serving.endpoint.line,
            model_name=name_adapted(serving.model_path or serving.model_repo, serving.model_adapter),
            start_seconds=started.seconds,
        )

    def _begin(self, opened: Opened, serving: Serving) -> None:
        """Keep the vocabulary and make the first self-check, without which nothing may be decoded."""
        self._adapter = serving.model_adapter
        try:
            self._keep_vocabulary(opened)
            self._check()
        except BaseException:
            self.discard()
            raise

    @staticmethod
    def _keep_vocabulary(opened: Opened) -> None:
        if opened.process.vocabulary_id is not None:
            return
        listing = opened.engine.vocabulary()
        store_vocabulary(
            process=opened.process,
            digest=listing.digest,
            n_tokens=len(listing.tokens),
            data=pack_vocabulary(listing.tokens, end_ids=listing.end_ids),
        )

    def _check_or_discard(self) -> None:
        """Discard an engine that died or changed since its last shard, so that the next gets a new one."""
        try:
            if not self._check():
                self.discard()
        except EngineFailure as failure:
            logger.warning("The engine did not live to its self-check: %s", failure)
            self.discard()

    def _check(self) -> bool:
        """Return whether the engine still gives the bits of its first self-check."""
        assert self._opened is not None  # noqa: S101  for the type checker; callers have one open
        same = record_self_check(process=self._opened.process, digest=self._opened.engine.self_check())
        if not same:
            logger.error("The engine's self-check no longer gives the same bits")
        self._checked_at = time.monotonic()
        return same


def _hub_token(serving: Serving) -> str:
    """Return the token for the hub of the model or its adapter, "" without one. Raises KeyUnreadable."""
    is_of_hub = bool(serving.model_repo) or is_in_repo(serving.model_adapter)
    return read_secret(serving.endpoint.auth) if is_of_hub and serving.endpoint.auth else ""
