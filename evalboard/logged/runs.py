"""A logged run without its answers: its settings, the cases of each repeat, and how it ended."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalboard.core.digest import canonical_json, digest_json
from evalboard.core.document import storable
from evalboard.core.errors import InvalidInput
from evalboard.core.profile import OBSERVED
from evalboard.importers.files import LogFile
from evalboard.importers.records import LoggedResponse, LoggedRun
from evalboard.logged.suites import MAX_SLUG, slug_of, stops_of

MAX_REPEATS = 100
PROFILE = "imported"
PROMPT_FILTERED = "prompt_filtered"  # the code of a response whose prompt the provider's filter refused
NOT_IN_LOG = "not_in_log"  # the code of a response that the log lacks: missing, and no error of anybody
REALS = ("temperature", "top_p", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty")
MAX_SETTINGS, MAX_SETTING_CHARS = 40, 200


def digest_of_files(files: Sequence[LogFile], format_name: str, *, suite: str | None = None, scale: str = "") -> str:
    """Return what an import is known by: the content of its files, and how they are read."""
    content = {"files": sorted(file.sha256 for file in files), "format": format_name, "suite": suite}
    return digest_json(content | ({"scale": scale} if scale else {}))


def name_endpoints(model_name: str, model_digest: str) -> tuple[str, str]:
    """Return the name of where a model answers according to logs, and another where that is taken."""
    slug = slug_of(f"imported {model_name}")
    return slug, f"{slug[: MAX_SLUG - 9]}-{model_digest[:8]}"


def make_profile(logged: LoggedRun) -> dict[str, Any]:
    """Return the settings of the profile that represents a log's sampling."""
    return {"batch_class": OBSERVED, "sampling": _sampling(logged.sampling)}


def list_sent(logged: LoggedRun) -> Iterator[tuple[str, int | None, str]]:
    """Return (case, seed sent or None, call or "") of each answer."""
    return ((each.case_id, each.seed, each.request_id) for each in logged.responses if not each.error)


def refuse_unfit(logged: LoggedRun, suite: str | None = None) -> None:
    """Raise InvalidInput if a log's responses and cases do not belong together. suite: the named one."""
    fields: dict[str, str] = {}
    if suite is not None and not logged.has_texts:
        fields["suite"] = "The log has token ids and no text, which no suite’s scorer can read. Leave the suite out."
    twice = [case_id for case_id, n in Counter(case.id for case in logged.cases).items() if n > 1]
    if twice:
        fields[f"cases.{twice[0]}"] = "It is in the log as two cases."
    seen = Counter((each.case_id, each.repeat) for each in logged.responses)
    if again := [key for key, n in seen.items() if n > 1]:
        fields[f"cases.{again[0][0]}"] = f"Has more than one response in repeat {again[0][1]}."
    known = {case.id for case in logged.cases}
    if strangers := [case_id for case_id, _ in seen if case_id not in known]:
        fields[f"cases.{strangers[0]}"] = "Has a response and is no case of the log."
    if any(not 1 <= repeat <= MAX_REPEATS for _, repeat in seen):
        fields["repeats"] = f"A run has the repeats 1 to {MAX_REPEATS}, and the log has others."
    if not logged.cases:
        fields["cases"] = "The log holds none."
    if fields:
        raise InvalidInput("The log cannot be stored.", fields=fields)


def choose_cases(logged: LoggedRun, indexes: Mapping[str, int], n_cases: int) -> list[NDArray[np.bool_]]:
    """Return bool[n_cases] for each repeat: its cases. indexes: of the cases, by id."""
    answers = logged.count_answers()
    n_wanted = np.ones(n_cases, np.int64)
    n_wanted[[indexes[case_id] for case_id in answers]] = list(answers.values())
    if logged.n_repeats:
        n_wanted[:] = n_wanted.max()
    return [n_wanted >= index for index in range(1, int(n_wanted.max()) + 1)]


def end_repeat(logged: LoggedRun, n_missing: int) -> str:
    """Return how a repeat ended, by its number of missing responses."""
    if logged.status in ("failed", "cancelled"):
        return logged.status
    return "incomplete" if n_missing else "finished"


def end_run(logged: LoggedRun, repeats: Sequence[str]) -> str:
    """Return how a run ended: one that its tool ended well is incomplete all the same where a repeat is."""
    is_whole = all(status == "finished" for status in repeats)
    return logged.status if logged.status != "finished" or is_whole else "incomplete"


def why_missing(response: LoggedResponse | None) -> tuple[str, str]:
    """Return code and detail of a response that has no answer."""
    if response is None:
        return NOT_IN_LOG, ""
    return PROMPT_FILTERED if response.is_prompt_filtered else "source_error", storable(response.error)


def _sampling(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a profile can store: plain values, real numbers as floats."""
    plain: dict[str, Any] = {}
    for name, value in sorted(sent.items())[:MAX_SETTINGS]:
        if isinstance(value, dict | list) and name != "stop":  # as of a schema
            written = canonical_json(value).decode()
            value = written if len(written) <= MAX_SETTING_CHARS else digest_json(value)
        if isinstance(value, str | bool) or _is_finite(value):
            plain[storable(name)[:80]] = storable(value)[:MAX_SETTING_CHARS] if isinstance(value, str) else value
    plain |= {name: float(plain[name]) for name in REALS if _is_finite(plain.get(name))}
    plain.pop("stop", None)
    stops = [storable(text) for text in stops_of(sent)]
    return plain | ({"stop": stops} if stops else {})


def _is_finite(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) < 2**63 and math.isfinite(value)
