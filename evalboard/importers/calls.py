"""Read the single requests of a log, and make runs of them."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import PurePath
from typing import Any

from evalboard.contract.suite_limits import MAX_ID_CHARS
from evalboard.core.digest import digest_json
from evalboard.core.document import storage_problems
from evalboard.core.errors import InvalidInput
from evalboard.importers import anthropic, backends, responses_api
from evalboard.importers.completions import answers, content_text, count, read_usage
from evalboard.importers.field_values import objects, shortened, text, whole
from evalboard.importers.records import Detail, LoggedCase, LoggedResponse, LoggedRun, Status
from evalboard.wording.numbers import counted, listed

# Of a request, what decides how it is decoded. Another name that means the same stands behind it.
SAMPLING = {
    "temperature": (),
    "top_p": (),
    "top_k": (),
    "min_p": (),
    "seed": (),
    "max_tokens": ("max_completion_tokens", "max_output_tokens"),
    "stop": (),
    "n": (),
    "frequency_penalty": (),
    "presence_penalty": (),
    "repetition_penalty": (),
    "logit_bias": (),
    "response_format": (),
    "tool_choice": (),
    "structured_outputs": (),
    "guided_json": (),
    "guided_regex": (),
    "guided_choice": (),
    "guided_grammar": (),
    "grammar": (),
    "json_schema": (),
    "reasoning_effort": (),
}


# Before a model that no other vendor has, the vendor's name is a gateway's spelling of it.
_VENDOR = re.compile(
    r"\A(?:anthropic/(?=claude)|openai/(?=gpt-(?!oss)|chatgpt-|o[1-9])|(?:google|gemini|vertex_ai)/(?=gemini-))"
)
MAX_INPUT_CHARS = 2_000
MAX_SCORERS = 100  # of one log; a score that is an object makes one of each of its keys
COPIES = "{n} came again with the id of an earlier response: copies of one answer, kept once and counted as no repeat."


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedCall:
    """One request with its answers, as a reader found it.

    `case_id` is "" where the log neither names the case nor holds the prompt, `repeat` None where it does not count;
    `index` is the tool's number of the case, `target` what its answer is compared with, `input` as `LoggedCase` has
    it. `responses` carry no case and repeat yet. `place` is the file and line, for messages. `is_completion` says that
    the prompt was sent as it is, to `/v1/completions`. `suite` is what the log calls the cases, and `n_cases` how many
    there were to be. `left_out` are settings that were not sent, because the server refuses them.
    """

    place: str
    responses: tuple[LoggedResponse, ...]
    case_id: str = ""
    repeat: int | None = None
    index: int | None = None
    model: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    tools: tuple[Mapping[str, Any], ...] = ()
    sampling: Mapping[str, Any] = field(default_factory=dict)
    base_url: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None
    is_completion: bool = False
    target: Any = None
    suite: str = ""
    n_cases: int | None = None
    left_out: tuple[str, ...] = ()
    input: str = ""

    @property
    def is_answered(self) -> bool:
        return any(not response.error for response in self.responses)


def read_call(
    *,
    place: str,
    request: Mapping[str, Any],
    body: Mapping[str, Any],
    case_id: str = "",
    repeat: int | None = None,
    error: str = "",
    headers: Mapping[str, str] | None = None,
    url: Any = "",
    seconds: float | None = None,
    started_at: datetime | None = None,
    finished_at: datetime | None = None,
    flags: Sequence[str] = (),
) -> LoggedCall:
    """Return a request with its answer; the request is {} if the log lacks it.

    Raises InvalidInput, without the file's name, for what is neither.
    """
    headers, base_url = headers or {}, backends.address(url)
    if responses_api.is_response(body):
        body = responses_api.as_completion(body)
    if anthropic.is_message(body):
        body, request = anthropic.as_completion(body), anthropic.as_request(request) if request else {}
    messages, tools = prompt(request), tuple(objects(request.get("tools"), "tools"))
    served_by = backends.served_by(headers=headers, body=body, base_url=base_url)
    usage = read_usage(body)
    found_flags = tuple(dict.fromkeys((*flags, *backends.flags(headers, body))))
    responses = tuple(
        LoggedResponse(
            case_id="",
            repeat=1,
            text=answer.text,
            reasoning=answer.reasoning,
            error=answer.error,
            is_prompt_filtered=answer.is_prompt_filtered,
            finish_reason=answer.finish_reason,
            is_refusal=answer.is_refusal,
            positions=answer.tokens.positions,
            trace_reason=answer.tokens.reason,
            n_reasoning_tokens=answer.tokens.n_reasoning_tokens,
            prompt_token_ids=answer.prompt_token_ids,
            n_tokens=answer.n_tokens,
            n_prompt_tokens=count(usage.get("prompt_tokens")),
            seed=whole(request.get("seed")),
            request_id=text(body.get("id")),
            seconds=seconds,
            answered_at=finished_at or started_at,
            served_by=served_by,
            flags=found_flags,
            dropped=answer.dropped,
        )
        for answer in answers(body, error)
    )
    return LoggedCall(
        place=place,
        responses=responses,
        case_id=case_id or (prompt_id(messages, tools) if messages else ""),
        repeat=repeat,
        model=_VENDOR.sub("", text(request.get("model")) or text(body.get("model"))),
        messages=messages,
        tools=tools,
        sampling=read_sampling(request),
        base_url=base_url,
        started_at=started_at,
        finished_at=finished_at,
        is_completion=request.get("messages") is None and isinstance(request.get("prompt"), str | list),
    )


def unreadable(
    place: str, problem: str, *, case_id: Any = "", request: Any = None, suite: str = ""
) -> LoggedCall | None:
    """Return the missing call of an unreadable row; None if its case is unknown."""
    messages: tuple[Mapping[str, Any], ...] = ()
    with suppress(InvalidInput):
        messages = prompt(request) if isinstance(request, Mapping) else ()
    with suppress(InvalidInput):
        case_id = own_id({"id": case_id}, ("id",)) or (prompt_id(messages) if messages else "")
        missing = LoggedResponse(case_id="", repeat=1, error=f"It cannot be read ({problem}).")
        model = text(request.get("model")) if isinstance(request, Mapping) else ""
        if case_id:
            return LoggedCall(
                place=place, responses=(missing,), case_id=case_id, messages=messages, model=model, suite=suite
            )
    return None


def prompt(request: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    """Convert the request's prompt to chat messages; () if the log lacks it.

    An old completion's prompt becomes one user message. Fields that are null are left out, and content that is given
    as parts of text alone becomes one text, so that one prompt written in two ways is one prompt.
    """
    if request.get("messages") is None and request.get("input") is not None:
        request = {"messages": responses_api.messages(request["input"])}
    if request.get("messages") is not None:
        messages: tuple[Mapping[str, Any], ...] = tuple(map(_message, objects(request["messages"], "messages")))
    else:
        messages = _completion_prompt(request.get("prompt"))
    problem = next(storage_problems(list(messages), "messages"), None)
    if problem:
        raise InvalidInput(f"{problem[0]} {problem[1]}")
    return messages


def read_input(given: Any, messages: Sequence[Mapping[str, Any]]) -> str:
    """Return the part of a prompt that the log names as the case's input.

    "" stands for the last user message, or for nothing.

    Of a mapping with one value it is the value, so that a template of one variable has the same input as none. Other
    values and long texts are replaced by their digest.
    """
    if isinstance(given, Mapping) and len(given) == 1:
        [given] = given.values()
    by_user = (message.get("content") for message in reversed(messages) if message.get("role") == "user")
    if given in (None, "", [], {}) or given == next(by_user, None):
        return ""
    if isinstance(given, str) and len(given) <= MAX_INPUT_CHARS and not any(storage_problems(given, "input")):
        return given
    try:
        return f"sha256 {digest_json(given)}"
    except ValueError:  # it holds a number that is none
        return ""


def prompt_id(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the id of a case that has no name: its prompt's digest."""
    return f"prompt-{digest_json([list(messages), list(tools)])[:16]}"


