"""Endpoints and profiles as the settings page and the start-a-run form show them."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from runs.models import Endpoint, Profile


@dataclass(frozen=True, slots=True)
class EndpointRow:
    slug: str
    engine: str
    model_name: str
    model: str
    revision: str
    dtype: str
    quantization: str
    line: str
    max_model_len: int
    pool: str


@dataclass(frozen=True, slots=True)
class ProfileRow:
    """The newest version of a profile."""

    slug: str
    version: int
    title: str
    settings: dict[str, Any]
    digest: str
    created_at: datetime


def endpoint_rows() -> tuple[EndpointRow, ...]:
    """All endpoints by slug."""
    return tuple(map(endpoint_row, Endpoint.objects.order_by("slug")))


def profile_rows() -> tuple[ProfileRow, ...]:
    """The newest version of every profile, by slug."""
    return tuple(map(profile_row, Profile.objects.order_by("slug", "-version").distinct("slug")))


def endpoint_row(endpoint: Endpoint) -> EndpointRow:
    return EndpointRow(
        slug=endpoint.slug,
        engine=endpoint.engine,
        model_name=endpoint.model_name,
        model=endpoint.model_repo or endpoint.model_path,
        revision=endpoint.model_revision,
        dtype=endpoint.dtype,
        quantization=endpoint.quantization,
        line=endpoint.line,
        max_model_len=endpoint.max_model_len,
        pool=endpoint.pool,
    )


def profile_row(profile: Profile) -> ProfileRow:
    return ProfileRow(
        profile.slug, profile.version, profile.title, profile.settings, profile.digest, profile.created_at
    )
