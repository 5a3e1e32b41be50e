"""What a requirement is: a promise of this project, where it comes from, and the tests that hold it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Requirement:
    """One promise.

    Attributes:
        id: unique; its first part says to which subject it belongs.
        source: where it comes from: a page of the API reference, a specification, a public bug of another project, or
            `design` where it is a decision of this project alone.
        says: one sentence.
        tests: beginnings of pytest node ids: a file, a class or function in it, or a folder that ends in `/`.
        divergence: where this project differs from OpenAI's API on purpose, and why.
    """

    id: str
    source: str
    says: str
    tests: tuple[str, ...]
    divergence: str | None = None


def within(file: str, *names: str) -> tuple[str, ...]:
    """The node ids of these tests of one file."""
    return tuple(f"{file}::{name}" for name in names)
