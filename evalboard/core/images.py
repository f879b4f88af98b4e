"""Check the content parts of a suite's messages, and name each image by the digest of its bytes."""

import base64
import binascii
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalboard.contract.suite_limits import MAX_IMAGE_BYTES, MAX_PARTS, MAX_TEXT_CHARS
from evalboard.core.document import Problems, at

STORED = "sha256:"
ELSEWHERE = "https://"
MAX_URL_CHARS = 2_000
DETAILS = ("low", "high", "auto")
NEEDS_EXTERNAL = "has an image, which only an external endpoint takes: our engine is given text alone"
# Media type → how such a file begins. A browser is given no other type.
_BEGINNINGS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF....WEBP", re.DOTALL),
}
_DATA = re.compile(r"data:(image/[a-z]+);base64,([A-Za-z0-9+/=]*)")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class Image:
    """An image. `digest`: SHA-256 of its bytes, in hexadecimal."""

    digest: str
    media_type: str
    data: bytes

    @property
    def url(self) -> str:
        """Return it as a data address, as servers take it."""
        return f"data:{self.media_type};base64,{base64.b64encode(self.data).decode()}"


def read_image(data: bytes) -> Image | None:
    """Return the image in these bytes; None if they begin like no type that is allowed."""
    media_type = next((name for name, begins in _BEGINNINGS.items() if begins.match(data)), None)
    return None if media_type is None else Image(hashlib.sha256(data).hexdigest(), media_type, data)


def read_parts(parts: Sequence[Any], path: str, problems: Problems, images: dict[str, Image]) -> list[Any]:
    """Return a message's content of text and images, with each image named by its digest.

    Problems are added to `problems`, and images that were sent as data addresses to `images`.
    """
    if not 1 <= len(parts) <= MAX_PARTS:
        problems.add(path, f"must be text, or a list of 1 to {MAX_PARTS} parts")
        return []
    read = [_read_part(part, f"{path}[{index}]", problems, images) for index, part in enumerate(parts)]
    if all(part.get("type") == "text" for part in read):
        problems.add(path, "is a list without an image; write its text as one string")
    return read


def _read_part(part: Any, path: str, problems: Problems, images: dict[str, Image]) -> dict[str, Any]:
    if isinstance(part, Mapping) and part.keys() == {"type", "text"} and part["type"] == "text":
        if not isinstance(part["text"], str) or len(part["text"]) > MAX_TEXT_CHARS:
            problems.add(at(path, "text"), f"must be text of at most {MAX_TEXT_CHARS} characters")
        return dict(part)
    given = part.get("image_url") if isinstance(part, Mapping) else None
    if not isinstance(given, Mapping) or part.get("type") != "image_url" or part.keys() != {"type", "image_url"}:
        problems.add(path, 'must be {"type": "text", "text"} or {"type": "image_url", "image_url": {"url"}}')
        return {}
    place = at(path, "image_url")
    if given.keys() - {"url", "detail"} or given.get("detail", "auto") not in DETAILS:
        problems.add(place, f"must have a url, and may have a detail: {', '.join(DETAILS)}")
    url = _read_url(given.get("url"), at(place, "url"), problems, images)
    return {"type": "image_url", "image_url": {**given, "url": url}}


def _read_url(url: Any, path: str, problems: Problems, images: dict[str, Image]) -> str:
    if isinstance(url, str) and (_DIGEST.fullmatch(url) or (url.startswith(ELSEWHERE) and len(url) <= MAX_URL_CHARS)):
        return url
    match = _DATA.fullmatch(url) if isinstance(url, str) else None
    if match is None:
        forms = f"must be data:image/…;base64,… or an {ELSEWHERE} address of at most {MAX_URL_CHARS:,} characters"
        problems.add(path, f"{forms}; the path of a file is read by `evalboard suite push`")
        return ""
    if len(match[2]) > MAX_IMAGE_BYTES * 4 // 3 + 4:
        problems.add(path, f"is larger than {MAX_IMAGE_BYTES:,} bytes")
        return ""
    try:
        image = read_image(base64.b64decode(match[2], validate=True))
    except binascii.Error:
        image = None
    if image is None or image.media_type != match[1]:
        problems.add(path, f"is not what it says; images are {', '.join(_BEGINNINGS)}, each with its own type")
        return ""
    images[image.digest] = image
    return f"{STORED}{image.digest}"


def prompt_text(content: Any) -> str:
    """Return a message's content as text, with [image] in the place of each image; parts of other kinds as JSON."""
    if not isinstance(content, list):
        return content if isinstance(content, str) else ""
    return "\n".join(map(_part_text, content))


def _part_text(part: Any) -> str:
    match part:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "image_url"}:
            return "[image]"
        case _:  # of a log, whose parts nothing has checked
            return json.dumps(part, sort_keys=True, ensure_ascii=False)


def find_images(messages: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the addresses of the images of messages: `sha256:…` or `https://…`."""
    for message in messages:
        content = message.get("content")
        for part in content if isinstance(content, list) else ():
            match part:
                case {"type": "image_url", "image_url": {"url": str(url)}}:
                    yield url


def replace_images(messages: Sequence[Mapping[str, Any]], address: Callable[[str], str]) -> list[dict[str, Any]]:
    """Return the messages with every image's address replaced by what `address` returns for it."""

    def replaced(part: Mapping[str, Any]) -> dict[str, Any]:
        if part.get("type") != "image_url":
            return dict(part)
        known = part["image_url"]
        return {**part, "image_url": {**known, "url": address(known["url"])}}

    return [
        {**message, "content": [*map(replaced, message["content"])]}
        if isinstance(message.get("content"), list)
        else dict(message)
        for message in messages
    ]


def put_images(messages: Sequence[Mapping[str, Any]], images: Mapping[str, Image]) -> list[dict[str, Any]]:
    """Return the messages with images in the place of their digests, as they are sent.

    images: digest → image.
    """
    urls = {f"{STORED}{digest}": image.url for digest, image in images.items()}
    return replace_images(messages, lambda url: urls.get(url, url))
