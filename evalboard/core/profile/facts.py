"""Make facts of the settings of a run's answers: which values are known to have been in effect."""

from collections.abc import Mapping
from typing import Any

from evalboard.contract.facts import FactSource, FactState, SettingCheck, SettingFact, SettingsSeen
from evalboard.core.profile.draws import UNSHAPED, read_temperature
from evalboard.core.profile.profile import WHERE_HONOURED, decide_logprobs, is_unsent

# Settings that decide the next token. One that is not known is a fact too.
DECIDING = (
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "repetition_penalty",
    "presence_penalty",
    "frequency_penalty",
)
# What makes no other distribution, or only says how much is reported.
NEVER_COMPARED = frozenset({"seed", "logprobs"})
# Values that ask an external server for nothing, so that it changes nothing where they are ignored.
NEUTRAL = {**UNSHAPED, "ignore_eos": (False,), "skip_special_tokens": (True,)}
# From so many answers, and so large a part of them, that hold a token below the most likely one, a run was not greedy.
MIN_NOT_GREEDY, MIN_NOT_GREEDY_PERCENT = 3, 1


def list_setting_facts(
    wanted: Mapping[str, Any], *, is_external: bool, is_logged: bool, seen: SettingsSeen | None
) -> tuple[SettingFact, ...]:
    """Return a fact for each of DECIDING, in order, then for every other requested setting by name.

    wanted: of the profile, or what a log says. is_external: an external server or a log gave the answers; is_logged: a
    log did. seen: what the answers and an external server's calls and checks showed, None before the run has ended.
    """
    names = (*DECIDING, *sorted({*wanted} - {*DECIDING}))
    if is_logged:
        facts = [_logged(name, wanted) for name in names]
    elif is_external:
        facts = [_served(name, wanted, seen) for name in names]
    else:
        facts = [_fact(name, wanted, FactSource.ENGINE) for name in names]
    temperature = facts[0]
    if temperature.value == 0 and is_not_greedy(seen):
        facts[0] = _fact("temperature", wanted, FactSource.ANSWERS, state=FactState.CONTRADICTED)
    return tuple(facts)


def is_not_greedy(seen: SettingsSeen | None) -> bool:
    """Tell whether the answers themselves show that a temperature of 0 was not in effect."""
    n = 0 if seen is None else seen.n_not_greedy
    return seen is not None and n >= MIN_NOT_GREEDY and 100 * n >= MIN_NOT_GREEDY_PERCENT * seen.n_listed


def select_compared(facts: tuple[SettingFact, ...]) -> dict[str, Any]:
    """Return the known settings that must be equal on two sides."""
    return {fact.name: fact.value for fact in facts if fact.value is not None and fact.name not in NEVER_COMPARED}


def find_temperature(facts: tuple[SettingFact, ...]) -> float | None:
    """Return the temperature in effect, None if it is not known."""
    return next((read_temperature({fact.name: fact.value}) for fact in facts if fact.name == "temperature"), None)


def list_reshaping(facts: tuple[SettingFact, ...]) -> tuple[str, ...]:
    """Name the settings that make the sampled distribution differ from the one the logprobs describe.

    An engine gives the logprobs before temperature, penalties and cut-offs. A requested setting whose value in effect
    is unknown counts as requested; one that is not in a log counts as neutral.
    """
    given = {fact.name: fact.wanted if fact.value is None else fact.value for fact in facts}
    return tuple(name for name, free in UNSHAPED.items() if given.get(name) is not None and given[name] not in free)


def _logged(name: str, wanted: Mapping[str, Any]) -> SettingFact:
    if wanted.get(name) is None:
        return _fact(name, wanted, FactSource.LOG, state=FactState.UNKNOWN)
    return _fact(name, wanted, FactSource.LOG)


def _served(name: str, wanted: Mapping[str, Any], seen: SettingsSeen | None) -> SettingFact:
    """Return the fact of a setting on an external server. Leaving out a neutral value changes nothing."""
    check = None if seen is None else seen.checked.get(name)
    if wanted.get(name) == WHERE_HONOURED and check is not None:
        decided = decide_logprobs(wanted, are_honoured=check.state == "honoured")
        leads = {"wanted": WHERE_HONOURED, "probe": check.probe, "at": check.at}
        return _served(name, decided, seen).model_copy(update=leads)
    is_neutral = name != "temperature" and wanted.get(name) in (None, *NEUTRAL.get(name, ()))
    if is_unsent(name, wanted.get(name)):
        return _fact(name, wanted, FactSource.REQUEST, state=FactState.UNKNOWN, is_sent=False)
    if seen is None or is_neutral:
        return _fact(name, wanted, FactSource.REQUEST)
    if seen.n_left_out.get(name):
        known = check if check is not None and check.state == "refused" else None
        return _fact(name, wanted, FactSource.REFUSAL, state=FactState.UNKNOWN, is_sent=False, check=known)
    if check is not None and check.state == "ignored":
        return _fact(name, wanted, FactSource.CHECK, state=FactState.CONTRADICTED, check=check)
    return _fact(name, wanted, FactSource.REQUEST)


def _fact(
    name: str,
    wanted: Mapping[str, Any],
    source: FactSource,
    *,
    state: FactState = FactState.KNOWN,
    is_sent: bool = True,
    check: SettingCheck | None = None,
) -> SettingFact:
    value = wanted.get(name)
    return SettingFact(
        name=name,
        wanted=value,
        sent=value if is_sent else None,
        state=state,
        value=value if state == FactState.KNOWN else None,
        source=source,
        probe=None if check is None else check.probe,
        at=None if check is None else check.at,
    )
