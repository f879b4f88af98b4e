"""What serves: fingerprints and how two of them differ, and workers."""

from typing import Annotated, Any

from evalboard.contract.base import Contract, Count, Digest, Id, Instant, Number, PageAddress, Share, page_only, says
from evalboard.contract.manifest import ManifestDifference
from evalboard.contract.parts import FingerprintNamed, ModelServed, Seats


class FingerprintRow(FingerprintNamed):
    n_runs: Count
    created_at: Instant


class BucketOfFingerprint(Contract):
    id: Id
    model: ModelServed
    batch_class: str
    n_runs: Count


class Fingerprint(FingerprintRow):
    """With exactly the manifest that its digest covers."""

    manifest: dict[str, Any]
    buckets: tuple[BucketOfFingerprint, ...]


class FieldMoved(Contract):
    field: Annotated[
        str, says(description="path in the manifest, such as `versions.vllm`; lists are compared by column")
    ]
    a: Any
    b: Any


class FingerprintDifference(Contract):
    """What changed from `a` to `b`. Null is unknown, and equal to nothing."""

    a: FingerprintRow
    b: FingerprintRow
    moved: Annotated[
        tuple[FieldMoved, ...], says(description="most important first; including fields known on one side only")
    ]
    n_equal: Count
    n_unknown: Annotated[int, says(minimum=0, description="fields unknown on both sides; not in `n_equal`")]
    url: PageAddress
    fields: ManifestDifference = page_only  # also the values that are equal, and the names of the unknown


class RunLeftAlone(Contract):
    """A run that a worker does not work on, and why."""

    run: Id
    why: str


class ShardHeld(Contract):
    run: Id
    repeat: Number
    first: Count
    last: Count
    attempt: int = page_only
    n_done: int = page_only
    experiment: Id | None = page_only

    @property
    def n_cases(self) -> int:
        return self.last - self.first + 1


class ProcessOfWorker(Contract):
    """The engine process that a worker keeps warm."""

    id: Id
    bucket: Id
    model: str
    fingerprint: FingerprintNamed
    batch_class: str
    started_at: Instant


class SelfTestFinding(Contract):
    # What one operation did in one dtype, over every shape that was tested; None where it could not be tested.
    kernels: str  # plain or invariant
    operation: str
    dtype: str
    is_same: bool | None
    text: str


class SelfTest(Contract):
    id: Id
    at: Instant
    is_invariant: bool
    findings: tuple[SelfTestFinding, ...]


class Certificate(Contract):
    """A determinism probe's result for a worker's node, endpoint and profile (docs/probes.md)."""

    probe: Id
    endpoint: str
    profile: str
    model: str
    fingerprint: Digest
    state: Annotated[
        str,
        says(enum=("valid", "expired", "failed"), description="failed: bits or answers depend on what shares a step"),
    ]
    expired_by: Annotated[
        str | None, says(enum=("node", "model"), description="hardware, driver, versions or weights have changed")
    ]
    seats: Annotated[Number, says(description="the largest measured batch")]
    ruled_out: Annotated[
        Share | None, says(description="a larger share of rounds with other bits is ruled out at 95 %")
    ]
    at: Instant


NEEDY_FIRST = ("silent", "resting", "working", "idle", "stopped")


class Worker(Contract):
    """A worker: its last heartbeat, and its work. `note`: what prevents it from working."""

    id: Id
    name: str
    host: str
    pool: str
    state: Annotated[str, says(enum=("working", "idle", "resting", "silent", "stopped"))]
    hardware: dict[str, Any]
    versions: dict[str, Any]
    fingerprint: Digest | None
    seats: Annotated[Seats | None, says(description="sequences at a time: requested by the profile, and granted")]
    shard: ShardHeld | None
    note: str
    rests_until: Annotated[Instant | None, says(description="set while paused")]
    n_engine_failures: Annotated[int, says(minimum=0, description="in a row")]
    n_fenced: Annotated[int, says(minimum=0, description="refused writes, since another attempt has the shard")]
    self_test: Annotated[SelfTest | None, says(description="the newest of its node: docs/node.md")]
    certificates: Annotated[tuple[Certificate, ...], says(description="its node's newest per endpoint and profile")]
    seen_at: Instant
    started_at: Instant
    process: ProcessOfWorker | None = page_only
    left_alone: RunLeftAlone | None = page_only  # as `note` has it
    seen_seconds: float = page_only  # how long ago, by the clock of the database

    @property
    def urgency(self) -> int:
        """Return the place of its state among those that need attention first."""
        return NEEDY_FIRST.index(self.state)

    @property
    def hardware_label(self) -> str:
        """Return its hardware in one line: "AMD EPYC · AVX512 · 2 cores"."""
        gpus = [gpu["name"] for gpu in self.hardware.get("gpus", [])]
        n_cores = self.hardware.get("n_cores")
        cores = f"{n_cores} core{'' if n_cores == 1 else 's'}" if n_cores else None
        parts = gpus or [self.hardware.get("cpu_model"), self.hardware.get("cpu_isa")]
        return " · ".join(str(part) for part in [*parts, cores] if part)

    @property
    def engine_label(self) -> str:
        """The versions that people ask for first: "vLLM 0.32.0 · torch 2.13.0"."""
        known = {"vLLM": "vllm", "torch": "torch", "CUDA": "cuda"}
        return " · ".join(f"{name} {self.versions[key]}" for name, key in known.items() if self.versions.get(key))
