"""The reason inside exception groups."""

from __future__ import annotations

from attache_envoy.run.failure import GatewayFailed, sole_cause


def test_the_only_exception_of_nested_groups_is_the_cause() -> None:
    failed = GatewayFailed("gone")
    assert sole_cause(ExceptionGroup("outer", [ExceptionGroup("inner", [failed])])) is failed


def test_of_several_exceptions_the_group_is_the_cause() -> None:
    group = ExceptionGroup("both", [GatewayFailed("one"), GatewayFailed("two")])
    assert sole_cause(group) is group
