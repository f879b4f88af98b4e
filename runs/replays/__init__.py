"""One case decoded again, in several variants, or one request of production."""

from runs.replays import replays
from runs.replays.read import (
    CaseWork,
    ReplayWork,
    cases_to_decode,
    count_prompt_tokens,
    list_case_replays,
    list_replays_of_case,
    load_vocabulary,
    newest_replay,
    replay_work,
)
from runs.replays.read_production import DecodedPage, replay_page
from runs.replays.replays import (
    REPLAYS,
    claim_replay,
    create_body_replay,
    create_replay,
    finish_replay,
    record_result,
)

__all__ = [
    "REPLAYS",
    "CaseWork",
    "DecodedPage",
    "ReplayWork",
    "cases_to_decode",
    "claim_replay",
    "count_prompt_tokens",
    "create_body_replay",
    "create_replay",
    "finish_replay",
    "list_case_replays",
    "list_replays_of_case",
    "load_vocabulary",
    "newest_replay",
    "record_result",
    "replay_page",
    "replay_work",
    "replays",
]
