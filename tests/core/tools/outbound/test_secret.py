from __future__ import annotations

import copy
import json
import logging
import pickle
from dataclasses import asdict, dataclass

import orjson
import pytest
from pydantic import BaseModel, ValidationError

from attache_core.secret import REVEALING, Secret
from attache_core.tools.outbound.credentials import Credentials
from attache_core.tools.outbound.secret import ApiKey, redacted

CANARY = "canary-7f3a"
SECRETS = [Secret(CANARY), ApiKey(CANARY), Credentials({"x-key": CANARY}, CANARY)]


class Settings(BaseModel):
    api_key: ApiKey


@dataclass(frozen=True, slots=True)
class Holder:
    secret: object


@pytest.mark.parametrize("secret", SECRETS, ids=lambda secret: type(secret).__name__)
class TestPrinted:
    def test_secret_prints_as_its_type_and_a_placeholder(self, secret: Secret[object]) -> None:
        shown = f"{type(secret).__name__}([redacted])"
        printed = [repr(secret), str(secret), f"{secret}", f"{secret!r:>4}", format(secret, ""), "%s" % secret]  # noqa: UP031
        assert printed == [shown] * 6

    def test_secret_inside_other_values_prints_as_a_placeholder(self, secret: Secret[object]) -> None:
        values = [[secret], {"k": secret}, Holder(secret), asdict(Holder(secret)), copy.deepcopy(secret)]
        assert not [value for value in values if CANARY in f"{value!r} {value}"]

    def test_secret_is_neither_pickled_nor_encoded(self, secret: Secret[object]) -> None:
        for encode in (pickle.dumps, json.dumps, orjson.dumps, lambda value: value.__reduce_ex__(4)):
            with pytest.raises(TypeError) as raised:
                encode(secret)
            assert CANARY not in str(raised.value)

    def test_secret_in_a_log_line_is_a_placeholder(
        self, secret: Secret[object], caplog: pytest.LogCaptureFixture
    ) -> None:
        logging.getLogger("test").warning("asked with %s and %r", secret, {"credentials": secret})
        assert CANARY not in caplog.text


def test_key_is_read_from_settings_and_hidden_when_they_are_dumped() -> None:
    settings = Settings.model_validate({"api_key": CANARY})
    shown = [repr(settings), str(settings), str(settings.model_dump()), settings.model_dump_json()]
    assert (settings.api_key.reveal(), [text for text in shown if CANARY in text]) == (CANARY, [])
    assert settings.model_dump(mode="json") == {"api_key": "[redacted]"}


def test_dump_for_a_process_of_ours_reads_back_as_the_same_settings() -> None:
    settings = Settings.model_validate({"api_key": CANARY})
    assert Settings.model_validate_json(settings.model_dump_json(context={REVEALING: True})) == settings
    assert Settings.model_validate(settings.model_dump()) == settings


@pytest.mark.parametrize("wrong", [{"api_key": ""}, {"api_key": [CANARY]}, {}])
def test_key_that_is_no_text_is_refused(wrong: object) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate(wrong)


@pytest.mark.parametrize("key", [f"{CANARY}\n", f" {CANARY}", f"{CANARY}\r\nx-a: b", f"{CANARY}\u00e9"])
def test_key_that_no_header_can_hold_is_refused_and_not_repeated(key: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate({"api_key": key})
    [error] = refused.value.errors(include_input=False)
    assert CANARY not in str(error)
    assert "printable ASCII" in error["msg"]


def test_echoed_secrets_and_their_parts_are_taken_out_of_a_text() -> None:
    given = Credentials({"Cookie": "session=abcdef; a=xy"}, "tok-123")
    text = "Bearer tok-123 was sent with session=abcdef; a=xy and abcdef, xy."
    assert given.redact(text) == "[redacted] was sent with [redacted] and [redacted], xy."
    assert redacted("basic Zm9v", ["basic Zm9v"]) == "[redacted]"


def test_credentials_give_their_headers_in_lower_case_and_a_copy_of_them() -> None:
    given = Credentials({"X-Key": "1", "Authorization": "Basic x"}, "t")
    given.reveal().clear()
    assert given.reveal() == {"x-key": "1", "authorization": "Bearer t"}
