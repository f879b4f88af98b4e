"""Prepare a probe of kind `verify`: a run of the endpoint, and runs of known origin.

Existing runs of known origin are reused, since their answers do not change.
"""

from collections.abc import Mapping
from typing import Any

from evalboard.core.errors import InvalidInput
from runs.forced.verification import MAX_ANSWERS
from runs.models import AnswerSet, EndpointRecord, ProbeRecord, RunRecord
from runs.run import create_run, named_endpoint, named_suite_version

LABEL = "probe"  # of a run that one started
Role = AnswerSet.Role
KNOWN = (Role.CONTROL, Role.NUMERICS, Role.PLANTED)


def name_known_answers(target: EndpointRecord, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return a verification's parameters with all named that was not, and the suite's version.

    The suite is that of the endpoint's newest run, the reference the endpoint's own, and numerics another endpoint of
    ours with the reference's model in a second dtype. Raises NotFound for names that do not exist, and InvalidInput
    with fields.
    """
    reference = target.reference if given["reference"] is None else named_endpoint(given["reference"])
    if reference is not None and reference.engine != EndpointRecord.Engine.VLLM:
        words = "It is external, and only your own engine can score given tokens. Name an endpoint with one."
        raise InvalidInput("The probe is not valid.", fields={"parameters.reference": words})
    slugs: dict[str, str | None] = {
        "reference": None if reference is None else reference.slug,
        "numerics": given["numerics"] or _in_second_dtype(reference, apart_from=target),
        "planted": given["planted"] and named_endpoint(given["planted"]).slug,
        "suite": given["suite"] or _newest_suite(target),
    }
    if given["numerics"] is not None:
        named_endpoint(given["numerics"])
    fields = _unnamed(target, slugs)
    if fields:
        named = {f"parameters.{name}": words for name, words in fields.items()}
        raise InvalidInput("The probe is not valid.", fields=named)
    version = named_suite_version(str(slugs["suite"]), None)
    if version.n_cases > MAX_ANSWERS:
        words = f"It has {version.n_cases:,} cases, and a verification reads {MAX_ANSWERS:,} answers at most."
        raise InvalidInput("The probe is not valid.", fields={"parameters.suite": words})
    return {**slugs, "suite_version": version.number}


def begin_verification(probe: ProbeRecord) -> None:
    """Ask for the runs that are not there, the endpoint's first. Raises what `create_run` raises."""
    slugs = {Role.CONTROL: "reference", Role.NUMERICS: "numerics", Role.PLANTED: "planted"}
    AnswerSet.objects.create(probe=probe, role=Role.ENDPOINT, run=ask_run(probe, probe.endpoint.slug))
    for role, name in slugs.items():
        if slug := probe.parameters[name]:
            run = _ended_run(probe, slug) or ask_run(probe, slug)
            AnswerSet.objects.create(probe=probe, role=role, run=run)


def ask_run(probe: ProbeRecord, endpoint: str) -> RunRecord:
    """Ask an endpoint for its answers to the probe's suite. Raises what `create_run` raises."""
    return create_run(
        suite=probe.parameters["suite"],
        suite_version=probe.parameters["suite_version"],
        endpoint=endpoint,
        profile=probe.profile.slug,
        repeats=1,
        labels={LABEL: str(probe.pk)},
        user=probe.created_by,
    )


def _ended_run(probe: ProbeRecord, endpoint: str) -> RunRecord | None:
    """The newest run that answered the same before, whole."""
    same = RunRecord.objects.filter(
        endpoint__slug=endpoint,
        profile=probe.profile_id,
        suite_version__suite__slug=probe.parameters["suite"],
        suite_version__number=probe.parameters["suite_version"],
        status=RunRecord.Status.FINISHED,
        model_override__isnull=True,
        source=None,
        texts_deleted_at=None,
    )
    return same.order_by("-pk").first()


def _newest_suite(target: EndpointRecord) -> str | None:
    """The slug of the suite that an endpoint answered last."""
    runs = RunRecord.objects.filter(endpoint=target, source=None).order_by("-pk")
    return runs.values_list("suite_version__suite__slug", flat=True).first()


def _in_second_dtype(reference: EndpointRecord | None, *, apart_from: EndpointRecord) -> str | None:
    """The slug of another endpoint of ours with the same model in another dtype."""
    if reference is None:
        return None
    same = EndpointRecord.objects.filter(
        engine=EndpointRecord.Engine.VLLM,
        **reference.checkpoint(),
        quantization=reference.quantization,
    )
    others = same.exclude(dtype=reference.dtype).exclude(pk=apart_from.pk).order_by("pk")
    return others.values_list("slug", flat=True).first()


def _unnamed(target: EndpointRecord, slugs: Mapping[str, str | None]) -> dict[str, str]:
    """Return which parameters are missing or duplicated, by name."""
    fields = {}
    if slugs["suite"] is None:
        fields["suite"] = "Name the suite whose prompts are asked: the endpoint has answered none yet."
    if slugs["reference"] is None:
        fields["reference"] = "Name an endpoint of ours that serves the weights: this one names no reference."
    elif slugs["numerics"] is None:
        fields["numerics"] = "Name an endpoint with the reference's weights in a second dtype: none was found."
    taken = {target.slug: "the endpoint in question"}
    for name in ("reference", "numerics", "planted"):
        slug = slugs[name]
        if slug in taken:
            fields[name] = f"It is {taken[slug]}; name another endpoint."
        elif slug is not None:
            taken[slug] = f"given as {name}"
    return fields
