"""The fields of an Inspect log that are read, by part.

A field that is not named here reaches no reader.

Inspect writes the tokens of one answer four times: in the sample's output, in the call's, in the server's raw answer
and in a patch of its state. Only the first is read.

What is empty says something: a choice and a raw answer without the field that every one has are read whole.
"""

from typing import Any, Required, TypedDict

import msgspec

from evalboard.importers.tokens import TokenEntry


class _Logprobs(TypedDict, total=False):
    content: list[TokenEntry] | None
    tokens: Any
    token_logprobs: Any
    top_logprobs: Any


class _Choice(TypedDict, total=False):
    message: Required[Any]
    stop_reason: Any
    logprobs: _Logprobs | None


class _Output(TypedDict, total=False):
    model: Any
    choices: list[_Choice] | None
    completion: Any
    usage: Any
    time: Any
    response_id: Any
    error: Any
    fallback: Any


class _GivenChoice(TypedDict, total=False):
    message: Any


class _GivenOutput(TypedDict, total=False):
    choices: list[_GivenChoice] | None
    response_id: Any


class _RawChoice(TypedDict, total=False):
    token_ids: Any
    provider_specific_fields: Any


class _Raw(TypedDict, total=False):
    id: Required[Any]
    choices: list[_RawChoice] | None
    model: Any
    system_fingerprint: Any
    provider: Any
    extra_fields: Any
    usage: Any
    prompt_token_ids: Any


class _Call(TypedDict, total=False):
    response: _Raw | None


class _Event(TypedDict, total=False):
    event: Any
    error: Any
    pending: Any
    model: Any
    role: Any
    input: Any
    input_refs: Any
    tools: Any
    config: Any
    output: _GivenOutput | None
    call: _Call | None
    cache: Any
    retries: Any
    completed: Any
    timestamp: Any


class _Pool(TypedDict, total=False):
    messages: Any


class _Sample(TypedDict, total=False):
    id: Any
    epoch: Any
    input: Any
    target: Any
    messages: Any
    output: _Output | None
    scores: Any
    events: list[_Event] | None
    attachments: Any
    events_data: _Pool | None
    message_pool: Any
    invalidation: Any
    error: Any
    error_retries: Any
    model_fallbacks: Any
    completed_at: Any


class _Log(TypedDict, total=False):
    status: Any
    eval: Any
    stats: Any
    results: Any
    error: Any
    invalidated: Any
    shards: Any
    samples: list[_Sample] | None


SAMPLE: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(_Sample)
LOG: "msgspec.json.Decoder[Any]" = msgspec.json.Decoder(_Log)
