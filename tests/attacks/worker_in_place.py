"""A worker's process that registers as every worker does, claims one shard, says so, and waits until it is ended."""

import sys

import django

django.setup()

from runs import services  # noqa: E402  settings first
from worker.runner import Runner  # noqa: E402


def no_engine(spec: object) -> None:
    raise AssertionError("nothing is decoded here")


runner = Runner(pool="default", hardware={"kind": "cpu"}, make_engine=no_engine)
lease = services.claim_shard(worker=runner.worker)
print(runner.worker.pk, lease.shard_id if lease else 0, flush=True)
sys.stdin.read()
