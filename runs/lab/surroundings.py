"""What the installation has for an experiment."""

from collections.abc import Iterable

from django.db.models import QuerySet

from evalboard.core import scoring
from evalboard.core.lab import Choice, Surroundings
from evalboard.core.profile import NO_ENGINE, SIZES
from runs.models import CHECKPOINT, EndpointRecord, ProfileRecord, RunRecord, SuiteVersionRecord, WorkerRecord
from runs.pairs import draws_of
from runs.work.workers import able

GATEWAYS_READ = 3
AVX512 = "avx512f"  # as Linux names the flag


def read_surroundings(
    version: SuiteVersionRecord, endpoint: EndpointRecord, profile: ProfileRecord, *, temperature: float | None
) -> Surroundings:
    """Read what is available around an endpoint. A gateway with a bypass is compared with it, as routing.

    temperature: for the sampler's condition; None: that of the newest sampled run of the suite.
    """
    base = endpoint.bypass or endpoint
    workers = _workers(base.pool)
    return Surroundings(
        endpoint=base.slug,
        settings=profile.settings,
        is_remote=base.is_remote,
        dtype=base.dtype,
        dtypes=tuple(Choice(each.slug, each.dtype) for each in _same_weights(base)),
        gateways=_gateways(endpoint, base),
        temperature=_drawn_at(version) if temperature is None else temperature,
        hardware=frozenset(str(worker.hardware.get("kind")) for worker in workers),
        n_gpus=min((len(worker.hardware.get("gpus", ())) for worker in workers), default=0),
        has_avx512=all(AVX512 in worker.hardware.get("cpu_flags", ()) for worker in workers),
        n_cases=version.n_cases,
        is_recorded=not scoring.scores_here(version.scorer.spec),
        is_judged=scoring.is_judged(version.scorer.spec),
        is_spread=base.sizes != (1, 1),
    )


def _workers(pool: str) -> list[WorkerRecord]:
    """The pool's living workers that have an engine; while there are none, the one that was seen last."""
    with_engine = WorkerRecord.objects.filter(pool=pool).exclude(hardware__contains={"kind": NO_ENGINE})
    return list(able(pool)) or list(with_engine.order_by("-seen_at")[:1])


def _same_weights(base: EndpointRecord) -> QuerySet[EndpointRecord]:
    names = ("engine", *CHECKPOINT, "quantization", "max_model_len", "pool", *SIZES)
    same = {name: getattr(base, name) for name in names}
    return EndpointRecord.objects.filter(**same).exclude(dtype=base.dtype).order_by("dtype", "id").distinct("dtype")


def _gateways(endpoint: EndpointRecord, base: EndpointRecord) -> tuple[str, ...]:
    """Return the slugs of gateways to the base: the named one, or all that name it as bypass or reference."""
    if endpoint != base:
        return (endpoint.slug,)
    leading: Iterable[EndpointRecord] = EndpointRecord.objects.filter(bypass=base) | EndpointRecord.objects.filter(
        reference=base
    )
    return tuple(sorted(each.slug for each in leading))[:GATEWAYS_READ]


def _drawn_at(version: SuiteVersionRecord) -> float | None:
    newest = (
        RunRecord.objects.filter(suite_version__suite=version.suite_id, profile__settings__sampling__temperature__gt=0)
        .select_related("profile")
        .order_by("-id")
        .first()
    )
    return None if newest is None else draws_of(newest).temperature
