"""A worker's process that registers as every worker does, claims one shard, says so, and waits until it is ended."""

import sys

import django

django.setup()

from runs.work import claim_shard  # noqa: E402
from worker.runner import Runner  # noqa: E402


def no_engine(spec: object) -> None:
    raise AssertionError("nothing is decoded here")


runner = Runner(pool="default", hardware={"kind": "cpu"}, make_engine=no_engine)
lease = claim_shard(worker=runner.worker)
print(runner.worker.pk, lease.id if lease else 0, flush=True)
sys.stdin.read()
