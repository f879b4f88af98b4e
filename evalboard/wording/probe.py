"""The sentence of a probe's finding, made of its state and its numbers (docs/probes.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

from evalboard.core.probes import CANARY_BASELINE, CANARY_MIN_BASELINE, CANARY_WINDOW, SEED_SIGNIFICANT
from evalboard.wording.audit import (
    describe_differs,
    describe_identical,
    describe_nothing_held,
    describe_stacks_differ,
)
from evalboard.wording.capability import GIVEN_BESIDE, LABELS, NOT_HONOURED
from evalboard.wording.determinism import describe_certified, describe_not_certified
from evalboard.wording.messages import Claim, Messages, speak
from evalboard.wording.numbers import capital, counted, fixed, listed, p_value, percent, percent_rounded
from evalboard.wording.vendors import LABELS as VENDOR_LABELS

Numbers = Mapping[str, Any]

SHOWN_NAME = 60  # of what names a backend, an address perhaps
MAX_SHOWN = 4  # stacks


def describe_estimate(n_calls: int, n_tokens: int, cost: str, *, is_search: bool) -> str:
    """Say what a probe would take before it starts. cost: in a sentence, "" without a price."""
    if not n_calls:
        return "It starts runs and forced scorings; their calls depend on the suite."
    what = "It searches for prompts whose first word is split. " if is_search else ""
    money = cost or "The endpoint has no price, so the amount is unknown."
    return f"{what}It makes {counted(n_calls, 'call')} with at most {counted(n_tokens, 'token')} in all. {money}"


def describe_both(own: str, around: str, cost: str, *, bypass: str) -> str:
    """Say what a probe and that of its bypass would take. cost: of both, "" if unknown."""
    return f"{own} The bypass {bypass} is probed too. {around} {cost}".rstrip()


def describe_finding(kind: str, state: str, numbers: Numbers) -> str:
    """Describe a probe's result. state: as `evalboard.core.probes` judged; numbers: its figures."""
    if state == "incomplete":
        return _incomplete(numbers, NEEDED[kind])
    return speak([SENTENCES[kind].claim(state, numbers), *_left_out(numbers["n_failed"], numbers.get("n_marked", 0))])


def describe_batch_comparison(state: str, numbers: Numbers) -> str:
    """Say how two batch probes compare."""
    if state == "incomplete":
        return _incomplete(numbers, "half of the copies of both probes, and a prompt with two copies in each")
    return speak([COMPARISONS.claim(state, numbers), *_left_out(sum(side["n_failed"] for side in numbers["sides"]))])


def _incomplete(numbers: Numbers, needed: str) -> str:
    n_marked, errors = numbers.get("n_marked", 0), numbers["errors"]
    n_answered = numbers["n_calls"] - numbers["n_failed"] - n_marked
    claims = [CALLS.claim("incomplete", n_answered=n_answered, n=numbers["n_calls"], needed=needed)]
    claims += [CALLS.claim("most_often", errors[0])] if errors else []
    return speak([*claims, *_left_out(0, n_marked)])


def _left_out(n_failed: int, n_marked: int = 0) -> list[Claim]:
    """Say how many calls failed, and how many answers of an external server are no clean samples."""
    return [CALLS.claim(code, n=n) for code, n in (("failed", n_failed), ("marked", n_marked)) if n]


CALLS = Messages(
    "calls",
    {
        ("calls", "unknown"): {
            "incomplete": "{n_answered:,} of {n:call} got an answer; a finding needs {needed}.",
            "most_often": "Most often: {error}",
        },
        ("calls", "asserts"): {
            "failed": "{n:call} failed and {n:is|are} left out.",
            "marked": "{n:answer} came from a cache, a fallback or a retry, and {n:is|are} left out.",
        },
    },
)


# --- seed


def _seed_honoured(numbers: Numbers) -> str:
    unit, n_same = numbers["compared"], numbers["n_same"]
    others = f"Other seeds differ after {fixed(numbers['shared_different'], 1)} {unit}s on average"
    if numbers["is_exact"]:
        agreement = f"all {n_same} calls with the same seed gave the same text for each prompt"
        return f"The seed is honoured exactly: {agreement}. {others}."
    n, when = numbers["n_parted"], numbers["median_parted_at"]
    parted = f"{n} of {n_same} calls with the same seed differ, after a median of {when:g} {unit}s"
    return f"The seed is honoured apart from noise: {parted}. {others}."


