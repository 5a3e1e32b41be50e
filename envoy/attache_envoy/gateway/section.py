"""What all parts of the gateway file have in common: unknown keys are refused, and the known ones are named."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ModelWrapValidatorHandler, ValidationError, model_validator

from attache_envoy.gateway.problems import in_our_words


class Section(BaseModel):
    """Base class of the parts of the gateway file. Field docstrings are the reference documentation of the keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)

    @model_validator(mode="wrap")
    @classmethod
    def _name_known_keys(cls, data: Any, handler: ModelWrapValidatorHandler[Any]) -> Any:  # noqa: ANN401 - any input
        try:
            return handler(data)
        except ValidationError as error:
            raise in_our_words(error, cls.model_fields) from None
