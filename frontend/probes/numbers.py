"""The numbers behind a probe's finding, as rows of tables: what each is, its value, what it says."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.contract.parts import FingerprintNamed
from evalboard.contract.probe import ProbeCall
from evalboard.contract.verification import Verification
from evalboard.wording.audit import describe_place, name_worker
from evalboard.wording.capability import STATE_WORDS
from evalboard.wording.determinism import describe_condition
from evalboard.wording.numbers import capital, counted, p_value, points, rounded
from evalboard.wording.vendors import LABELS as VENDOR_LABELS
from evalboard.wording.vendors import STATE_WORDS as VENDOR_STATES
from evalboard.wording.vendors import describe_vendor_row
from evalboard.wording.verification import describe_numbers
from frontend.shell.findings import NumberRow
from frontend.templatetags.numbers import MISSING, NARROW, count, share

Numbers = Mapping[str, Any]
Stacks = Mapping[str, FingerprintNamed]  # by digest


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as text; those of the first column name the row, the others are numbers unless it is of text."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    is_text: bool = False

    @property
    def named_rows(self) -> tuple[tuple[tuple[str, str], ...], ...]:
        """Return the rows with column heads next to the cells, for narrow layouts."""
        return tuple(tuple(zip(self.heads, cells, strict=True)) for cells in self.rows)


def rows(kind: str, numbers: Numbers, stacks: Stacks) -> tuple[NumberRow, ...]:
    """List the figures of a probe; empty if it found nothing, or too little."""
    if not numbers:
        return ()
    n_marked, n_refused = numbers.get("n_marked", 0), numbers.get("n_refused", 0)
    n_answered = numbers["n_calls"] - numbers["n_failed"] - n_marked - n_refused
    known = [NumberRow("calls with an answer", _of(n_answered, numbers["n_calls"]))]
    if n_marked:
        known.append(NumberRow("answers left out", count(n_marked), "from a cache or a fallback, or after another try"))
    if n_refused:
        known.append(NumberRow("calls refused", count(n_refused), "with words, which is an answer to what is asked"))
    if kind == "routing" and numbers.keys() - COUNTS:
        return (*known, *_routing(numbers, stacks))
    return tuple(known + (ROWS[kind](numbers) if numbers.keys() - COUNTS else []))


def verification_rows(judged: Verification) -> tuple[NumberRow, ...]:
    """List the numbers of a verification."""
    return tuple(NumberRow(name, value, MEANS.get(name, "")) for name, value in describe_numbers(judged))


def tables(
    kind: str, numbers: Numbers, prompts: Sequence[str], calls: Sequence[ProbeCall], stacks: Stacks
) -> tuple[Table, ...]:
    """Return the numbers that there are many of, by prompt or by worker."""
    if kind == "routing":
        return _routing_tables(numbers, calls, stacks)
    return tuple(TABLES[kind](numbers, prompts, stacks)) if kind in TABLES and numbers.keys() - COUNTS else ()


# Of a verification, by the names of `wording.verification`.
MEANS = {
    "endpoint": "what is judged",
    "statistic": "of a response; squares show what is rare and large",
    "control": "the reference’s own answers",
    "numerics": "the same weights in a second dtype",
    "planted": "weights that were changed a little",
    "twice numerics": "used where nothing was planted",
    "boundary": "beyond it, answers are nearer to changed weights",
    "above control": "by chance, over reshuffled responses",
    "above numerics": "0.01 or less speaks for another model",
    "below planted": "0.01 or less speaks for the same model",
    "below twice numerics": "0.01 or less speaks for the same model",
}
MAX_PROMPTS = 20
# What a finding of too few answers has, and no more.
COUNTS = frozenset({"n_calls", "n_failed", "n_marked", "n_refused", "errors", "clock_ahead"})


def _seed(numbers: Numbers) -> list[NumberRow]:
    unit = f"{numbers['compared']}s"
    draws = f"{numbers['n_permutations']:,} permutations"
    parted = numbers["median_parted_at"]
    return [
        NumberRow(f"{unit} alike, one seed", plain(numbers["shared_same"], 1), "mean over pairs, from the start"),
        NumberRow(f"{unit} alike, other seeds", plain(numbers["shared_different"], 1), "mean over pairs"),
        NumberRow(
            "effect of the seed", plain(numbers["effect"], 3), "by how much more is alike, as part of the length"
        ),
        NumberRow("p", plain(numbers["p_value"], 3), f"how often chance gives as much, by {draws} within prompts"),
        NumberRow(
            "calls that follow their seed",
            _of(numbers["n_loyal"], numbers["n_same"]),
            "nearer to the others of their seed than 95 % of unseeded pairs are",
        ),
        NumberRow(
            "calls with one seed that parted",
            _of(numbers["n_parted"], numbers["n_same"]),
            "" if parted is None else f"after {parted:g} {unit} in the median",
        ),
        NumberRow(
            "ratio of hazards, ρ",
            f"{plain(numbers['rho'], 2)} [{plain(numbers['rho_low'], 2)}, {plain(numbers['rho_high'], 2)}]",
            "how fast answers part under one seed against other seeds, with its 90 % interval; 1 where it is ignored",
        ),
        NumberRow(
            "identical pairs, other seeds",
            _of(numbers["n_identical_different"], numbers["n_pairs_different"]),
            "half or more: sampling itself does nothing",
        ),
    ]


def _seed_tables(numbers: Numbers, prompts: Sequence[str], stacks: Stacks) -> list[Table]:
    heads = ("Prompt", "Texts, one seed", "Alike", "Texts, other seeds", "Alike")
    each = tuple(
        (
            prompt_name(row["prompt"], prompts),
            _of(row["n_distinct_same"], row["n_same"]),
            plain(row["shared_same"], 1),
            _of(row["n_distinct_different"], row["n_different"]),
            plain(row["shared_different"], 1),
        )
        for row in numbers["prompts"]
    )
    by_prompt = Table(f"By prompt; alike in {numbers['compared']}s", heads, each)
    buckets = numbers["loyal_by_bucket"]
    if len(buckets) < 2:
        return [by_prompt]
    loyal = tuple((str(row["bucket"] or "not known"), _of(row["n_loyal"], row["n_same"])) for row in buckets)
    return [by_prompt, Table("By bucket", ("Bucket", "Calls that follow their seed"), loyal)]


def _batch(numbers: Numbers) -> list[NumberRow]:
    n, company = numbers["n_copies"], numbers["batch_max"]
    figures = [
        NumberRow(
            "texts", _of(numbers["n_unique"], n), f"of {count(numbers['n_prompts'])} prompts; grows with the copies"
        ),
        NumberRow("copies with the most common text", _of(numbers["n_modal"], n), share(numbers["modal_share"])),
        NumberRow(
            "pair agreement, A",
            plain(numbers["agreement"], 4),
            "the chance that two copies agree; does not depend on their number: compare and trend this one",
        ),
        NumberRow("entropy, bits", plain(numbers["entropy_bits"], 3), "biased low where copies are few"),
    ]
    if numbers["certificate"] is not None:
        limit = f"under{NARROW}{100 * numbers['certificate']:.2g}{NARROW}%"
        figures.append(NumberRow("rounds that may still differ", limit, "95 % sure, on these prompts under this load"))
    if company is not None:
        least, most = count(company["min"]), count(company["max"])
        sizes = least if least == most else f"{least}–{most}"
        alone = f"in the median {company['median']:g}; {count(company['n_alone'])} copies were alone"
        figures.append(NumberRow("requests in a step", sizes, alone))
    return figures


def _batch_tables(numbers: Numbers, prompts: Sequence[str], stacks: Stacks) -> list[Table]:
    heads = ("Prompt", "Copies", "Texts", "Commonest", "Agreement")
    each = tuple(
        (
            prompt_name(row["prompt"], prompts),
            count(row["n_copies"]),
            count(row["n_unique"]),
            share(row["modal_share"]),
            plain(row["agreement"], 4),
        )
        for row in numbers["prompts"]
    )
    by_prompt = Table("By prompt", heads, each)
    if numbers["n_unique"] == numbers["n_prompts"]:
        return [by_prompt]
    rare = tuple((count(row["m"]), plain(row["n_unique"], 2)) for row in numbers["rarefied"])
    return [
        by_prompt,
        Table("Texts to expect of fewer copies a prompt", ("Copies a prompt", "Texts, all prompts"), rare),
    ]


def _routing(numbers: Numbers, stacks: Stacks) -> list[NumberRow]:
    last = numbers["last_fingerprint"]
    known = [row for row in numbers["fingerprints"] if row["fingerprint"] is not None]
    if numbers.get("is_remote"):
        return [
            NumberRow("backends", count(len(known)), "by what the answers say"),
            NumberRow("answers that name none", count(numbers["n_unknown"]), "unknown is never equal"),
            NumberRow("texts", count(numbers["n_distinct_answers"]), "of one prompt, decoded greedily"),
            NumberRow("the backend before", last or MISSING),
            *(
                [NumberRow("a second one, at most", share(numbers["certificate"]), "95 % sure")]
                if len(known) == 1
                else []
            ),
        ]
    return [
        NumberRow("workers that answered", count(numbers["n_workers"])),
        NumberRow("serving stacks", count(len(known)), "by fingerprint"),
        NumberRow("answers without a fingerprint", count(numbers["n_unknown"]), "unknown is never equal"),
        NumberRow("texts", count(numbers["n_distinct_answers"]), "of one prompt, decoded greedily"),
        NumberRow("the last run's stack", name_stack(last, stacks), "under this profile"),
    ]


def _routing_tables(numbers: Numbers, calls: Sequence[ProbeCall], stacks: Stacks) -> tuple[Table, ...]:
    """Return who answered from which stack, and who was left out and why."""
    if numbers.get("is_remote"):
        backends = tuple((row["fingerprint"] or "not known", count(row["n"])) for row in numbers["fingerprints"])
        return (Table("By backend", ("Backend", "Answers"), backends),)
    n_calls = Counter((call.worker, call.fingerprint) for call in calls if not call.error)
    rows = tuple(
        (worker or "not known", name_stack(fingerprint, stacks), count(n))
        for (worker, fingerprint), n in n_calls.items()
    )
    left_out = tuple((each["worker"], each["why"]) for each in numbers.get("left_out", ()))
    tables = (
        Table("By worker", ("Worker", "Stack", "Answers"), rows),
        Table("Left out", ("Worker", "Why"), left_out, is_text=True),
    )
    return tuple(table for table in tables if table.rows)


def _canary(numbers: Numbers) -> list[NumberRow]:
    runs = NumberRow(
        "runs", count(numbers["n_runs"]), "this one and those before that were asked the same, since the last change"
    )
    if "statistic" not in numbers:
        span = numbers["largest_span"]
        return [
            runs,
            NumberRow("runs still needed", count(numbers["n_more_runs"])),
            NumberRow("prompts that differ so far", _of(numbers["n_prompts_differing"], numbers["n_prompts"])),
            NumberRow("widest difference, nats", significant(span) if span else "0"),
        ]
    splits = (
        ""
        if numbers["n_splits"] is None
        else f"how often chance gives as much, by {numbers['n_splits']:,} splits of the runs"
    )
    threshold = f"more than {count(numbers['outlier_threshold'])}, and a part of the requests has changed"
    return [
        runs,
        NumberRow(
            "logprobs moved, nats",
            significant(numbers["statistic"]),
            f"mean over prompts and tokens: newest {numbers['n_window']} runs against {numbers['n_baseline']} before",
        ),
        NumberRow("noise between runs, nats", significant(numbers["noise"]), "standard deviation within the baseline"),
        NumberRow("p", plain(numbers["p_value"], 3), splits or "no noise: every difference counts"),
        NumberRow("effect, in that noise", plain(numbers["effect_ratio"], 2), "1 or more is a change, less a drift"),
        NumberRow("requests outside the baseline", _of(numbers["n_outliers"], numbers["n_requests"]), threshold),
    ]


def _canary_tables(numbers: Numbers, prompts: Sequence[str], stacks: Stacks) -> list[Table]:
    moved = [row for row in numbers.get("prompts", ()) if row["moved"]]
    if not moved:
        return []
    most = sorted(moved, key=lambda row: (-row["moved"], row["prompt"]))[:MAX_PROMPTS]
    rows = tuple((prompt_name(row["prompt"], prompts), significant(row["moved"])) for row in most)
    title = f"What moved most, {len(rows)} of {len(numbers['prompts'])} prompts"
    return [Table(title, ("Prompt", "Moved, nats"), rows)]


def _determinism(numbers: Numbers) -> list[NumberRow]:
    certified = [row for row in numbers["workers"] if row["is_certified"]]
    figures = [
        NumberRow("workers certified", _of(len(certified), len(numbers["workers"])), "each by itself"),
        NumberRow("largest batch measured", _of(numbers["seats_reached"], numbers["seats"]), "requests in a step"),
        NumberRow("rounds compared with the first", count(numbers["n_rounds"]), "of the worker with the fewest"),
    ]
    if numbers["certificate"] is not None:
        limit = f"under{NARROW}{100 * numbers['certificate']:.2g}{NARROW}%"
        figures.append(NumberRow("rounds that may still differ", limit, "95 % sure, on these prompts"))
    return figures


def _determinism_tables(numbers: Numbers, prompts: Sequence[str], stacks: Stacks) -> list[Table]:
    heads = ("Condition", "Answers", "Largest step", "Other texts", "Other bits", "Digest of all")
    return [
        Table(
            f"{row['name']}: {'certified' if row['is_certified'] else 'not certified'}",
            heads,
            tuple(
                (
                    capital(describe_condition(each)),
                    count(each["n_copies"]),
                    count(each["batch_max"]),
                    count(each["n_texts_moved"]),
                    count(each["n_bits_moved"]),
                    each["digest"][:8],
                )
                for each in row["conditions"]
            ),
        )
        for row in numbers["workers"]
    ]


def _audit(numbers: Numbers) -> list[NumberRow]:
    figures = [
        NumberRow("cases", count(numbers["n_cases"]), f"each decoded by {counted(len(numbers['workers']), 'worker')}"),
        NumberRow("answers compared with others", count(numbers["n_held"]), "of the audit before, or another worker's"),
        NumberRow("incidents", count(numbers["n_incidents"]), "other bits from the same stack"),
        NumberRow("unlike between stacks", count(numbers["n_across"]), f"by {counted(numbers['n_stacks'], 'bucket')}"),
    ]
    if numbers["certificate"] is not None:
        limit = f"under{NARROW}{100 * numbers['certificate']:.2g}{NARROW}%"
        figures.append(NumberRow("answers that may still differ", limit, "95 % sure"))
    return figures


def _audit_tables(numbers: Numbers, prompts: Sequence[str], stacks: Stacks) -> list[Table]:
    incidents = tuple(
        (
            row["case"] or prompt_name(row["prompt"], prompts),
            name_worker(row),
            f"{row['at'][:16].replace('T', ' ')} UTC" if row["at"] else MISSING,
            name_worker(row["against"]) + (", in the audit before" if row["against"]["is_earlier"] else ""),
            capital(describe_place(row)),
            _parted(row),
        )
        for row in numbers["incidents"]
    )
    by_worker = tuple(
        (name_worker(row), name_stack(row["fingerprint"], stacks), count(row["n_answered"]), count(row["n_incidents"]))
        for row in numbers["workers"]
    )
    heads = ("Case", "Who", "When", "Held against", "What differs", "First token")
    evidence = Table("What differs", heads, incidents, is_text=True)
    workers = Table("By worker", ("Worker", "Stack", "Answers", "Unlike"), by_worker)
    return [evidence, workers] if incidents else [workers]


def _parted(row: Numbers) -> str:
    """Return the two tokens at which an incident parts, the one that was expected first."""
    if row["what"] != "tokens":
        return "the same"
    return " → ".join(row[name] or "the end" for name in ("token_against_text", "token_text"))


def _capability(numbers: Numbers) -> list[NumberRow]:
    states = numbers["states"]
    return [NumberRow(f"parameters {STATE_WORDS[state]}", count(n)) for state, n in states.items() if n]


def _vendor(numbers: Numbers) -> list[NumberRow]:
    return [
        NumberRow(VENDOR_LABELS[row["row"]], VENDOR_STATES[row["state"]], describe_vendor_row(row))
        for row in numbers["vendor_rows"]
    ]


SMALL_P = 0.001  # smaller ones are compared with the level, so their first digit is written


def _border(numbers: Numbers) -> list[NumberRow]:
    if "kept" in numbers:
        return [NumberRow("prompts that are split", _of(len(numbers["kept"]), numbers["n_prompts"]))]
    rows = [NumberRow("earlier probes of the same", count(numbers["n_earlier"]))]
    for window in numbers["windows"]:
        n = window["n_probes"]
        what = f"{count(window['n_calls'])} calls, against {count(window['n_earlier'])} earlier probes"
        name = "p, this probe" if n == 1 else f"p, the newest {n} probes"
        p = window["p_value"]
        rows.append(NumberRow(name, f"p = {rounded(p, 1)}" if p < SMALL_P else p_value(p), what))
    return [*rows, NumberRow("level", rounded(numbers["level"]), "it is changed if one p is at most this")]


def _border_tables(numbers: Numbers, prompts: Sequence[str], stacks: Stacks) -> list[Table]:
    split = set(numbers.get("kept", ()))
    rows = tuple(
        (prompt_name(row["prompt"], prompts), _words_of(row["counts"]), "kept" if row["prompt"] in split else "")
        for row in sorted(numbers["words"], key=lambda row: row["prompt"] not in split)
    )
    return [Table("First words", ("Prompt", "Words", ""), rows, is_text=True)]


def _words_of(counts: Mapping[str, int]) -> str:
    """Return the commonest words with how often each came."""
    order = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{word or 'nothing'} {n}" for word, n in order[:6])


ROWS: dict[str, Callable[[Numbers], list[NumberRow]]] = {
    "seed": _seed,
    "batch": _batch,
    "audit": _audit,
    "canary": _canary,
    "determinism": _determinism,
    "capability": _capability,
    "vendor": _vendor,
    "border": _border,
}
TABLES: dict[str, Callable[[Numbers, Sequence[str], Stacks], list[Table]]] = {
    "seed": _seed_tables,
    "batch": _batch_tables,
    "audit": _audit_tables,
    "canary": _canary_tables,
    "determinism": _determinism_tables,
    "border": _border_tables,
}


def list_digests(numbers: Numbers, calls: Sequence[ProbeCall]) -> set[str]:
    """Return the fingerprints of which a probe's page says the names."""
    workers = [row.get("fingerprint") for row in numbers.get("workers", ())]
    known = [numbers.get("last_fingerprint"), *workers, *(call.fingerprint for call in calls)]
    return {digest for digest in known if digest}


def name_stack(digest: str | None, stacks: Stacks) -> str:
    """Return a stack's name with the start of its digest, as stacks that differ may have one name."""
    named = stacks.get(digest or "")
    if named is None:
        return digest[:8] if digest else "not known"
    return f"{named.title} ({named.digest[:4]})"


def prompt_name(index: int, prompts: Sequence[str]) -> str:
    """Return a prompt by its number, from 1, with how it begins."""
    if index >= len(prompts):
        return f"{index + 1}"
    text = " ".join(prompts[index].split())
    return f"{index + 1}. {text if len(text) <= 60 else text[:59] + '…'}"


def plain(value: float | None, decimals: int) -> str:
    return MISSING if value is None else points(value, decimals)


def significant(value: float | None) -> str:
    """Format with two significant digits."""
    return MISSING if value is None else f"{value:#.2g}".rstrip(".")


def _of(n: int, total: int) -> str:
    return f"{n:,} of {total:,}"