def _seed_partly_honoured(numbers: Numbers) -> str:
    n_same = numbers["n_same"]
    start = f"The seed has an effect, but {n_same - numbers['n_loyal']} of {n_same} calls ignored it"
    if numbers["p_bucket"] < SEED_SIGNIFICANT:
        [row] = [row for row in numbers["loyal_by_bucket"] if row["bucket"] == numbers["dropping_bucket"]]
        here = f"{row['n_same'] - row['n_loyal']} of them are among the {row['n_same']} calls of one bucket"
        return f"{start}. {here} ({p_value(numbers['p_bucket'])}): that bucket drops the seed."
    at_times = "something between client and sampler drops it at times"
    if numbers["p_early"] < SEED_SIGNIFICANT:
        return f"{start}, more than noise explains ({p_value(numbers['p_early'])}): {at_times}."
    return f"{start} ({p_value(numbers['p_value'])}). Either batch noise is heavy, or {at_times}."


def _seed_ignored(numbers: Numbers) -> str:
    same, different = (fixed(numbers[name], 1) for name in ("shared_same", "shared_different"))
    parts = f"calls with the same seed differ after {same} {numbers['compared']}s on average, others after {different}"
    why = (
        "It is dropped between the client and the sampler. Batch noise in more than 1 token of 10 would look the same."
    )
    return f"The seed is ignored: {parts} ({p_value(numbers['p_value'])}). {why}"


def _same_texts(numbers: Numbers) -> str:
    n, n_pairs = numbers["n_identical_different"], numbers["n_pairs_different"]
    return f"Different seeds give the same text ({n} of {n_pairs} pairs are identical)"


def _seed_greedy(numbers: Numbers) -> str:
    texts = _same_texts(numbers)
    return f"{texts}, the text of temperature 0: the temperature is dropped. The seed was not tested."


def _seed_deterministic(numbers: Numbers) -> str:
    texts = _same_texts(numbers)
    if numbers["n_prompts_greedy"] and not numbers["n_as_greedy"]:
        why = "The temperature arrives, so a cache answers or one seed replaces all."
        return f"{texts}, but temperature 0 gives another. {why}"
    again = "Probe again at a higher temperature; if nothing changes, the temperature is dropped."
    return f"{texts}: greedy decoding, a cache, or a dropped temperature. The seed was not tested. {again}"


def _seed_too_noisy(numbers: Numbers) -> str:
    tried = counted(numbers["n_calls"], "call")
    opening = f"Cannot tell after {tried} whether the seed is honoured ({p_value(numbers['p_value'])})"
    if numbers["n_more_calls"]:
        return f"{opening}. Add {numbers['n_more_calls']} calls: for 10 prompts, 5 with one seed and 5 with others."
    return f"{opening}. Batch noise is too high: probe at a quieter time or with fewer requests at once."


# --- batch, and two of them


def _batch_invariant(numbers: Numbers) -> str:
    n, prompts = numbers["n_copies"], counted(numbers["n_prompts"], "prompt")
    same = "gave the same text" if numbers["n_prompts"] == 1 else "gave the same text for each prompt"
    share = percent_rounded(numbers["certificate"])
    rounds = counted(numbers["n_rounds"], "round")
    limit = f"With 95 % confidence, copies that are sent together differ in at most {share} of rounds ({rounds} tried)"
    return f"All {n:,} copies of {prompts} {same}. {limit}.{_alone(numbers)}"


def _batch_moved(start: str, numbers: Numbers) -> str:
    n, n_unique, prompts = numbers["n_copies"], numbers["n_unique"], counted(numbers["n_prompts"], "prompt")
    n_other = n - numbers["n_modal"]
    share = f"{n_other:,} of {n:,} copies ({percent(n_other / n, 1)}) differ from the most common text of their prompt"
    texts = f"{prompts} gave {n_unique:,} texts; two copies agree {percent(numbers['agreement'], 1)} of the time"
    first = numbers["first_divergences"][0]
    where = f"at position {first['position']} of prompt {first['prompt'] + 1}"
    leave = "It differs" if n_other == 1 else f"{first['n']:,} of the {n_other:,} differ"
    return f"{start}: {share}. {texts}. {leave} first {where}.{_alone(numbers)}"


