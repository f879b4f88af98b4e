"""Teams' own scorers: which the workers have, and which of them a suite means."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from evalboard.contract.scorer import InstalledScorer
from evalboard.contract.suite import OwnScorer, ScorerOfWorker
from evalboard.core.document import Problems, at
from evalboard.core.errors import NotFound
from evalboard.core.scoring import EXTERNAL, JUDGE
from runs.run import decoding_problems, named_endpoint, newest_profile
from runs.work import living_workers


def own_scorers() -> tuple[OwnScorer, ...]:
    """Return the scorers that living workers have, by name; each digest of a name apart."""
    workers: dict[tuple[str, str, str], list[ScorerOfWorker]] = defaultdict(list)
    for worker in living_workers():
        for each in (InstalledScorer(**facts) for facts in worker.scorers):
            own = ScorerOfWorker(
                worker=worker.name, pool=worker.pool, version=each.version, problem=each.problem or None
            )
            workers[each.kind, each.name, each.digest].append(own)
    return tuple(
        OwnScorer(kind=kind, name=name, digest=digest, workers=tuple(there))
        for (kind, name, digest), there in sorted(workers.items())
    )


def bind_scorer(spec: Any, path: str, problems: Problems, *, known: Sequence[OwnScorer] | None = None) -> Any:
    """Return a spec with the digest of the scorer that its name means today; others as they are.

    A suite is bound to the code that scores it: another parser under the same name is another scorer. A spec that
    names a digest keeps it, whether a worker has it or not. A judge must have an endpoint that its profile can call.
    """
    if isinstance(spec, Mapping) and spec.get("kind") == JUDGE.name:
        for name, text in _judge_problems(spec).items():
            problems.add(at(path, name), text)
        return spec
    if not isinstance(spec, Mapping) or spec.get("kind") not in EXTERNAL or spec.get("digest"):
        return spec
    there = own_scorers() if known is None else known
    named = [each for each in there if (each.kind, each.name) == (spec["kind"], spec.get("name"))]
    alike = [each for each in named if each.digest]
    if named and not alike:
        broken = named[0].workers[0]
        problems.add(at(path, "name"), f"cannot be used on {broken.worker}: {broken.problem}")
    elif len(alike) == 1:
        return {**spec, "digest": alike[0].digest}
    elif alike:
        versions = ", ".join(f"{each.digest[:8]} on {each.workers[0].worker}" for each in alike)
        problems.add(at(path, "digest"), f"is missing, and workers have different code under this name: {versions}")
    elif isinstance(spec.get("name"), str):
        names = ", ".join(sorted({each.name for each in there if each.kind == spec["kind"]})) or "none"
        problems.add(at(path, "name"), f"is a scorer that no worker has; they have: {names}")
    return spec


def bind_document(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a suite document whose scorers are bound. Raises InvalidInput: no worker has one of them."""
    problems, bound = Problems(), dict(document)
    if "scorer" in bound:
        bound["scorer"] = bind_scorer(bound["scorer"], "scorer", problems)
    cases = bound.get("cases")
    if isinstance(cases, list) and any(_is_own(case) for case in cases):
        known = own_scorers()
        bound["cases"] = [
            {**case, "scorer": bind_scorer(case["scorer"], f"cases[{index}].scorer", problems, known=known)}
            if _is_own(case)
            else case
            for index, case in enumerate(cases)
        ]
    problems.raise_if_any("The suite is not valid")
    return bound


def _judge_problems(spec: Mapping[str, Any]) -> dict[str, str]:
    """Return what is wrong with a judge's endpoint and profile, by field."""
    there: dict[str, Any] = {}
    fields: dict[str, str] = {}
    for name, find in (("endpoint", named_endpoint), ("profile", newest_profile)):
        if isinstance(spec.get(name), str):
            try:
                there[name] = find(spec[name])
            except NotFound as unknown:
                fields[name] = f"is unknown: {unknown.detail}"
    return fields or (decoding_problems(there["endpoint"], there["profile"]) if len(there) == 2 else {})


def _is_own(case: Any) -> bool:
    kinds = (*EXTERNAL, JUDGE.name)
    return isinstance(case, Mapping) and isinstance(case.get("scorer"), Mapping) and case["scorer"].get("kind") in kinds
