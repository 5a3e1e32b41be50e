"""`truncation: auto` through the whole gateway: a conversation that has become too long is answered all the same."""

from __future__ import annotations

from collections.abc import Callable

from attache_core.json_codec import Json, encode
from attache_core.testing.model_script import Reply, call, function_calls, http_error, text
from attache_core.testing.model_server import ReceivedRequest
from e2e.stage import Stage, check

TOO_LONG: Json = {
    "error": {
        "message": "This model's maximum context length is 100 tokens. However, you requested 200 tokens.",
        "type": "BadRequestError",
        "code": 400,
    }
}


def with_room(max_bytes: int, *replies: Reply) -> Callable[[ReceivedRequest], Reply]:
    """A model that refuses what is longer, as vLLM does, and says these one after the other to the rest."""
    left = iter(replies)

    def reply(request: ReceivedRequest) -> Reply:
        return next(left) if len(encode(request.body["input"])) <= max_bytes else http_error(400, TOO_LONG)

    return reply


def user(said: str) -> Json:
    return {"type": "message", "role": "user", "content": said}


async def test_conversation_that_is_too_long_loses_its_oldest_turns_for_the_model_alone(
    stage: Stage, stream: bool
) -> None:
    stage.model.set(with_room(600, text("First."), text("Second.")))
    first = check(await stage.ask(input="Words. " * 60, stream=stream))

    second = check(
        await stage.ask(input="And?", previous_response_id=first.body["id"], truncation="auto", stream=stream)
    )

    assert (second.text, second.body["truncation"]) == ("Second.", "auto")
    assert [len(asked["input"]) for asked in stage.model.asked[1:]] == [3, 1]
    assert "truncation" not in stage.model.asked[-1]
    assert (await stage.get(f"/v1/responses/{second.body['id']}")).json()["previous_response_id"] == first.body["id"]


async def test_results_of_tools_that_become_too_many_are_dropped_with_their_calls(stage: Stage, stream: bool) -> None:
    calls = [function_calls(call("echo", {"text": f"{number} " * 60})) for number in range(4)]
    stage.model.set(with_room(1200, *calls, text("Done.")))

    answer = check(await stage.ask(input="Echo.", tools=[stage.mcp_tool()], truncation="auto", stream=stream))

    assert answer.text == "Done."
    assert answer.item_types == ["mcp_list_tools", *["mcp_call"] * 4, "message"]
    last = stage.model.asked[-1]["input"]
    assert [item.get("type", "message") for item in last] == ["message", *["function_call", "function_call_output"] * 2]
    assert last[0]["content"] in ("Echo.", [{"type": "input_text", "text": "Echo."}])


async def test_conversation_that_is_too_long_is_refused_where_nothing_is_to_be_dropped(
    stage: Stage, stream: bool
) -> None:
    stage.model.set(with_room(600))

    for truncation in ("auto", "disabled"):
        items = [user("Words. " * 100)] if truncation == "auto" else [user("Words."), user("Words. " * 100)]
        answer = await stage.ask(input=items, truncation=truncation, stream=stream)

        assert (answer.status, answer.body["error"]["code"]) == (400, "context_length_exceeded")
    assert len(stage.model.asked) == 2