def _alone(numbers: Numbers) -> str:
    """Warn of copies that shared no step with anything, which leave the finding without meaning."""
    if numbers.get("is_remote"):
        if numbers["n_unique"] == numbers["n_prompts"]:
            return " What else the server decoded is unknown; a cache would look the same."
        return " The server did that by sampling or batching; these answers cannot distinguish the two."
    company = numbers["batch_max"]
    if company is None or not company["n_alone"]:
        return ""
    if company["max"] == 1:
        return " Each was decoded at batch size 1, so this shows that answers repeat and says nothing about batches."
    return f" {company['n_alone']:,} of the {numbers['n_copies']:,} were decoded at batch size 1."


def _alike(numbers: Numbers) -> str:
    return f"No difference: {_agreements(numbers)} {_chance(numbers, 'p_value', 'p_noise', 'p_texts')}."


def _other_noise(numbers: Numbers) -> str:
    first, second = numbers["agreement"]
    which = "first" if first < second else "second"
    return f"The {which} probe is noisier: {_agreements(numbers)} {_chance(numbers, 'p_value', 'p_noise')}."


def _other_texts(numbers: Numbers) -> str:
    n, prompts = numbers["n_other_modal"], counted(numbers["n_prompts"], "prompt")
    modal = f"{n} of {prompts} {'has' if n == 1 else 'have'} another most common text"
    start = f"The texts differ {_chance(numbers, 'p_value', 'p_texts')}"
    return f"{start}: {modal}. {capital(_agreements(numbers))}."


def _agreements(numbers: Numbers) -> str:
    first, second = (percent(each, 1) for each in numbers["agreement"])
    return f"two copies agree {first} of the time in the first probe and {second} in the second"


def _chance(numbers: Numbers, *names: str) -> str:
    return f"({p_value(min(numbers[name] for name in names if numbers[name] is not None))})"


# --- routing


def _routing_one(numbers: Numbers) -> str:
    if numbers.get("is_remote"):
        return _one_backend(numbers)
    stack = _name_stack(numbers, numbers["fingerprints"][0]["fingerprint"])
    since = ", as before" if numbers["last_fingerprint"] else ""
    text = f"One serving stack: {_answers(numbers)} came from {stack}{since}."
    n, share = numbers["n_calls"] - numbers["n_failed"], percent(numbers["certificate"], 0)
    verb = "rules" if n == 1 else "rule"
    limit = f"{counted(n, 'answer')} {verb} out a second backend with over {share} of the requests (95 % confidence)."
    return f"{text} {limit}{_silent(numbers)}"


def _one_backend(numbers: Numbers) -> str:
    name, n = _name_stack(numbers, numbers["fingerprints"][0]["fingerprint"]), numbers["fingerprints"][0]["n"]
    since = ", as before" if numbers["last_fingerprint"] else ""
    share = percent(numbers["certificate"], 1)
    limit = (
        f"{'It rules' if n == 1 else 'They rule'} out a second one with over {share} of the calls (95 % confidence)."
    )
    return f"One backend, as the answers report it: {counted(n, 'answer')} came from {name}{since}. {limit}"


def _name_stack(numbers: Numbers, fingerprint: str) -> str:
    """Return what pages call a stack of ours, or what names an external backend."""
    name: str = numbers.get("stacks", {}).get(fingerprint, fingerprint)
    return name[:SHOWN_NAME]


def _routing_rotated(numbers: Numbers) -> str:
    now, last = numbers["fingerprints"][0]["fingerprint"], numbers["last_fingerprint"]
    turn = f"came from {_name_stack(numbers, now)}, earlier ones from {_name_stack(numbers, last)}"
    expired = "Baselines of the old one have expired."
    if numbers.get("is_remote"):
        return f"Another backend answers: {_n_answers(numbers)} {turn}. {expired}"
    return f"The serving stack has changed: {_answers(numbers)} {turn}. {expired}{_silent(numbers)}"


