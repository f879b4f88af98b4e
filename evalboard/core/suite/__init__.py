"""Read suites and their policies (docs/suites.md), and recorded production requests (docs/node.md)."""

from evalboard.core.suite.chat_body import ChatBody, read_chat_body
from evalboard.core.suite.lines import dump_case, dump_header
from evalboard.core.suite.mapping import SuiteMapping, parse_mapping
from evalboard.core.suite.parts import PartOfSuite, digest_parts, parse_head, parse_part
from evalboard.core.suite.policy import (
    ALPHAS,
    DEFAULT_POLICIES,
    DEFAULT_POLICY,
    LOOKS,
    SAMPLED_POLICY,
    TARGETED_ALPHA,
    TARGETED_REPEATS,
    PolicySettings,
    default_policy,
    parse_policy,
)
from evalboard.core.suite.suite import (
    DEFAULT_MAX_TOKENS,
    RESERVED,
    CaseDocument,
    PolicyDocument,
    SuiteDocument,
    SuiteHead,
    parse_suite,
    read_lines,
    read_suite_json,
)
from evalboard.core.suite.text import (
    COLUMNS,
    FORMATS,
    SuiteText,
    decode_suite,
    parse_columns,
    parse_scorer,
    read_suite_jsonl,
    read_suite_text,
)

__all__ = [
    "ALPHAS",
    "COLUMNS",
    "DEFAULT_MAX_TOKENS",
    "DEFAULT_POLICIES",
    "DEFAULT_POLICY",
    "FORMATS",
    "LOOKS",
    "RESERVED",
    "SAMPLED_POLICY",
    "TARGETED_ALPHA",
    "TARGETED_REPEATS",
    "CaseDocument",
    "ChatBody",
    "PartOfSuite",
    "PolicyDocument",
    "PolicySettings",
    "SuiteDocument",
    "SuiteHead",
    "SuiteMapping",
    "SuiteText",
    "decode_suite",
    "default_policy",
    "digest_parts",
    "dump_case",
    "dump_header",
    "parse_columns",
    "parse_head",
    "parse_mapping",
    "parse_part",
    "parse_policy",
    "parse_scorer",
    "parse_suite",
    "read_chat_body",
    "read_lines",
    "read_suite_json",
    "read_suite_jsonl",
    "read_suite_text",
]
