"""Search everything that has a page by id, name, word, token, digest, request id or label."""

from runs.find.read import HITS_OF_ALL, HITS_OF_ONE, count_responses, search
from runs.find.wanted import NARROWING, Wanted, parse_wanted

__all__ = ["HITS_OF_ALL", "HITS_OF_ONE", "NARROWING", "Wanted", "count_responses", "parse_wanted", "search"]
