"""Settings. Machines differ by environment only; a bad value stops the start and is named.

docs/settings.md lists every variable; a test keeps it true. The value of NAME may also stand in a file that NAME_FILE
names, as orchestrators hand over secrets.
"""

import gc
import secrets
from datetime import timedelta
from pathlib import Path
from typing import Any

from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from environs import EnvError, FileAwareEnv, validate
from redis.backoff import NoBackoff
from redis.retry import Retry

from evalboard import oidc, safety
from evalboard.core.secret_names import read_key_patterns

gc.disable()  # imports leave no garbage, and collecting takes a quarter of a start; runs/apps.py enables it
BASE_DIR = Path(__file__).resolve().parent.parent

env = FileAwareEnv(strip_whitespace=True)
try:
    DATA_DIR = Path(env.str("EVALBOARD_DATA_DIR", str(BASE_DIR / "data"))).resolve()
    DEBUG = env.bool("EVALBOARD_DEBUG", False)
    HOSTS = [host.strip() for host in env.list("EVALBOARD_HOSTS", list(safety.LOCAL_HOSTS))]
    SECRET_KEY = env.str("EVALBOARD_SECRET_KEY", "")
    # Whether a proxy terminates TLS. None: not set, which is allowed for local hosts only.
    HTTPS = env.bool("EVALBOARD_HTTPS", None)
    DATABASES = {
        "default": env.dj_db_url(
            "DATABASE_URL",
            "postgres://postgres@127.0.0.1:5432/evalboard",
            conn_max_age=60,
            conn_health_checks=True,  # else the next request of each thread fails after a database restart
        )
    }
    # Whether PgBouncer or another pooler gives each transaction a connection: then cursors do not outlive one.
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = env.bool("EVALBOARD_DATABASE_POOLED", False)
    # Limit of one statement of the web server; 0: none. Other processes have no limit.
    STATEMENT_SECONDS = env.float("EVALBOARD_STATEMENT_SECONDS", 15.0, validate=validate.Range(min=0))
    # Wakes the workers of a team. Without Redis, workers poll the database every second.
    REDIS_URL = env.str("REDIS_URL", "")
    REDIS_SECONDS = env.float("EVALBOARD_REDIS_SECONDS", 2.0)
    # Requests per minute of one token or person, by scope; 0: no limit.
    RATES = {
        "read": env.int("EVALBOARD_RATE_READ", 6000, validate=validate.Range(min=0)),
        "run": env.int("EVALBOARD_RATE_RUN", 600, validate=validate.Range(min=0)),
        "sign": env.int("EVALBOARD_RATE_SIGN", 120, validate=validate.Range(min=0)),
        "admin": env.int("EVALBOARD_RATE_ADMIN", 300, validate=validate.Range(min=0)),
    }
    # How often a team's workers poll if Redis does not wake them, and how often everything is swept.
    LOOK_SECONDS = env.float("EVALBOARD_LOOK_SECONDS", 15.0)
    RECONCILE_SECONDS = env.float("EVALBOARD_RECONCILE_SECONDS", 15.0)
    UNCONFINED_SCORERS = env.bool("EVALBOARD_UNCONFINED_SCORERS", False)
    # Programs and addresses of teams' own scorers, which the operator puts there.
    SCORERS_DIR = Path(env.str("EVALBOARD_SCORERS_DIR", str(DATA_DIR / "scorers")))
    # The interpreter with vLLM. It is a separate one because the engine pins its own packages.
    VLLM_PYTHON = env.str("EVALBOARD_VLLM_PYTHON", str(BASE_DIR / ".venv-engine" / "bin" / "python"))
    # Model paths of runs and endpoints must be inside these folders.
    _roots = env.list("EVALBOARD_MODEL_ROOTS", [str(DATA_DIR / "models")])
    MODEL_ROOTS = [Path(root).resolve() for root in _roots if not root.startswith("s3://")]
    MODEL_BUCKETS = [root.rstrip("/") for root in _roots if root.startswith("s3://")]
    # GiB on a worker's disk of models fetched from buckets; 0: no limit. The engine's process reads it.
    MODEL_CACHE_GB = env.float("EVALBOARD_MODEL_CACHE_GB", 0.0, validate=validate.Range(min=0))
    # Largest upload of logs in one request. Readers unpack at most 512 MiB.
    MAX_IMPORT_BYTES = env.int("EVALBOARD_MAX_IMPORT_MB", 512, validate=validate.Range(min=1)) * 2**20
    # Larger logs are read after their request was answered, by a process of its own.
    IMPORT_WAIT_BYTES = env.int("EVALBOARD_IMPORT_WAIT_MB", 8, validate=validate.Range(min=0)) * 2**20
    # Limits of the process that reads one import. A proxy must wait longer than IMPORT_SECONDS.
    IMPORT_SECONDS = env.int("EVALBOARD_IMPORT_SECONDS", 240, validate=validate.Range(min=1))
    IMPORT_CPU_SECONDS = env.int("EVALBOARD_IMPORT_CPU_SECONDS", 120, validate=validate.Range(min=1))
    IMPORT_MEMORY_BYTES = env.int("EVALBOARD_IMPORT_MEMORY_MB", 2048, validate=validate.Range(min=256)) * 2**20
    # Most responses that one person's runs may have in the queue.
    MAX_QUEUED_RESPONSES = env.int("EVALBOARD_MAX_QUEUED_RESPONSES", 2_000_000, validate=validate.Range(min=1))
    LOG_FORMAT = env.str("EVALBOARD_LOG_FORMAT", "text", validate=validate.OneOf(["text", "json"]))
    LEASE_SECONDS = env.float("EVALBOARD_LEASE_SECONDS", 90.0)
    HEARTBEAT_SECONDS = env.float("EVALBOARD_HEARTBEAT_SECONDS", 10.0)
    # A slower response ends as `timeout`, and its engine is restarted.
    RESPONSE_SECONDS = env.float("EVALBOARD_RESPONSE_SECONDS", 600.0)
    # An external server's answer must begin within this time. Without streaming, it begins when it ends.
    FIRST_BYTE_SECONDS = env.float("EVALBOARD_FIRST_BYTE_SECONDS", RESPONSE_SECONDS)
    ENGINE_START_SECONDS = env.float("EVALBOARD_ENGINE_START_SECONDS", 900.0)
    # A failed engine start is retried after this pause, then after twice this pause; then the run fails.
    START_PAUSE_SECONDS = env.float("EVALBOARD_START_PAUSE_SECONDS", 5.0)
    # How long a worker is paused after its engine failed repeatedly.
    REST_SECONDS = env.float("EVALBOARD_REST_SECONDS", 600.0)
    SELF_CHECK_SECONDS = env.float("EVALBOARD_SELF_CHECK_SECONDS", 600.0)
    # Where collectstatic puts hashed and compressed static files. Unset, or under DEBUG, the sources are served.
    STATIC_DIR = "" if DEBUG else env.str("EVALBOARD_STATIC_DIR", "")
    # Number of proxies that append to X-Forwarded-For. Wrong passwords are counted per client address.
    PROXIES = env.int("EVALBOARD_PROXIES", 1 if HTTPS else 0, validate=validate.Range(min=0))
    # How long an unused session lasts, and how long a session lasts at most.
    SESSION_IDLE_HOURS = env.float("EVALBOARD_SESSION_IDLE_HOURS", 12.0, validate=validate.Range(min=0.01))
    SESSION_DAYS = env.float("EVALBOARD_SESSION_DAYS", 7.0, validate=validate.Range(min=0.01))
    # Address of the pages, for links in messages of webhooks.
    PUBLIC_ADDRESS = env.str("EVALBOARD_PUBLIC_ADDRESS", "").rstrip("/")
    # Whether a suite's badge is public, so that a readme can show it.
    PUBLIC_BADGES = env.bool("EVALBOARD_PUBLIC_BADGES", False)
    # Whether a second person must approve or waive a release.
    FOUR_EYES = env.bool("EVALBOARD_FOUR_EYES", False)
    # Hosts with private addresses that webhooks may reach.
    _private_hosts: list[str] = env.list("EVALBOARD_WEBHOOK_ALLOW_PRIVATE", [])
    WEBHOOK_ALLOW_PRIVATE = frozenset(host.strip().casefold().rstrip(".") for host in _private_hosts)
    # The mail server for notifications. Without a host, no e-mail is sent.
    EMAIL_HOST = env.str("EVALBOARD_EMAIL_HOST", "")
    EMAIL_PORT = env.int("EVALBOARD_EMAIL_PORT", 587, validate=validate.Range(min=1, max=65535))
    EMAIL_HOST_USER = env.str("EVALBOARD_EMAIL_USER", "")
    EMAIL_HOST_PASSWORD = env.str("EVALBOARD_EMAIL_PASSWORD", "")
    _email_security = env.str("EVALBOARD_EMAIL_TLS", "starttls", validate=validate.OneOf(["starttls", "tls", "none"]))
    DEFAULT_FROM_EMAIL = env.str("EVALBOARD_EMAIL_FROM", "")
    # Hosts that external endpoints may have, and the folder where workers find files with their keys.
    ENDPOINT_HOSTS = safety.endpoint_hosts(
        env.list("EVALBOARD_ENDPOINT_HOSTS", []),
        hosts=HOSTS,
        own=safety.own_services(
            database=DATABASES["default"], redis_url=REDIS_URL, web_bind=env.str("EVALBOARD_WEB_BIND", "")
        ),
    )
    # Variables of a worker that endpoints may name for their keys.
    ENDPOINT_KEYS = read_key_patterns(env.list("EVALBOARD_ENDPOINT_KEYS", []))
    SECRETS_DIR = Path(env.str("EVALBOARD_SECRETS_DIR", "/run/secrets"))
    # Seals verdicts and sign-offs, so that one changed in the database is not shown: the key, then those before it.
    VERDICT_KEYS = safety.verdict_keys(
        env.str("EVALBOARD_VERDICT_KEY", ""), env.list("EVALBOARD_VERDICT_KEYS_BEFORE", [])
    )
    # Days that the audit trail keeps; 0: all.
    AUDIT_DAYS = env.int("EVALBOARD_AUDIT_DAYS", 0, validate=validate.Range(min=0))
    OIDC = oidc.read(env)
