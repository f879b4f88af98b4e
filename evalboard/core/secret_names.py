"""Check names of secret worker variables, and recognise texts that look like keys.

No problem repeats what was written: people paste keys where their names belong.
"""

import re

ONLY_ITS_NAME = (
    "Only the name of the variable, such as OPENAI_API_KEY, or the absolute path of the file that holds the key on the "
    "worker belongs here, never the key itself."
)
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
# What else on a worker is secret and none of any provider's business.
RESERVED_VARIABLE = re.compile(r"EVALBOARD_.*|DATABASE_URL.*|REDIS_URL.*|PG[A-Z]*|DJANGO_.*|SECRET_KEY|CELERY_.*")
# Begins as keys of well-known providers do, and tokens of their kind.
KEY_PREFIX = re.compile(
    r"[Bb]earer |[Bb]asic |sk[-_]|pk[-_]|gsk_|hf_|xai-|ghp_|github_pat_|glpat-|AIza|eyJ|evb_|AKIA[A-Z0-9]{16}$"
)
LONG_KEY = re.compile(r"(?=.*[0-9])(?=.*[a-z])[a-z0-9_\-+/=.]{40,}", re.IGNORECASE)


def variable_problem(name: object) -> str | None:
    """Return why a worker's variable cannot be sent to an external server; None if it can."""
    if not isinstance(name, str) or not VARIABLE.fullmatch(name) or looks_like_key(name):
        return ONLY_ITS_NAME
    if RESERVED_VARIABLE.fullmatch(name):
        return "This variable is Evalboard's own and must not reach an external server; choose another name."
    return None


def looks_like_key(text: str) -> bool:
    """Tell whether a text looks like a key itself: by how it begins, or long and of letters and digits."""
    return bool(KEY_PREFIX.match(text) or (LONG_KEY.fullmatch(text) and not VARIABLE.fullmatch(text)))
