"""Content of messages and of call outputs as chat content: a string where it is all text, else an array of parts.

A string, because there are servers (DeepSeek's, for one) and templates that read nothing else; texts are joined by a
line end, as vLLM and llama.cpp do with an array. A refusal is sent as the text that the model said in its place: the
field that the API has for it is read by no template. Source: API reference, "messages" of the chat completion.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attache_core.json_codec import Json
from attache_core.turn.chat_completions.not_expressible import not_expressible


def chat_content(content: object) -> str | list[Json]:
    """`content` of a message, or `output` of a call.

    Raises:
        ClientError: a part has no counterpart.
    """
    if not isinstance(content, list):
        return "" if content is None else str(content)
    return joined_content([_part(part) for part in content])


def joined_content(parts: list[Json]) -> str | list[Json]:
    """Parts of chat content as one value."""
    if any(part["type"] != "text" for part in parts):
        return parts
    return "\n".join(str(part["text"]) for part in parts)


def content_parts(content: str | list[Json]) -> list[Json]:
    """The other way round; an empty text is no part."""
    if isinstance(content, str):
        return [text_part(content)] if content else []
    return content


def text_part(text: object) -> Json:
    """A part that is text."""
    return {"type": "text", "text": text}


def _part(part: Json) -> Json:
    kind = part.get("type")
    convert = _PARTS.get(str(kind))
    if convert is None:
        raise not_expressible(f"A content part of type '{kind}'", "input")
    return convert(part)


def _text(part: Json) -> Json:
    return text_part(part.get("text"))


def _refusal(part: Json) -> Json:
    return text_part(part.get("refusal"))


def _image(part: Json) -> Json:
    url = part.get("image_url")
    if url is None:
        message = "Send the image as a URL or a data URL in 'image_url'."
        raise not_expressible("An image by 'file_id'", "input", message)
    detail = {"detail": part["detail"]} if part.get("detail") is not None else {}
    return {"type": "image_url", "image_url": {"url": url, **detail}}


def _file(part: Json) -> Json:
    data = part.get("file_data")
    if data is None:
        source = "file_id" if part.get("file_id") is not None else "file_url"
        message = "Send its content as a data URL in 'file_data'."
        raise not_expressible(f"A file by '{source}'", "input", message)
    named = {"filename": part["filename"]} if part.get("filename") is not None else {}
    return {"type": "file", "file": {"file_data": data, **named}}


_PARTS: Final[dict[str, Callable[[Json], Json]]] = {
    "input_text": _text,
    "output_text": _text,
    "refusal": _refusal,
    "input_image": _image,
    "input_file": _file,
}
