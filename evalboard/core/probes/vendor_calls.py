"""Plan the calls of a vendor probe: the same questions to every endpoint that claims one model.

Texts, repeats and streamed calls of one prompt share a round, so that they meet the same load.
"""

from collections.abc import Mapping
from typing import Any

from evalboard.core.probes import prompts as probe_prompts
from evalboard.core.probes.call import ProbeExchange

N_REPEATED = 10  # prompts that are asked again, and streamed
N_TOOL_CALLS, N_CHOICES, N_SCHEMAS, N_CODES = 20, 5, 10, 8
SHORT_SENTENCES, MIDDLE_SENTENCES = 10, 110  # before the question of a short call; half of them have each
MAX_TOKENS = {"counted": 1, "tool": 512, "named": 512, "none": 64, "schema": 512, "short": 64, "long": 64}
TOP_K = 5
WITH_TOOLS = frozenset({"tool", "named", "none"})
TOOL_NAME = "book_table"

TOOL_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "restaurant": {"type": "string"},
        "guests": {"type": "integer", "minimum": 1},
        "day": {"type": "string", "enum": ["friday", "saturday", "sunday"]},
        "time": {
            "type": "object",
            "properties": {"hour": {"type": "integer"}, "minute": {"type": "integer"}},
            "required": ["hour", "minute"],
            "additionalProperties": False,
        },
        "outside": {"type": "boolean"},
    },
    "required": ["restaurant", "guests", "day", "time", "outside"],
    "additionalProperties": False,
}
TOOLS = (
    {
        "type": "function",
        "function": {"name": TOOL_NAME, "description": "Book a table in a restaurant.", "parameters": TOOL_SCHEMA},
    },
)
CITY_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "continent": {"type": "string"},
        "is_capital": {"type": "boolean"},
        "rivers": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city", "continent", "is_capital", "rivers"],
    "additionalProperties": False,
}
_RESTAURANTS = ("Anchor", "Bluebell", "Corner House", "Dragon", "Elm Tree")
_CITIES = ("Lyon", "Quito", "Osaka", "Accra", "Perth", "Oslo", "Lima", "Hanoi", "Cairo", "Boston")
_CODES = ("amber", "birch", "cobalt", "dahlia", "ember", "falcon", "garnet", "hazel")
_SENTENCE = "The road goes on past the mill and over the hill. "
# Texts that tokenizers split into different numbers of tokens.
_COUNTED = (
    "3141592653589793238462643383279502884197169399375105820974944592",
    "今天的天气非常好，我们一起去公园散步，然后在湖边喝茶。",
    "Сегодня хорошая погода, и мы пойдём гулять в парк у реки.",
    "def total(rows):\n        for row in rows:\n                yield  row['n']   +  1\n",
    "https://example.com/a1b2c3d4e5?query=%7B%22id%22%3A%20%22f00ba4%22%7D&page=0x1F",
    "🙂🚲🌧️🏔️ naïve façade — œuvre ½ ≠ ⅓ … Ωmega",
)
# A call's `prompt` indexes the texts below, one group of them after the other.
_N = {
    "text": len(probe_prompts.CANARY),
    "counted": len(_COUNTED),
    "tool": N_TOOL_CALLS,
    "named": N_CHOICES,
    "none": N_CHOICES,
    "schema": N_SCHEMAS,
    "short": N_CODES,
    "long": N_CODES,
}


def list_vendor_prompts(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the texts of all prompts, in the order of `_N`."""
    bookings = [_booking(place) for place in range(N_TOOL_CALLS)]
    n_long = parameters["context_sentences"]
    short = [_coded(code, SHORT_SENTENCES if place % 2 else MIDDLE_SENTENCES) for place, code in enumerate(_CODES)]
    return (
        *probe_prompts.CANARY,
        *_COUNTED,
        *bookings,
        *(f"Say good morning to {city} in one short sentence." for city in _CITIES[:N_CHOICES]),
        *bookings[:N_CHOICES],
        *(f"Describe the city of {city}." for city in _CITIES),
        *short,
        *(_coded(code, n_long) for code in _CODES),
    )


def list_codes() -> tuple[str, ...]:
    """Return the code words of the short calls, and of the long calls."""
    return _CODES


def place_in_group(call: ProbeExchange) -> int:
    """Return the position of a call's prompt among those of its group."""
    return call.prompt - _first(_prompts_of(call.group))


def plan_vendor_calls() -> tuple[ProbeExchange, ...]:
    """Return all calls in the order to send them."""
    rounds: list[list[tuple[str, int]]] = [
        [(group, place) for place in range(N_REPEATED) for group in ("text", "again", "stream")],
        [("text", place) for place in range(N_REPEATED, _N["text"])],
        *([(group, place) for place in range(_N[group])] for group in ("counted", "tool")),
        [(group, place) for place in range(N_CHOICES) for group in ("named", "none")],
        *([(group, place) for place in range(_N[group])] for group in ("schema", "short", "long")),
    ]
    return tuple(
        ProbeExchange(prompt=_first(_prompts_of(group)) + place, group=group, round=index)
        for index, calls in enumerate(rounds)
        for group, place in calls
    )


def choose_vendor_sampling(parameters: Mapping[str, Any], group: str) -> dict[str, Any]:
    """Return all the sampling of a group's calls, with what the group asks for."""
    n_tokens = MAX_TOKENS.get(group, parameters["max_tokens"])
    greedy: dict[str, Any] = {"temperature": 0.0, "max_tokens": n_tokens, "stop": []}
    schema = {"name": "city", "strict": True, "schema": CITY_SCHEMA}
    asks: dict[str, dict[str, Any]] = {
        "text": {"logprobs": TOP_K},
        "again": {"logprobs": TOP_K},
        "stream": {"logprobs": TOP_K, "stream": True},
        "named": {"tool_choice": {"type": "function", "function": {"name": TOOL_NAME}}},
        "none": {"tool_choice": "none"},
        "schema": {"response_format": {"type": "json_schema", "json_schema": schema}},
    }
    return {**greedy, **asks.get(group, {})}


def _prompts_of(group: str) -> str:
    return "text" if group in ("again", "stream") else group


def _first(group: str) -> int:
    names = list(_N)
    return sum(_N[name] for name in names[: names.index(group)])


def _booking(place: int) -> str:
    name, day = _RESTAURANTS[place % 5], ("Friday", "Saturday", "Sunday")[place % 3]
    seat = "outside" if place % 2 else "inside"
    when = f"{day} at {18 + place % 4}:{15 * (place % 4):02}"
    return f"Use the tool to book a table {seat} for {2 + place % 7} at the restaurant {name} on {when}."


def _coded(code: str, n_sentences: int) -> str:
    filler = (_SENTENCE * n_sentences).strip()
    return f"The code word is {code}.\n\n{filler}\n\nWhat is the code word? Answer with that word alone."
