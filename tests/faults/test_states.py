"""Everything that can happen to a run, in any order, over the services: what has ended stays, and every count holds."""

import os
from collections import Counter
from typing import Any

import pytest
from django.db import transaction
from django.db.models.functions import Now
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from evalboard.core.errors import Conflict, InvalidInput, LeaseLost
from evalboard.core.trace import Failed, Outcome
from runs import run
from runs import work as work_slice
from runs.models import CaseColumns, RepeatScore, ResponseRecord, RunRecord, Shard, TraceBlock
from runs.run import cancel_run
from runs.sweep import reconcile
from runs.work import (
    Lease,
    bind_bucket,
    claim_shard,
    fail_start,
    finish_shard,
    record_outcomes,
    release_shard,
    renew_shard,
)
from tests import build, outcomes
from tests.worker.conftest import ended

IS_SOAK = os.environ.get("EVALBOARD_SOAK") == "1"
N_CASES = 24  # two shards a repeat
ENDED = {*RunRecord.TERMINAL}


class RunMachine(RuleBasedStateMachine):
    """One run, two workers that hold leases for as long as they like, late ones included, and a sweeper."""

    reached: set[str] = set()

    def __init__(self) -> None:
        super().__init__()
        self.savepoint = transaction.atomic()
        self.savepoint.__enter__()
        self.leases: list[Lease] = []
        self.ended: dict[tuple[str, int], str] = {}

    def teardown(self) -> None:
        transaction.set_rollback(True)
        self.savepoint.__exit__(None, None, None)

    @initialize(repeats=st.integers(1, 2))
    def ask(self, repeats: int) -> None:
        build.suite(case_ids=[f"case-{n}" for n in range(N_CASES)])
        self.workers = [build.worker(name) for name in ("first", "second")]
        self.process = build.process(worker=self.workers[0])
        self.run = build.run(repeats=repeats)

    @rule(who=st.integers(0, 1))
    def claim(self, who: int) -> None:
        lease = claim_shard(worker=self.workers[who])
        if lease is not None:
            bind_bucket(run_id=self.run.pk, bucket=self.process.bucket)
            self.leases.append(lease)

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), n=st.integers(1, 12), fails=st.booleans())
    def record(self, data: st.DataObject, n: int, fails: bool) -> None:
        lease = self._any_lease(data)
        shard = Shard.objects.get(pk=lease.id)
        cases = range(shard.first, min(shard.first + n, shard.last + 1))
        found = [Failed(case, "timeout", "It hung.") if fails else outcomes.decoded(case) for case in cases]
        self._try(record_outcomes, lease=lease, process=self.process, outcomes=found)

    @rule(who=st.integers(0, 1), chance=st.integers(1, 3), n=st.integers(1, 4))
    def work(self, who: int, chance: int, n: int) -> None:
        """Some shards from their claim to their end, with whatever an earlier attempt left of them."""
        for _ in range(n):
            self.claim(who)
            if not self.leases:
                return
            lease = self.leases[-1]
            shard = Shard.objects.get(pk=lease.id)
            found: list[Outcome] = [outcomes.decoded(case) for case in range(shard.first, shard.last + 1)]
            if chance == 3:
                found[0] = Failed(shard.first, "timeout", "It hung.")
            if self._try(record_outcomes, lease=lease, process=self.process, outcomes=found):
                self._try(finish_shard, lease=lease)

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def finish(self, data: st.DataObject) -> None:
        self._try(finish_shard, lease=self._any_lease(data))

    @precondition(lambda self: self.leases)
    @rule(data=st.data(), is_crash=st.booleans())
    def release(self, data: st.DataObject, is_crash: bool) -> None:
        release_shard(lease=self._any_lease(data), reason="The test says so.", is_crash=is_crash)

    @rule(n=st.integers(1, 3))
    def fail_to_start(self, n: int) -> None:
        for _ in range(n):
            self.claim(0)
            if self.leases:
                fail_start(lease=self.leases[-1], reason="The engine did not start.")
            Shard.objects.update(next_at=Now())

    @precondition(lambda self: self.leases)
    @rule(data=st.data())
    def cancel_shard(self, data: st.DataObject) -> None:
        """As a worker does that learns of it from a heartbeat."""
        lease = self._any_lease(data)
        if renew_shard(lease=lease).is_cancel_wanted:
            work_slice.cancel_shard(lease=lease)

    @rule()
    def expire(self) -> None:
        Shard.objects.filter(status="running").update(lease_until=Now() - build.timedelta(seconds=1))

    @rule()
    def sweep(self) -> None:
        reconcile()

    @rule(chance=st.integers(1, 3))
    def cancel(self, chance: int) -> None:
        if chance == 3:  # rarely, else hardly a run would end in another way
            self._try(cancel_run, run_id=self.run.pk)

    @rule(n=st.integers(1, 2))
    def add_repeats(self, n: int) -> None:
        if self._try(run.add_repeats, run_id=self.run.pk, n=n):
            self.ended.pop(("run", self.run.pk), None)  # the one way back to work

    @invariant()
    def what_has_ended_stays_as_it_ended(self) -> None:
        if not hasattr(self, "run"):
            return
        self.run.refresh_from_db()
        now = {("repeat", row.pk): row.status for row in self.run.repeats.all()}
        now |= {("shard", row.pk): row.status for row in Shard.objects.all()}
        now |= {("run", self.run.pk): self.run.status}
        for key, status in self.ended.items():
            assert now[key] == status, key
        self.ended |= {key: status for key, status in now.items() if status in ENDED}

    @invariant()
    def every_count_holds(self) -> None:
        stored = Counter(ResponseRecord.objects.values_list("repeat", "case_index"))
        assert set(stored.values()) <= {1}
        for shard in Shard.objects.all():
            assert shard.n_done == sum(stored[shard.repeat_id, case] for case in range(shard.first, shard.last + 1))
            if shard.status == Shard.Status.FINISHED:
                assert shard.n_done == shard.n_cases
        assert not TraceBlock.objects.filter(responses=None).exists()

    @invariant()
    def a_run_that_ended_has_nothing_open(self) -> None:
        if not hasattr(self, "run") or not ended(self.run):
            return
        self.reached.add(self.run.status)
        assert not Shard.objects.open().exists()
        n_repeats = self.run.repeats.count()
        assert CaseColumns.objects.count() == RepeatScore.objects.count() == n_repeats
        n_stored = ResponseRecord.objects.filter(error_code="").count()
        if self.run.status == RunRecord.Status.FINISHED:
            assert n_stored == n_repeats * N_CASES
        else:
            assert n_stored < n_repeats * N_CASES or self.run.is_cancel_wanted

    def _any_lease(self, data: st.DataObject) -> Lease:
        """Any lease that was ever given: most of them are lost by now."""
        return data.draw(st.sampled_from(self.leases))

    @staticmethod
    def _try(step: Any, **arguments: Any) -> bool:
        try:
            step(**arguments)
        except (Conflict, InvalidInput, LeaseLost):
            return False
        return True


@pytest.mark.drawn
@pytest.mark.django_db
def test_nothing_that_has_ended_changes_and_every_count_holds() -> None:
    """R23: cancel, claim, record, finish, release, lose, sweep and add repeats in any order."""
    bounds = settings(
        max_examples=300 if IS_SOAK else 9,  # 300 take 260 s where the loop of tools/test.py takes 0.2 s
        stateful_step_count=25,
        deadline=None,
        derandomize=not IS_SOAK,
        database=None,
        phases=[Phase.generate],  # shrinking may take minutes; the failing steps are printed as they are
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(RunMachine, settings=bounds)
    assert RunMachine.reached == ENDED, "some end of a run was never reached"