def _routing_several(numbers: Numbers) -> str:
    known = [row for row in numbers["fingerprints"] if row["fingerprint"] is not None]
    if numbers.get("is_remote"):
        return _several_backends(numbers, known)
    shares = [(_name_stack(numbers, row["fingerprint"]), row["share"]) for row in known[:MAX_SHOWN]]
    parts = [f"{name} ({percent(part, 0)})" for name, part in shares]
    parts += [f"{len(known) - MAX_SHOWN} more"] if len(known) > MAX_SHOWN else []
    parts += [f"unknown ones ({numbers['n_unknown']})"] if numbers["n_unknown"] else []
    origin = f"{_answers(numbers)} came from {listed(parts)}"
    spread = "A run across them is not one measurement."
    return f"{len(known)} serving stacks answer: {origin}. {spread}{_silent(numbers)}"


def _several_backends(numbers: Numbers, known: Sequence[Mapping[str, Any]]) -> str:
    parts = [f"{_name_stack(numbers, row['fingerprint'])} gave {row['n']:,}" for row in known[:MAX_SHOWN]]
    parts += [f"{len(known) - MAX_SHOWN} more gave others"] if len(known) > MAX_SHOWN else []
    n_unknown = numbers["n_unknown"]
    parts += [f"{n_unknown:,} {'names' if n_unknown == 1 else 'name'} no backend"] if n_unknown else []
    by_whom = f"{listed(parts)}, of {_n_answers(numbers)}"
    return f"{len(known)} backends answer: {by_whom}. A run across them is not one measurement."


def _routing_unknown(numbers: Numbers) -> str:
    if numbers.get("is_remote"):
        share = f"{numbers['n_unknown']:,} of {_n_answers(numbers)} name no backend"
        return f"It is unknown who answers: {share}. An unknown backend cannot be compared."
    share = f"{numbers['n_unknown']} of {_answers(numbers)} came without a fingerprint"
    return f"It is unknown who answers: {share}. An unknown stack cannot be compared.{_silent(numbers)}"


def _n_answers(numbers: Numbers) -> str:
    return counted(sum(row["n"] for row in numbers["fingerprints"]), "answer")


def _answers(numbers: Numbers) -> str:
    n = numbers["n_calls"] - numbers["n_failed"]
    return f"{counted(n, 'answer')} of {counted(numbers['n_workers'], 'worker')}"


def _silent(numbers: Numbers) -> str:
    n = numbers["n_workers_silent"]
    return f" {counted(n, 'worker')} gave no answer." if n else ""


# --- canary


def _canary_too_few(numbers: Numbers) -> str:
    n_runs, n_differing = numbers["n_runs"], numbers["n_prompts_differing"]
    needed = (
        f"{CANARY_MIN_BASELINE + CANARY_WINDOW} runs are needed to see a change ({CANARY_MIN_BASELINE} as baseline, "
        f"{CANARY_WINDOW} new)"
    )
    text = f"{needed}: {counted(n_runs, 'run')} so far, {numbers['n_more_runs']} to go."
    if n_runs == 1:
        return text
    if not n_differing:
        return f"{text} All {n_runs} gave the same bits."
    prompts = counted(numbers["n_prompts"], "prompt")
    return f"{text} {n_differing} of {prompts} differ, by up to {numbers['largest_span']:.2g} nats."


def _canary_stable(numbers: Numbers) -> str:
    if numbers["p_value"] is None:
        prompts = counted(numbers["n_prompts"], "prompt")
        return f"No change: {prompts} gave the same bits in all {numbers['n_runs']} runs.{_short(numbers)}"
    by_chance = f"within noise ({_test(numbers)})"
    return f"No change: {_movement(numbers)}, {by_chance}.{_short(numbers)}"


def _canary_changed(numbers: Numbers) -> str:
    if numbers["p_value"] is None:
        n, prompts = numbers["n_prompts_outside"], counted(numbers["n_prompts"], "prompt")
        before = f"The {numbers['n_baseline']} runs before all gave the same bits"
        return f"The answers have changed: {n} of {prompts} differ. {before}.{_short(numbers)}"
    return f"The answers have changed: {_movement(numbers)}, {_effect(numbers)}.{_short(numbers)}"