except (EnvError, ValueError) as problem:  # ValueError: a file that NAME_FILE names cannot be read
    raise ImproperlyConfigured(f"A setting cannot be read: {problem}") from problem

EMAIL_USE_TLS, EMAIL_USE_SSL, EMAIL_TIMEOUT = _email_security == "starttls", _email_security == "tls", 15
if 0 < AUDIT_DAYS < 90:
    raise ImproperlyConfigured(f"EVALBOARD_AUDIT_DAYS={AUDIT_DAYS} must be 0, which keeps all, or at least 90.")
if bool(EMAIL_HOST) != bool(DEFAULT_FROM_EMAIL):
    raise ImproperlyConfigured("Set both EVALBOARD_EMAIL_HOST and EVALBOARD_EMAIL_FROM, or neither.")
if refused := safety.refusal(hosts=HOSTS, debug=DEBUG, secret_key=SECRET_KEY, https=HTTPS):
    raise ImproperlyConfigured(refused)
# Health checks use the local names.
ALLOWED_HOSTS = list(dict.fromkeys([*HOSTS, *safety.LOCAL_HOSTS]))
HAS_SECRET_KEY = bool(SECRET_KEY)
if not HAS_SECRET_KEY:
    SECRET_KEY = secrets.token_urlsafe(64)  # of this process only; a web server needs its own
