"""Plays a recording of OpenAI's conversations against a stage: the same requests, and answers that must be the same.

Ids are the gateway's own: where the recording has one in an answer, ours is learnt there and sent from then on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from attache_core.json_codec import Json, decode, encode
from attache_core.testing.model_script import text
from core.events.recordings import CASSETTES
from e2e.stage import Stage, answered

_TIMES = ("created_at", "completed_at")


def recorded_turns(path: str) -> list[Json]:
    """The requests and answers of one file."""
    turns: list[Json] = yaml.load((CASSETTES / path).read_bytes(), Loader=yaml.CSafeLoader)["turns"]
    return turns


@dataclass
class Replay:
    """What is known so far of which id of ours stands for which of the recording."""

    stage: Stage
    ids: dict[str, str] = field(default_factory=dict)

    async def play(self, turn: Json) -> None:
        """Send one recorded request; its answer is as recorded."""
        request, response = turn["request"], turn["response"]
        if request["path"] == "/v1/responses":
            await self._play_response(request["body"], _final(response))
            return
        answer = await self.stage.client.request(
            request["method"],
            self._ours(request["path"]),
            params=decode(self._ours(encode(request["query_params"]).decode())),
            content=self._ours(encode(request["body"]).decode()) if request["method"] == "POST" else None,
            headers={"content-type": "application/json"},
        )
        assert answer.status_code == response["status_code"], answer.text
        self._learn(response["body"], answer.json())
        expected = decode(self._ours(encode(response["body"]).decode()))
        assert _timeless(answer.json()) == _timeless(expected)

    async def _play_response(self, body: Json, recorded: Json) -> None:
        said = "".join(part["text"] for item in recorded["output"] for part in item["content"])
        self.stage.model.play(text(said))
        answer = answered(
            await self.stage.client.post(
                "/v1/responses",
                content=self._ours(encode(body).decode()),
                headers={"content-type": "application/json"},
            )
        )
        assert answer.status == 200, answer.body
        self.ids[recorded["id"]] = answer.body["id"]
        self._learn(recorded["output"], answer.body["output"])
        for name in ("conversation", "previous_response_id", "store", "status"):
            expected = decode(self._ours(encode([recorded.get(name)]).decode()))
            assert [answer.body[name]] == expected, name
        assert (answer.text, len(self.stage.model.asked)) == (said, 1)

    def _learn(self, recorded: Any, ours: Any) -> None:
        if isinstance(recorded, Mapping) and isinstance(ours, Mapping):
            if "id" in recorded and "id" in ours:
                self.ids.setdefault(recorded["id"], ours["id"])
            for name in recorded.keys() & ours.keys():
                self._learn(recorded[name], ours[name])
        elif isinstance(recorded, list) and isinstance(ours, list):
            for one, other in zip(recorded, ours, strict=False):
                self._learn(one, other)

    def _ours(self, said: str) -> str:
        return re.sub(r"\b[a-z]+_[0-9a-f]{40,}\b", lambda found: self.ids.get(found[0], found[0]), said)


def _final(response: Json) -> Json:
    if "sse" not in response:
        body: Json = response["body"]
        return body
    (last,) = [line for line in response["sse"] if line.startswith("data:") and '"response.completed"' in line]
    final: Json = decode(last.removeprefix("data:"))["response"]
    return final


def _timeless(body: Json) -> Json:
    return {name: value for name, value in body.items() if name not in _TIMES}