def _canary_partly_changed(numbers: Numbers) -> str:
    n, limit = numbers["n_outliers"], numbers["outlier_threshold"]
    n_requests, n_before = numbers["n_requests"], numbers["n_baseline"]
    counts = f"{n} of {n_requests} answers are outside the range of the {n_before} runs before"
    if numbers["outliers_by_run"][-1] == n:
        first = "It may be the first after a change: run the canary again."
        return (
            f"The newest run differs: {counts}, all in the newest run. Noise explains at most {limit}. "
            f"{first}{_short(numbers)}"
        )
    share = f"at least about {percent_rounded(numbers['outlier_share'])} of the newest requests"
    return f"Something else answers {share}: {counts}. Noise explains at most {limit}.{_short(numbers)}"


def _canary_drift(numbers: Numbers) -> str:
    why = "New batch shapes or a very small change. If it lasts, ask the operator what changed."
    return f"A small drift: {_movement(numbers)}, {_effect(numbers)}. {why}{_short(numbers)}"


def _movement(numbers: Numbers) -> str:
    return f"logprobs moved by {numbers['statistic']:.2g} nats on average"


def _effect(numbers: Numbers) -> str:
    return f"{fixed(numbers['effect_ratio'], 1)} times the noise between runs ({_test(numbers)})"


def _test(numbers: Numbers) -> str:
    runs = f"the newest {numbers['n_window']} runs against the {numbers['n_baseline']} before"
    return f"{p_value(numbers['p_value'])}; {runs}"


def _short(numbers: Numbers) -> str:
    n = numbers["n_baseline"]
    return f" The baseline has {n} of {CANARY_BASELINE} runs so far." if n < CANARY_BASELINE else ""


# --- capability


def _capability(numbers: Numbers) -> str:
    """Name the parameters that are not honoured, and those that the check could not decide."""
    by_state: dict[str, list[str]] = {}
    for row in numbers["rows"]:
        is_lacking = row["state"] == "ignored" and row["parameter"] in GIVEN_BESIDE
        by_state.setdefault("not_given" if is_lacking else row["state"], []).append(LABELS[row["parameter"]])
    n_honoured, n = len(by_state.get("honoured", ())), len(numbers["rows"])
    parts = [f"{word}: {', '.join(by_state[state])}." for state, word in NOT_HONOURED.items() if state in by_state]
    return " ".join(
        [
            f"{n_honoured} of {n} parameters {'is' if n_honoured == 1 else 'are'} honoured."
            if parts
            else f"All {n} parameters are honoured.",
            *parts,
        ]
    )


# --- vendor


def _vendor(numbers: Numbers) -> str:
    """Name the rows with a fault, and those that the calls could not decide."""
    by_state: dict[str, list[str]] = {}
    for row in numbers["vendor_rows"]:
        by_state.setdefault(row["state"], []).append(VENDOR_LABELS[row["row"]])
    shown = (("fault", "Faults"), ("several", "Several"), ("refused", "Refused"), ("unclear", "Undecided"))
    parts = [f"{word}: {', '.join(by_state[state])}." for state, word in shown if state in by_state]
    n_good = len(by_state.get("good", ()))
    judged = f"{n_good} of {counted(len(numbers['vendor_rows']), 'row')} {'is' if n_good == 1 else 'are'} good."
    return " ".join([judged, *parts, "The vendor card compares the others with a reference."])


# --- border


def _border_found(numbers: Numbers) -> str:
    n_split, n = len(numbers["kept"]), numbers["n_prompts"]
    return (
        f"{n_split} of {counted(n, 'prompt')} have a first word that is split: the commonest has at most "
        f"{percent(max(numbers['top_shares']))}. The next border probe of this endpoint watches them."
    )


def _border_none(numbers: Numbers) -> str:
    return (
        f"Too few of {counted(numbers['n_prompts'], 'prompt')} have a first word that is split, so there is nothing to "
        "watch. Search among prompts of your own, or at a higher temperature."
    )


def _border_too_few(numbers: Numbers) -> str:
    return f"{capital(counted(numbers['n_more'], 'more probe'))} of the same prompts will tell. Schedule one an hour."


