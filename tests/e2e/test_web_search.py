"""Web search through the whole gateway, against a scripted provider and a scripted web."""

from __future__ import annotations

from pathlib import Path

import pytest

from attache_core.testing.model_script import call, function_calls, text
from attache_core.testing.search_server import WebAnswer, running_search_server, web_json, web_page
from attache_core.tools.web_search.item import DONE
from e2e.stage import check, open_stage

CANARY = "canary-9b42e7"
TEA = "https://h.test/tea"
TOOL = {"type": "web_search", "search_context_size": "low"}


async def test_web_is_searched_and_read_and_cited_and_the_key_shown_to_nobody_but_the_provider(
    placement: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    found = web_json({"web": {"results": [{"url": TEA, "title": "Tea", "description": "It is hot."}]}})
    async with running_search_server({"/res/v1/web/search": found, "/a": web_page("<p>Green tea.")}) as web:
        section = (
            f"web_search: {{provider: brave, api_key: {CANARY}, url: '{web.url}', allow_private_addresses: true}}\n"
        )
        async with open_stage(placement, tmp_path, gateway_yaml=section) as stage:
            for stream in (False, True):
                web.requests.clear()
                stage.model.play(
                    function_calls(
                        call("web_search", {"action": {"type": "search", "queries": ["tea", "hot"]}}),
                        call("web_search", {"action": {"type": "open_page", "url": f"{web.url}/a"}}),
                    ),
                    text(f"Hot ([h]({TEA}))."),
                    text("As I said."),
                )
                answer = check(await stage.ask(input="Is tea hot?", tools=[TOOL], stream=stream))
                search, opened, said = answer.body["output"]
                assert search["action"] == {"type": "search", "query": "tea", "queries": ["tea", "hot"]}
                assert opened["action"] == {"type": "open_page", "url": f"{web.url}/a"}
                assert [note["url"] for note in said["content"][0]["annotations"]] == [TEA]
                told = [item["output"] for item in stage.model.asked[1]["input"] if "output" in item]
                assert ["It is hot." in told[0], "Green tea." in told[1]] == [True, True]
                tokens = [asked.headers.get("x-subscription-token") for asked in web.requests]
                assert sorted(map(str, tokens)) == ["None", CANARY, CANARY]
                assert answer.body["tool_usage"]["web_search"] == {"num_requests": 2}
                assert (await stage.get(f"/v1/responses/{answer.body['id']}")).json() == answer.body

                more = check(await stage.ask(input="So?", previous_response_id=answer.body["id"], stream=stream))
                assert more.text == "As I said."
                assert [item["output"] for item in stage.model.asked[2]["input"] if "output" in item] == [DONE, DONE]
                assert CANARY not in repr([answer.body, answer.events, more.body, stage.model.asked])
            stored = b"".join(stage.storage.with_name(name).read_bytes() for name in ("attache.db", "attache.db-wal"))
            assert CANARY not in repr(stage.settings) + stage.settings.model_dump_json()
    assert CANARY.encode() not in stored
    assert CANARY not in capfd.readouterr().err


async def test_provider_that_fails_and_a_page_inside_are_told_to_the_model_and_the_turn_goes_on(
    placement: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    limited = WebAnswer(CANARY.encode(), 429, {"retry-after": "3"})
    async with running_search_server({"/search": limited}) as web:
        section = f"web_search: {{provider: tavily, api_key: {CANARY}, url: '{web.url}'}}\n"
        async with open_stage(placement, tmp_path, gateway_yaml=section) as stage:
            for stream in (False, True):
                stage.model.play(
                    function_calls(
                        call("web_search", {"action": {"type": "search", "queries": ["tea"]}}),
                        call("web_search", {"action": {"type": "open_page", "url": "http://[::ffff:7f00:1]/"}}),
                    ),
                    text("Sorry."),
                )
                answer = check(await stage.ask(input="Is tea hot?", tools=[TOOL], stream=stream))
                assert [item["status"] for item in answer.body["output"]] == ["failed", "failed", "completed"]
                told = [item["output"] for item in stage.model.asked[1]["input"] if "output" in item]
                assert told[0] == "The search provider's rate limit is reached; it may answer again in 3 s."
                assert "web_search.allow_private_addresses would allow it" in told[1]
                assert CANARY not in repr([answer.body, answer.events, stage.model.asked])
    assert CANARY not in capfd.readouterr().err
