"""Settings. Machines differ by environment only; a bad value stops the start and is named.

docs/settings.md lists every variable; a test keeps it true.
"""

from pathlib import Path

from csp.constants import NONCE, NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from environs import Env, EnvError

BASE_DIR = Path(__file__).resolve().parent.parent
LOCAL_HOSTS = {"127.0.0.1", "localhost", "[::1]", "::1"}

env = Env()
try:
    DATA_DIR = Path(env.str("EVALBOARD_DATA_DIR", str(BASE_DIR / "data"))).resolve()
    DEBUG = env.bool("EVALBOARD_DEBUG", False)
    ALLOWED_HOSTS = env.list("EVALBOARD_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
    SECRET_KEY = env.str("EVALBOARD_SECRET_KEY", "")
    DATABASES = {
        "default": env.dj_db_url("DATABASE_URL", "postgres://postgres@127.0.0.1:5432/evalboard", conn_max_age=60)
    }
    # The interpreter that has vLLM; the engine's pins are its own, so it never is ours.
    VLLM_PYTHON = env.str("EVALBOARD_VLLM_PYTHON", str(BASE_DIR / ".venv-engine" / "bin" / "python"))
    # Folders that a run's or an endpoint's model path must lie under.
    MODEL_ROOTS = [Path(root).resolve() for root in env.list("EVALBOARD_MODEL_ROOTS", [str(DATA_DIR / "models")])]
    LEASE_SECONDS = env.float("EVALBOARD_LEASE_SECONDS", 90.0)
    HEARTBEAT_SECONDS = env.float("EVALBOARD_HEARTBEAT_SECONDS", 10.0)
    # A response that takes longer than this ends as `timeout`, and the engine is started afresh.
    RESPONSE_SECONDS = env.float("EVALBOARD_RESPONSE_SECONDS", 600.0)
    ENGINE_START_SECONDS = env.float("EVALBOARD_ENGINE_START_SECONDS", 900.0)
    SELF_CHECK_SECONDS = env.float("EVALBOARD_SELF_CHECK_SECONDS", 600.0)
except EnvError as problem:
    raise ImproperlyConfigured(f"A setting cannot be read: {problem}") from problem

if not SECRET_KEY:
    if not set(ALLOWED_HOSTS) <= LOCAL_HOSTS:
        raise ImproperlyConfigured("EVALBOARD_SECRET_KEY is empty; set 50 or more random characters.")
    SECRET_KEY = "local-only-" + "0" * 50  # sessions are signed with a random key by `evalboard up`
if HEARTBEAT_SECONDS * 3 > LEASE_SECONDS:
    raise ImproperlyConfigured(
        f"EVALBOARD_HEARTBEAT_SECONDS={HEARTBEAT_SECONDS} must be at most a third of "
        f"EVALBOARD_LEASE_SECONDS={LEASE_SECONDS}, or one late beat loses a shard."
    )

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
    "runs",
    "frontend",
]
MIDDLEWARE = [
    "runs.middleware.RequestIdMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "frontend.middleware.ErrorPages",
]
AUTHENTICATION_BACKENDS = [
    "django.contrib.auth.backends.ModelBackend",
    "sesame.backends.ModelBackend",
]
SESAME_ONE_TIME = True
SESAME_MAX_AGE = 24 * 3600

ROOT_URLCONF = "evalboard.urls"
WSGI_APPLICATION = "evalboard.wsgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "csp.context_processors.nonce",
                "frontend.context.page_context",
            ],
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
SESSION_COOKIE_NAME = "evalboard_session"
CSRF_COOKIE_NAME = "evalboard_csrf"
CSRF_FAILURE_VIEW = "frontend.views.errors.csrf_failure"
SECURE_REFERRER_POLICY = "same-origin"

LANGUAGE_CODE = "en"
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "frontend.finders.PlotlyFinder",
]
WHITENOISE_USE_FINDERS = True
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
    "DEFAULT_PERMISSION_CLASSES": ["runs.api.permissions.RoleOrScope"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["runs.api.parsers.StrictJson"],
    "DEFAULT_METADATA_CLASS": None,
    "EXCEPTION_HANDLER": "runs.api.problems.answer",
    "STRICT_JSON": True,
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_id": {"()": "runs.middleware.RequestIdFilter"}},
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s [%(request_id)s] %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["request_id"]}},
    "root": {"handlers": ["console"], "level": "INFO"},
}