# A dead connection must not hang a process forever, nor block a shard by the open transaction of a lost process.
DATABASES["default"]["OPTIONS"] = {
    "connect_timeout": 5,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
    "options": f"-c idle_in_transaction_session_timeout={int(LEASE_SECONDS * 1000)}",
    **DATABASES["default"].get("OPTIONS", {}),  # what DATABASE_URL sets
}
if HEARTBEAT_SECONDS * 3 > LEASE_SECONDS:
    raise ImproperlyConfigured(
        f"EVALBOARD_HEARTBEAT_SECONDS={HEARTBEAT_SECONDS} must be at most a third of "
        f"EVALBOARD_LEASE_SECONDS={LEASE_SECONDS}, or one late beat loses a shard."
    )

# Counts requests, shared if there is a Redis. Losing it does no harm.
CACHES: dict[str, dict[str, Any]] = {
    "default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache", "LOCATION": "default"},
    "counters": {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "LOCATION": "counters",
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    },
}


def counters_in(redis_url: str) -> dict[str, Any]:
    """Return the settings of a team's shared cache in Redis.

    A web request waits for it and can do without it: no second try, no long wait.
    """
    patience = min(REDIS_SECONDS, 0.5)
    return {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": redis_url,
        "KEY_PREFIX": "evb",
        "OPTIONS": {
            "serializer": "runs.store.counters.WholeNumbers",
            "retry": Retry(NoBackoff(), 0),
            "socket_connect_timeout": patience,
            "socket_timeout": patience,
        },
    }