def own_id(record: Mapping[str, Any], names: Iterable[str]) -> str:
    """Return the case id that a record names under the first of these fields, "" for none.

    Raises InvalidInput for one that no case can have.
    """
    for name in names:
        value = record.get(name)
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            continue
        case_id = str(value)
        is_plain = case_id.isprintable() or not any(unicodedata.category(char) in _NO_ID for char in case_id)
        if len(case_id) > MAX_ID_CHARS or not is_plain:
            raise InvalidInput(f"{name} must be 1 to {MAX_ID_CHARS} characters, none of them a control character")
        return case_id
    return ""


_NO_ID = ("Cc", "Cs", "Zl", "Zp")


def read_sampling(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a request that decide how it is decoded; what it does not name is not there."""
    sampling = {}
    for name, others in SAMPLING.items():
        value = next((request[given] for given in (name, *others) if request.get(given) is not None), None)
        if value is not None and not any(storage_problems(value, name)):
            sampling[name] = value
    return sampling


def slug(name: str) -> str:
    """Return a name as a suite may be called: a-z, 0-9, - and _, "" where nothing is left."""
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9_]+", "-", plain).strip("-_")[:80].rstrip("-_")


def title(names: Iterable[str]) -> str:
    """Return what a run out of files of these names is called."""
    stems = [PurePath(re.sub(r"\.(gz|zst)\Z", "", name)).stem for name in names]
    more = f" and {len(stems) - 1} more" if len(stems) > 1 else ""
    return f"{stems[0][:150]}{more}"


def suite_runs(calls: Sequence[LoggedCall], *, title: str, **facts: Any) -> list[LoggedRun]:
    """Return one run for each suite that a log names, and each model; `title` of one without a name."""
    suites: dict[str, list[LoggedCall]] = {}
    for call in calls:
        suites.setdefault(call.suite, []).append(call)
    runs = []
    for name, group in suites.items():
        runs += logged_runs(group, title=shortened(name, 200) or title, slug=slug(name), **facts)
    return runs


def logged_runs(calls: Sequence[LoggedCall], **facts: Any) -> list[LoggedRun]:
    """Return one run for each requested model, in the order of the log.

    facts: as in `logged_run`.

    A request that failed for a model that never answered, as for a misspelt one, stays with the first model's run.
    """
    answered = list(dict.fromkeys(call.model for call in calls if call.is_answered))
    groups: dict[str, list[LoggedCall]] = {model: [] for model in answered or [""]}
    first = next(iter(groups))
    for call in calls:
        groups[call.model if call.model in groups else first].append(call)
    return [logged_run(group, **facts) for group in groups.values()]


def logged_run(
    calls: Sequence[LoggedCall],
    *,
    tool: str,
    title: str,
    slug: str = "",
    model: str = "",
    own_ids: Sequence[str] = (),
    labels: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
) -> LoggedRun:
    """Return the run that these calls make up.

    Of one case, each further answer is the next repeat. Without a `slug` the suite is called by its prompts, so that
    two logs of the same prompts are of one suite.

    Raises InvalidInput where one id names two prompts.
    """
    calls, remarks = _named(calls)
    cases = _cases(calls)
    calls, n_copies = _without_copies(calls)
    if n_copies:
        remarks.append(COPIES.format(n=counted(n_copies, "answer")))
    responses = _responses(calls)
    sampling, differing = _agreed_sampling(calls)
    remarks += [f"{name} differs between requests, and is not among the run's settings." for name in differing]
    left_out = dict.fromkeys(name for call in calls for name in call.left_out)
    remarks += (
        [f"The server does not take these settings, which were not sent: {listed(list(left_out))}."] if left_out else []
    )
    if any(call.is_completion for call in calls):
        remarks.append("Prompts of /v1/completions, sent without a chat template, are kept as one user message each.")
    urls = {call.base_url for call in calls if call.base_url}
    starts = [call.started_at for call in calls if call.started_at]
    ends = [call.finished_at for call in calls if call.finished_at]
    errors = [response.error for response in responses if response.error]
    is_failed = len(errors) == len(responses)
    has_numbers = all(call.repeat is not None for call in calls)
    is_partial = bool(errors) or (has_numbers and _n_absent(responses, cases) > 0)
    n_cases = max((call.n_cases or 0 for call in calls), default=0)
    is_partial = is_partial or len({response.case_id for response in responses}) < max(len(cases), n_cases)
    status: Status = "failed" if is_failed else "incomplete" if is_partial else "finished"
    return LoggedRun(
        slug=slug or _cases_slug(cases),
        title=title,
        tool=tool,
        model=model or next((call.model for call in calls if call.is_answered and call.model), calls[0].model),
        detail=detail(responses),
        status=status,
        cases=cases,
        responses=responses,
        base_url=urls.pop() if len(urls) == 1 else "",
        sampling=sampling,
        scorers=score_names(responses),
        own_ids=tuple(own_ids),
        labels=labels or {},
        failure=errors[0] if is_failed and errors else "",
        started_at=min(starts, default=None),
        finished_at=max(ends, default=None),
        notes=(*notes, *remarks),
        n_repeats=max(response.repeat for response in responses) if has_numbers and responses else None,
        n_cases=n_cases or None,
    )


def score_names(responses: Iterable[LoggedResponse]) -> tuple[str, ...]:
    """Return the names of a log's scores in order. Raises InvalidInput if there are too many."""
    names = tuple(dict.fromkeys(name for response in responses for name in response.scores))
    if len(names) > MAX_SCORERS:
        raise InvalidInput(f"holds {len(names):,} kinds of scores; the most is {MAX_SCORERS}")
    return names


def _without_copies(calls: Sequence[LoggedCall]) -> tuple[list[LoggedCall], int]:
    """Drop answers that repeat the id, text and marks of an earlier answer to the case, and count them.

    An id that several cases share identifies no answer.
    """
    cases: dict[str, set[str]] = {}
    for call in calls:
        for response in call.responses:
            cases.setdefault(response.request_id, set()).add(call.case_id)
    seen, originals = set(), []
    for call in calls:
        answers = tuple((one.request_id, one.text, one.flags) for one in call.responses)
        is_named = bool(answers) and all(name and len(cases[name]) == 1 for name, *_ in answers)
        if is_named and (call.case_id, answers) in seen:
            continue
        seen.add((call.case_id, answers))
        originals.append(call)
    return originals, sum(len(call.responses) for call in calls) - sum(len(call.responses) for call in originals)


def _message(message: Mapping[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in message.items() if value is not None}
    content = fields.get("content")
    if isinstance(content, list) and content and all(_is_text(part) for part in content):
        fields["content"] = content_text(content)
    return fields


def _is_text(part: Any) -> bool:
    return isinstance(part, Mapping) and part.get("type") == "text"


def _completion_prompt(given: Any) -> tuple[Mapping[str, Any], ...]:
    if isinstance(given, list) and len(given) == 1 and isinstance(given[0], str):
        given = given[0]
    if isinstance(given, list) and any(isinstance(one, str | list) for one in given):
        raise InvalidInput(f"prompt holds {len(given)} prompts; one prompt a request can be read")
    return ({"role": "user", "content": given},) if isinstance(given, str) else ()


def _named(calls: Sequence[LoggedCall]) -> tuple[list[LoggedCall], list[str]]:
    """Give the cases that have neither a name nor a prompt their place in the log as a name."""
    if all(call.case_id for call in calls):
        return list(calls), []
    named = [call if call.case_id else replace(call, case_id=f"line-{n}") for n, call in enumerate(calls, start=1)]
    return named, ["The log neither names cases nor holds prompts: a case is called by its place in the log."]


def _cases(calls: Sequence[LoggedCall]) -> tuple[LoggedCase, ...]:
    cases: dict[str, LoggedCase] = {}
    for call in calls:
        case = cases.get(call.case_id)
        if case is None or not case.messages:
            index = call.index if case is None else case.index
            target = call.target if case is None or case.target is None else case.target
            cases[call.case_id] = LoggedCase(
                id=call.case_id,
                messages=call.messages,
                target=target,
                index=index,
                tools=call.tools,
                input=call.input,
            )
        elif call.messages and (call.messages, call.tools) != (case.messages, case.tools):
            raise InvalidInput(f"{call.place}: the case id {call.case_id!r} names another prompt here than before")
    return tuple(cases.values())


def _responses(calls: Sequence[LoggedCall]) -> tuple[LoggedResponse, ...]:
    by_case: dict[str, list[LoggedCall]] = {}
    for call in calls:
        by_case.setdefault(call.case_id, []).append(call)
    responses = []
    for case_id, group in by_case.items():
        for call_repeat, call in _numbered(group, at_most=len(calls)):
            responses += [
                replace(response, case_id=case_id, repeat=call_repeat + n) for n, response in enumerate(call.responses)
            ]
    return tuple(responses)


def _numbered(calls: Sequence[LoggedCall], *, at_most: int) -> list[tuple[int, LoggedCall]]:
    """Return each call of a case with the repeat of its first answer.

    The log's own numbers are kept, gaps and all, where they can be: from 1, each once, one answer each. Else the calls
    are counted, in the order of those numbers where all have one.
    """
    numbers = [call.repeat for call in calls if call.repeat is not None]
    if len(numbers) == len(calls):
        calls = sorted(calls, key=lambda call: call.repeat or 0)
        is_plain = len(set(numbers)) == len(numbers) and all(len(call.responses) == 1 for call in calls)
        if is_plain and min(numbers) >= 1 and max(numbers) <= at_most:
            return [(call.repeat or 0, call) for call in calls]
    numbered, next_repeat = [], 1
    for call in calls:
        numbered.append((next_repeat, call))
        next_repeat += len(call.responses)
    return numbered


def _agreed_sampling(calls: Sequence[LoggedCall]) -> tuple[dict[str, Any], list[str]]:
    """Return the settings that every answered request names alike, and the names of those that differ."""
    given = [call.sampling for call in calls if call.is_answered] or [call.sampling for call in calls]
    names = {name: None for sampling in given for name in sampling}
    agreed, differing = {}, []
    for name in names:
        if all(sampling.get(name) == given[0].get(name) for sampling in given):
            agreed[name] = given[0][name]
        elif name != "seed":  # each answer has its own
            differing.append(name)
    return agreed, differing


def detail(responses: Sequence[LoggedResponse]) -> Detail:
    answers = [response.positions for response in responses if response.positions]
    if not answers:
        return "text"
    return "ids" if all(positions.has_ids for positions in answers) else "tokens"


def _n_absent(responses: Sequence[LoggedResponse], cases: Sequence[LoggedCase]) -> int:
    """Count the responses that are missing if every case had as many repeats as the most repeated one."""
    counted = Counter(response.repeat for response in responses)
    return max(counted, default=0) * len(cases) - len(responses)


def _cases_slug(cases: Sequence[LoggedCase]) -> str:
    """Name a suite by its cases: by their prompts where all are known, else by their ids."""
    is_known = all(case.messages for case in cases)
    content = sorted((case.id, digest_json(list(case.messages)) if is_known else "") for case in cases)
    return f"cases-{digest_json(content)[:8]}"