def _border_stable(numbers: Numbers) -> str:
    return (
        f"First words are split as in {counted(numbers['n_earlier'], 'earlier probe')}. Without a change, at most 1 of "
        "100 series of 1,000 rounds is called changed."
    )


def _border_changed(numbers: Numbers) -> str:
    window = min(numbers["windows"], key=lambda each: each["p_value"])
    newest = "this probe" if window["n_probes"] == 1 else f"the newest {window['n_probes']} probes"
    return (
        f"First words are split differently in {newest} than in {counted(window['n_earlier'], 'probe')} before: "
        f"{p_value(window['p_value'])} by chance. Another model, or other weights, sampling or template answer."
    )


# What it takes to say anything, as the rest of "a finding needs …".
NEEDED = {
    "seed": "half of the calls, and two of each group for one prompt",
    "batch": "half of the copies, and two of one prompt",
    "routing": "half of the calls",
    "canary": "half of the prompts, with logprobs",
    "determinism": "every call to a worker, under every condition",
    "audit": "half of the calls",
    "vendor": "half of the calls, answered or refused, and at least one of them answered",
    "capability": "half of the calls, answered or refused, and at least one of them answered",
    "border": "half of the calls",
}
SENTENCES: dict[str, Messages] = {
    "seed": Messages(
        "probe_seed",
        {
            ("seed", "asserts"): {"honoured": _seed_honoured},
            ("seed", "denies"): {
                "partly_honoured": _seed_partly_honoured,
                "ignored": _seed_ignored,
                "greedy": _seed_greedy,
                "deterministic": _seed_deterministic,
            },
            ("seed", "unknown"): {"too_noisy": _seed_too_noisy},
        },
    ),
    "batch": Messages(
        "probe_batch",
        {
            ("batch", "asserts"): {"invariant": _batch_invariant},
            ("batch", "denies"): {
                "nearly": lambda numbers: _batch_moved("Nearly invariant", numbers),
                "variant": lambda numbers: _batch_moved(
                    "Copies of the same prompt differ" if numbers.get("is_remote") else "Batching changes answers",
                    numbers,
                ),
            },
        },
    ),
    "routing": Messages(
        "probe_routing",
        {
            ("routing", "asserts"): {"one": _routing_one},
            ("routing", "denies"): {"rotated": _routing_rotated, "several": _routing_several},
            ("routing", "unknown"): {"unknown": _routing_unknown},
        },
    ),
    "canary": Messages(
        "probe_canary",
        {
            ("canary", "unknown"): {"too_few": _canary_too_few},
            ("canary", "asserts"): {"stable": _canary_stable},
            ("canary", "denies"): {
                "changed": _canary_changed,
                "partly_changed": _canary_partly_changed,
                "drift": _canary_drift,
            },
        },
    ),
    "determinism": Messages(
        "probe_determinism",
        {
            ("determinism", "asserts"): {"certified": describe_certified},
            ("determinism", "denies"): {"bits_move": describe_not_certified, "answers_move": describe_not_certified},
        },
    ),
    "audit": Messages(
        "probe_audit",
        {
            ("audit", "asserts"): {"identical": describe_identical},
            ("audit", "denies"): {"differs": describe_differs, "stacks_differ": describe_stacks_differ},
            ("audit", "unknown"): {"nothing_held": describe_nothing_held},
        },
    ),
    "capability": Messages(
        "probe_capability",
        {
            ("capability", "asserts"): {"checked": _capability},
            ("capability", "denies"): {"ignores": _capability},
        },
    ),
    "border": Messages(
        "probe_border",
        {
            ("border", "asserts"): {"found": _border_found, "stable": _border_stable},
            ("border", "denies"): {"changed": _border_changed},
            ("border", "unknown"): {"too_few": _border_too_few, "none_found": _border_none},
        },
    ),
    "vendor": Messages(
        "probe_vendor",
        {
            ("vendor", "asserts"): {"measured": _vendor},
            ("vendor", "denies"): {"faults": _vendor},
        },
    ),
}
COMPARISONS = Messages(
    "probe_comparison",
    {
        ("batch", "asserts"): {"alike": _alike},
        ("batch", "denies"): {"other_noise": _other_noise, "other_texts": _other_texts},
    },
)