if REDIS_URL:
    CACHES["counters"] = counters_in(REDIS_URL)

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "csp",
    "django_htmx",
    "rest_framework",
    "drf_spectacular",
    "axes",
    "runs",
    "frontend",
]
MIDDLEWARE = [
    "runs.health.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "runs.health.middleware.RequestTimes",  # after the static files, which are not counted
    "runs.audit.context.AuditTrail",  # before the sessions, whose writes it records
    "frontend.shell.middleware.CompressedPages",
    "csp.middleware.CSPMiddleware",
    "frontend.shell.middleware.PrivatePages",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "frontend.shell.middleware.SessionLimits",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "frontend.shell.middleware.NoNul",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "frontend.shell.middleware.ErrorPages",
    "axes.middleware.AxesMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "runs.access.login_guard.PasswordGuard",
    "django.contrib.auth.backends.ModelBackend",
    "sesame.backends.ModelBackend",
]
SESAME_ONE_TIME = True
SESAME_MAX_AGE = 24 * 3600
# Five wrong passwords for a name lock it for that client address for 15 minutes. The other limits are
# in runs/access/login_guard.py.
AXES_FAILURE_LIMIT = 5
AXES_COOLOFF_TIME = timedelta(minutes=15)
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_HANDLER = "runs.access.login_guard.Counts"
AXES_CLIENT_IP_CALLABLE = "runs.access.login_guard.counted_address"
AXES_WHITELIST_CALLABLE = "runs.access.login_guard.is_not_counted"
AXES_LOCKOUT_CALLABLE = "frontend.access.account_views.locked"
AXES_DISABLE_ACCESS_LOG = True  # sign-ins are not stored
AXES_VERBOSE = False
if OIDC:
    INSTALLED_APPS += oidc.APPS
    MIDDLEWARE += ["allauth.account.middleware.AccountMiddleware"]
    ACCOUNT_ADAPTER = "frontend.access.sso.Accounts"
    ACCOUNT_EMAIL_VERIFICATION = "none"  # the provider has verified it
    SOCIALACCOUNT_ADAPTER = "frontend.access.sso.SignIns"
    SOCIALACCOUNT_LOGIN_ON_GET = True
    SOCIALACCOUNT_PROVIDERS = oidc.providers(OIDC)

