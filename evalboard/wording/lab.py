"""What is put in words of an experiment of the lab: its sources, its findings, its one sentence."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

from evalboard.contract.lab_kinds import STEP, Source, SourceFinding, State
from evalboard.wording.messages import Facts, Messages
from evalboard.wording.numbers import capital, counted, fixed, listed, points, small_points

if TYPE_CHECKING:
    from evalboard.contract.lab import Experiment, LabCost


@dataclass(frozen=True, slots=True)
class SourceWords:
    """The texts of a source.

    label: in a table row. subject: in a sentence. condition: what is varied. fixed_by: what would fix it.
    """

    label: str
    subject: str
    condition: str
    fixed_by: str


SOURCE_WORDS: Mapping[Source, SourceWords] = {
    Source.CONTROL: SourceWords("nothing (control)", "the control", "pinned, engine restarted", "must be 0"),
    Source.ORDER: SourceWords("order of cases", "the order of cases", "pinned, cases shuffled", "nothing to fix"),
    Source.BATCH: SourceWords(
        "batch composition", "batching", "mixed batches, arrival shuffled", "pinned, or invariant kernels"
    ),
    Source.GRAPHS: SourceWords(
        "graphs and compilation", "compilation", "eager off, other settings pinned", "enforce_eager"
    ),
    Source.PREFIX_CACHE: SourceWords("prefix cache", "the prefix cache", "on, cold and warm", "prefix caching off"),
    Source.DTYPE: SourceWords("dtype", "the dtype", "the same weights in another dtype", "the endpoint"),
    Source.KV_CACHE: SourceWords(
        "KV-cache dtype", "the KV cache's dtype", "the KV cache in another dtype", "the profile"
    ),
    Source.ROUTING: SourceWords("routing", "routing", "through a gateway", "pin the backend"),
    Source.SAMPLER: SourceWords("sampler", "the sampler", "sampled, another seed each run", "T = 0, or more samples"),
    Source.PARSER: SourceWords(
        "parser", "the parser", "the same texts, other scorers and spacing", "normalisation in the scorer"
    ),
    Source.ATTENTION: SourceWords("attention backend", "the attention backend", "another backend", "the profile"),
    Source.TENSOR_PARALLEL: SourceWords(
        "tensor parallel size", "the tensor parallel size", "spread over other GPUs", "the profile"
    ),
    Source.BUILD: SourceWords("provider build", "the provider's build", "over its buckets", "expire and rebaseline"),
    Source.JUDGE: SourceWords("judge", "the judge", "the same texts judged again", "pin the judge"),
}
# For an external server, which nothing here restarts.
REMOTE_CONTROL = "one call at a time"

REASONS = Messages(
    "left_out",
    {
        ("source", "unknown"): {
            "not_asked": "it was not chosen.",
            "not_ours": "the server is external, and its operator sets it.",
            "not_pinned": "the profile does not pin {setting}, so there is nothing to vary.",
            "one_dtype": "no endpoint serves these weights in a dtype other than {dtype}; add one in the settings.",
            "no_gateway": "no endpoint names {endpoint} as its bypass or its reference.",
            "greedy": "not tested at temperature 0; set a temperature.",
            "recorded": "scores come from logs, a judge or a team's own scorer, so no text can be scored again here.",
            "too_large": "the suite has over {limit:,} cases, too many to score again at once.",
            "eager_only": "vLLM's CPU build (0.32) does not start with eager mode off.",
            "no_avx512": "vLLM's CPU build keeps it in 8 bits only on processors with AVX-512.",
            "no_gpu": "CPU workers have no other backend.",
            "is_spread": "the endpoint itself spreads the model over GPUs; compare with an endpoint of another size.",
            "one_gpu": "a worker of this pool has no second GPU.",
            "not_varied": "the pool's workers differ in kind, or none has been seen.",
            "others_decide": "the provider decides when it changes; the endpoint's page lists rotations.",
            "own_build": "the engine is your own, and its build is in the fingerprint.",
            "no_model_judges": "no scorer of this suite is a model.",
            "judge_measured": "the page of each run says how far its judge disagrees with itself.",
        },
    },
)


def _within(words: str) -> Callable[[Facts], str]:
    """Return a finding that nothing was seen, with how much there may be if that is known."""
    return lambda facts: words if facts["at_most"] is None else f"{words} (at most ±{bound_points(facts['at_most'])})"


FINDINGS = Messages(
    "source",
    {
        ("source", "asserts"): {
            State.HOLDS: "stable",
            State.HOLDS_IN_ANSWERS: "stable, though bits move",
            State.MOVED: "has moved",
            State.SOURCE: "a source",
            State.ANSWERS_ONLY: "moves answers, not the score",
        },
        ("source", "denies"): {
            State.BITS_ONLY: _within("moves bits, no answer"),
            State.NONE_SEEN: _within("none seen"),
        },
        ("source", "unknown"): {
            State.NOT_BLAMED: "not attributable",
            State.NOT_SCORED: "no score to compare with",
            State.NOT_MEASURED: "not measured yet",
        },
    },
)
SAID = Messages(
    "experiment",
    {
        ("plan", "asserts"): {"planned": "Nothing has been decoded yet: this is the plan."},
        ("plan", "advises"): {
            "over_budget": "The estimate of {minutes:points} min is above the budget of {budget:limit} min: it would "
            "stop before its end. Plan fewer runs, or a larger budget.",
        },
        ("money", "asserts"): {"spent": "Spent: {costs:list}.", "spent_so_far": "Spent so far: {costs:list}."},
        ("end", "asserts"): {
            "stopped": "Stopped by its budget.",
            "cancelled": "Cancelled.",
            "failed": "{problem}",
            "missing": "{n:condition} {n:is|are} missing.",
        },
        ("control", "unknown"): {
            "control_runs": "The control is running; everything is compared with it.",
            "control_unscored": "The control has no two runs with a score, so nothing below can be compared with it.",
        },
        ("control", "denies"): {
            "control_moved": "The control moved by ±{by}, so nothing below can be attributed to its source.",
            "control_answers": "The control gave another answer {n:,} of {n_responses:,} times, so nothing below can "
            "be attributed to its source.",
        },
        ("control", "asserts"): {
            "control_same": "With nothing varied, {n} of {n_runs} runs {n:was|were} equal to the bit.",
        },
        ("sources", "asserts"): {
            "moves": "{name} moves this score (±{by} points){quiet}.",
            "moves_most": "{name} moves this score most (±{by} points), {others}{quiet}.",
        },
        ("sources", "denies"): {"quiet": "{names} {n:does|do} not visibly move this score{bound}."},
    },
)
NOTHING_TO_FIX = (State.NONE_SEEN, State.BITS_ONLY)
SPACING_WORDS: Mapping[str, str] = {  # by the names of core.lab.SPACINGS
    "leading_newline": "a line before the text",
    "trailing_newline": "a line after the text",
    "doubled_lines": "each line break doubled",
    "one_line": "all on one line",
}


def describe_source(source: str, name: str = "", *, is_remote: bool = False, temperature: Any = None) -> SourceWords:
    """Return the texts of a source. name: distinguishes one of its conditions from the others."""
    words = SOURCE_WORDS[Source(source)]
    if source == Source.CONTROL and is_remote:
        return SourceWords(words.label, words.subject, REMOTE_CONTROL, words.fixed_by)
    if source == Source.ROUTING and name:
        return SourceWords(words.label, f"routing through {name}", f"through {name}", words.fixed_by)
    if source == Source.DTYPE and name:
        return SourceWords(words.label, words.subject, f"the same weights in {name}", words.fixed_by)
    if source == Source.KV_CACHE and name:
        return SourceWords(words.label, words.subject, f"the KV cache in {name}", words.fixed_by)
    if source == Source.ATTENTION and name:
        return SourceWords(words.label, words.subject, f"attention by {name}", words.fixed_by)
    if source == Source.TENSOR_PARALLEL and name:
        return SourceWords(words.label, words.subject, f"spread over {name} GPUs", words.fixed_by)
    if source == Source.SAMPLER and temperature is not None:
        return SourceWords(words.label, words.subject, f"T = {temperature:g}, another seed each run", words.fixed_by)
    return words


def describe_reason(code: str, facts: Mapping[str, Any]) -> str:
    """Return why a source is not measured, as a sentence goes on after its name."""
    return REASONS.write(code, facts)


def describe_finding(finding: SourceFinding) -> str:
    """Return a state in words, with its bound where nothing was seen: "none seen (at most ±0.2)"."""
    return FINDINGS.write(finding.state, at_most=finding.at_most)


def describe_unmeasured(status: str) -> str:
    """Return the text for a source without figures, by the status of its condition."""
    words = {"failed": "could not be measured", "missing": "left out when it ended early", "running": "at work"}
    return words.get(status) or FINDINGS.write(State.NOT_MEASURED)


def describe_fix(words: SourceWords, state: State) -> str:
    """Return what keeps a source from moving the score; where it moves nothing there is nothing to fix."""
    return "nothing to fix" if state in NOTHING_TO_FIX else words.fixed_by


def bound_points(value: float) -> str:
    """Write a bound in points, rounded up: 0.121 is "0.2", and never less than it is."""
    digits = next((digits for digits in (1, 2, 3) if value >= 10**-digits / 2 or not value), 3)
    return points(ceil(value * 10**digits - 1e-9) / 10**digits, digits)


@dataclass(frozen=True, slots=True)
class SentenceRow:
    """A row as the conclusion needs it. n_same: of n_runs; None if nothing was decoded."""

    source: str
    name: str
    finding: SourceFinding
    n_runs: int
    n_same: int | None
    n_flipped: int = 0
    n_responses: int = 0


def describe_budget(minutes: float | None, budget: float) -> str:
    """Warn that a plan is estimated to take more than its budget, both in minutes; "" if it fits."""
    if minutes is None or minutes <= budget:
        return ""
    return f" {SAID.write('over_budget', minutes=minutes, budget=budget)}"


def describe_experiment(rows: Sequence[SentenceRow], *, status: str, n_missing: int, problem: str = "") -> str:
    """Return an experiment's conclusion: sources by size, those without effect, the control.

    n_missing: conditions that were not measured because it ended early.
    """
    if status == "planned":
        return SAID.write("planned")
    begin = describe_end(status, n_missing, problem)
    control = next((row for row in rows if row.source == Source.CONTROL), None)
    if control is None or control.finding.state is State.NOT_MEASURED:
        return begin or SAID.write("control_runs")
    is_void = control.finding.state in (State.MOVED, State.NOT_SCORED)
    sentence = _describe_control(control) if is_void else _describe(rows)
    return f"{begin} {sentence}".strip()


def describe_end(status: str, n_missing: int, problem: str) -> str:
    """Return how an experiment ended early, and how much of it is missing; "" where it did not."""
    if status not in ("stopped", "cancelled", "failed"):
        return ""
    missing = f" {SAID.write('missing', n=n_missing)}" if n_missing else ""
    return f"{SAID.write(status, problem=problem)}{missing}"


def _describe_control(control: SentenceRow) -> str:
    if control.finding.state is State.NOT_SCORED:
        return SAID.write("control_unscored")
    if control.finding.reach:
        return SAID.write("control_moved", by=small_points(control.finding.reach))
    return SAID.write("control_answers", n=control.n_flipped, n_responses=control.n_responses)


def _describe(rows: Sequence[SentenceRow]) -> str:
    control = next(row for row in rows if row.source == Source.CONTROL)
    sources = [row for row in rows if row.finding.state is State.SOURCE]
    sources.sort(key=lambda row: -(row.finding.reach or 0.0))
    quiet = [row for row in rows if row.finding.state in (State.NONE_SEEN, State.BITS_ONLY, State.ANSWERS_ONLY)]
    bounds = [row.finding.at_most for row in quiet if row.finding.at_most is not None]
    bound = f" (at most ±{bound_points(max(bounds))})" if bounds else ""
    names = listed([_subject(row) for row in quiet] or [""])
    parts = []
    if sources:
        first, *others = sources
        facts = {
            "name": capital(_subject(first)),
            "by": small_points(first.finding.reach or 0.0),
            "others": ", ".join(f"{_subject(row)} ±{small_points(row.finding.reach or 0.0)}" for row in others),
            "quiet": f"; no visible effect of {names}{bound}" if quiet else "",
        }
        parts.append(SAID.write("moves_most" if others else "moves", facts))
    elif quiet:
        parts.append(SAID.write("quiet", n=len(quiet), names=capital(names), bound=bound))
    return " ".join([*parts, SAID.write("control_same", n=control.n_same, n_runs=control.n_runs)])


def _subject(row: SentenceRow) -> str:
    return describe_source(row.source, row.name).subject


def describe_spacing(name: str) -> str:
    """Return the label of a way to score: a spacing in words, a scorer by name."""
    return SPACING_WORDS.get(name, name)


def describe_arm(source: str, name: str) -> str:
    """Return the label of a condition in a plan: "dtype, bfloat16". A bisect's step has a name already."""
    if source == STEP:
        return name
    label = SOURCE_WORDS[Source(source)].label
    return f"{label}, {name}" if name else label


def describe_money(experiment: "Experiment") -> str:
    """Say what an experiment will cost and has cost in money; "" where no endpoint has a price."""
    parts = [each.text for each in experiment.expected_costs]
    if experiment.spent_costs:
        code = "spent" if experiment.is_terminal else "spent_so_far"
        parts.append(SAID.write(code, costs=[each.text for each in experiment.spent_costs]))
    return " ".join(parts)


def describe_cost(cost: "LabCost") -> str:
    """Describe a cost in a line: "20 runs, 20 engine starts, 3.3 M tokens, 126 min"."""
    if not cost.n_runs:
        return "no run: stored texts are scored again"
    tokens = "tokens unknown" if cost.tokens is None else f"{counted(cost.tokens, 'token')}"
    minutes = "time unknown (no earlier run to go by)" if cost.minutes is None else f"{fixed(cost.minutes, 1)} min"
    return f"{counted(cost.n_runs, 'run')}, {counted(cost.n_starts, 'engine start')}, {tokens}, {minutes}"
