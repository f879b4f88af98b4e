"""How a function becomes an API view: it states the scope of each method, and nothing else is let in."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.utils.cache import patch_cache_control
from rest_framework.decorators import api_view, authentication_classes

from runs.access import roles

View = Callable[..., Any]


def resource(**scopes: str) -> Callable[[View], View]:
    """Make an API view of a function: one scope for each HTTP method that it answers, `GET="read"`.

    The answer carries `required_scope`, the attribute that every route must have, and `required_scopes`.
    """

    def decorate(function: View) -> View:
        view: Any = _kept_by_nobody_else(api_view(list(scopes))(function))
        view.cls.required_scopes = scopes
        view.cls.described = getattr(function, "described", {})  # for the schema: describe.py
        view.required_scopes = scopes
        view.required_scope = scopes.get("GET", next(iter(scopes.values())))
        return view  # type: ignore[no-any-return]

    return decorate


def _kept_by_nobody_else(view: View) -> View:
    """Forbid caches to store a view's answer or to reuse it without revalidation (etags.py).

    What one person may read must not be served to another.
    """

    @wraps(view)
    def answered(*args: Any, **kwargs: Any) -> Any:
        response = view(*args, **kwargs)
        tagged = response.has_header("ETag")
        patch_cache_control(response, private=True, **({"no_cache": True} if tagged else {"no_store": True}))
        return response

    return answered


def open_to_anyone(*methods: str) -> Callable[[View], View]:
    """Make an API view without authentication, so that it answers while the database is down."""

    def decorate(function: View) -> View:
        return resource(**dict.fromkeys(methods, roles.ANYONE))(authentication_classes([])(function))

    return decorate
