"""Check names of secret worker variables, and recognise texts that look like keys.

No problem repeats what was written: people paste keys where their names belong.
"""

import re
from collections.abc import Collection, Iterable

ONLY_ITS_NAME = (
    "Only the name of the variable, such as OPENAI_API_KEY, or the absolute path of the file that holds the key on the "
    "worker belongs here, never the key itself."
)
VARIABLE = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
# Which variables an endpoint may name: EVALBOARD_ENDPOINT_KEYS.
DEFAULT_KEYS = ("*_API_KEY",)
KEY_PATTERN = re.compile(r"(?=.*[A-Z])[A-Z0-9_*]{1,100}")
# What no pattern allows: Evalboard's own secrets, and files that a cluster or compose.yaml puts next to keys.
RESERVED_VARIABLE = re.compile(
    r"EVALBOARD_.*|DATABASE_URL.*|REDIS_URL.*|POSTGRES_.*|PG[A-Z]*|DJANGO_.*|SECRET_KEY|CELERY_.*"
)
OWN_FILE = re.compile(
    r"(?i)evalboard|(web_|worker_)?database_url|redis_|(postgres|web|worker|email)_password|secret_key|verdict_key|"
    r"oidc_client_secret"
)
SERVICE_ACCOUNT = "kubernetes.io"  # the folder of a pod's own credentials
# Begins as keys of well-known providers do, and tokens of their kind.
KEY_PREFIX = re.compile(
    r"[Bb]earer |[Bb]asic |sk[-_]|pk[-_]|gsk_|hf_|xai-|ghp_|github_pat_|glpat-|AIza|eyJ|evb_|AKIA[A-Z0-9]{16}$"
)
LONG_KEY = re.compile(r"(?=.*[0-9])(?=.*[a-z])[a-z0-9_\-+/=.]{40,}", re.IGNORECASE)


def read_key_patterns(named: Iterable[str]) -> tuple[str, ...]:
    """Return the variables that endpoints may name, as patterns with `*`. Raises ValueError.

    Without any, these are DEFAULT_KEYS.
    """
    patterns = tuple(pattern for text in named if (pattern := text.strip()))
    for pattern in patterns:
        if not KEY_PATTERN.fullmatch(pattern):
            raise ValueError(
                f"EVALBOARD_ENDPOINT_KEYS has {pattern[:80]!r}; list names of variables with commas, in capitals, with "
                "* for any characters, as in *_API_KEY,HF_TOKEN."
            )
    return patterns or DEFAULT_KEYS


def variable_problem(name: object, *, allowed: Collection[str] | None) -> str | None:
    """Return why a worker's variable cannot be sent to an external server; None if it can.

    allowed: the patterns of `read_key_patterns`; None where only the server knows them, which then decides.
    """
    if not isinstance(name, str) or not VARIABLE.fullmatch(name) or looks_like_key(name):
        return ONLY_ITS_NAME
    if RESERVED_VARIABLE.fullmatch(name):
        return "This variable is Evalboard's own and must not reach an external server; choose another name."
    if allowed is not None and not any(_matches(name, pattern) for pattern in allowed):
        return (
            f"Endpoints may not name the variable {name}. EVALBOARD_ENDPOINT_KEYS lists those that they may name: "
            f"{', '.join(sorted(allowed))}. The operator can add {name} to it, for the web server and for the workers."
        )
    return None


def is_own_file(path: str) -> bool:
    """Tell whether a file has a secret of Evalboard or of the cluster, by its path."""
    *folders, name = path.split("/")
    return bool(OWN_FILE.match(name)) or SERVICE_ACCOUNT in folders


def looks_like_key(text: str) -> bool:
    """Tell whether a text looks like a key itself: by how it begins, or long and of letters and digits."""
    return bool(KEY_PREFIX.match(text) or (LONG_KEY.fullmatch(text) and not VARIABLE.fullmatch(text)))


def _matches(name: str, pattern: str) -> bool:
    return re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), name) is not None