ROOT_URLCONF = "evalboard.urls"
WSGI_APPLICATION = "evalboard.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": sorted((BASE_DIR / "frontend").glob("*/templates")),
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "frontend.shell.context.page_context",
            ],
            "builtins": ["frontend.templatetags.terms"],
            # `{% load runs %}`: tags of one feature. Shared tags are in frontend/templatetags.
            "libraries": {
                path.parent.name: f"frontend.{path.parent.name}.tags"
                for path in sorted((BASE_DIR / "frontend").glob("*/tags.py"))
            },
        },
    }
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 12}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "/login/"
LOGIN_REDIRECT_URL = "/"
LOGOUT_REDIRECT_URL = "/login/"
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = round(SESSION_IDLE_HOURS * 3600)
SESSION_COOKIE_NAME = "evalboard_session"
CSRF_COOKIE_NAME = "evalboard_csrf"
CSRF_FAILURE_VIEW = "frontend.shell.errors.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"
if HTTPS:
    # The proxy sets this header on every request and removes the client's (docs/deploy.md).
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SECURE_SSL_REDIRECT = True
    # Called from inside, without the proxy.
    SECURE_REDIRECT_EXEMPT = [r"^api/v1/(health|ready)/?$", r"^metrics/?$"]
    SECURE_HSTS_SECONDS = 365 * 24 * 3600
    SESSION_COOKIE_SECURE = True
    CSRF_COOKIE_SECURE = True
    # Browsers accept these names only from this host and by TLS, so no other host of the domain can set them.
    SESSION_COOKIE_NAME = f"__Host-{SESSION_COOKIE_NAME}"
    CSRF_COOKIE_NAME = f"__Host-{CSRF_COOKIE_NAME}"
# Subdomains and preload lists are decisions of the domain's owner.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_I18N = False  # all texts are English, and looking up the language takes a quarter of a page's time
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = STATIC_DIR or None
FILE_UPLOAD_PERMISSIONS = None  # collected files get the umask's permissions, like other files
STATICFILES_DIRS = sorted((BASE_DIR / "frontend").glob("*/static"))
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "frontend.shell.static_files.ScriptFinder",
]
WHITENOISE_USE_FINDERS = not STATIC_DIR
if STATIC_DIR:
    STORAGES = {
        "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
        "staticfiles": {"BACKEND": "frontend.shell.static_files.HashedFiles"},
    }
    WHITENOISE_KEEP_ONLY_HASHED_FILES = True
DATA_UPLOAD_MAX_MEMORY_SIZE = 32 * 1024 * 1024

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF, NONCE],
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "runs.api.authentication.BearerToken",
        "runs.api.authentication.Session",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["runs.api.authentication.RoleOrScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["runs.api.parsers.StrictJson"],
    "DEFAULT_THROTTLE_CLASSES": ["runs.health.throttling.ByCallerAndScope"],
    "DEFAULT_METADATA_CLASS": None,
    "DEFAULT_SCHEMA_CLASS": "runs.api.schema.Described",
    "EXCEPTION_HANDLER": "runs.api.problems.answer",
    "STRICT_JSON": True,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "OAS_VERSION": "3.1.0",
    "PREPROCESSING_HOOKS": ["runs.api.schema.routes"],
    "POSTPROCESSING_HOOKS": ["runs.api.schema.finish"],
    "COMPONENT_SPLIT_REQUEST": True,
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "evalboard.request_ids.RequestIdFilter"}},
    "formatters": {
        "text": {
            "()": "evalboard.logs.TextLines",
            "format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s",
        },
        "json": {"()": "evalboard.logs.JsonFormatter"},
    },
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": LOG_FORMAT, "filters": ["request_id"]}},
    "root": {"handlers": ["console"], "level": "INFO"},
    "loggers": {
        "axes": {"level": "ERROR"},  # it logs the typed name; runs.login_guard logs the same without it
        "httpcore": {"level": "WARNING"},  # else it logs headers of answers, where a server may echo a key
        "httpx": {"level": "WARNING"},  # else it logs full addresses, including secret paths of webhooks
    },
}
