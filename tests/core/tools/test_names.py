from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from attache_core.tools.names import is_valid_name, model_names


def test_valid_and_unique_name_stays_as_it_is() -> None:
    assert model_names([("a", "search"), ("b", "read-file_2")], taken=()) == ["search", "read-file_2"]


def test_same_name_on_two_servers_gets_both_labels_whatever_their_order() -> None:
    assert model_names([("a", "search"), ("b", "search")], taken=()) == ["a__search", "b__search"]
    assert model_names([("b", "search"), ("a", "search")], taken=()) == ["b__search", "a__search"]


def test_name_of_a_function_gives_way_to_the_function() -> None:
    assert model_names([("a", "search")], taken={"search"}) == ["a__search"]


def test_labelled_name_that_is_taken_gets_a_digest() -> None:
    [name] = model_names([("a", "search")], taken={"search", "a__search"})
    assert name == "a__search_549d551a"


def test_invalid_characters_are_replaced_and_names_kept_apart_by_a_digest() -> None:
    names = model_names([("fs", "files.read"), ("fs", "files read")], taken=())
    assert names == ["fs__files_read_54b4a7da", "fs__files_read_390c32bd"]


def test_overlong_name_is_cut_to_64_characters() -> None:
    [name] = model_names([("srv", "x" * 65)], taken=())
    assert len(name) == 64
    assert name.startswith("srv__xxxx")


def test_name_with_a_newline_at_its_end_is_not_valid() -> None:
    assert not is_valid_name("search\n")


words = st.text(st.sampled_from("ab_.é "), min_size=1, max_size=5) | st.text(min_size=1, max_size=80)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(words, words), unique=True, max_size=12), st.sets(words, max_size=5))
def test_names_are_valid_different_and_not_taken(origins: list[tuple[str, str]], taken: set[str]) -> None:
    names = model_names(origins, taken)
    assert len(names) == len(origins)
    assert all(is_valid_name(name) for name in names)
    assert len({*names, *taken}) == len(names) + len(taken)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(words, words), unique=True, max_size=8))
def test_plain_names_do_not_depend_on_the_order_of_servers(origins: list[tuple[str, str]]) -> None:
    assert plain_names(origins) == plain_names(origins[::-1])


def plain_names(origins: list[tuple[str, str]]) -> set[tuple[str, str]]:
    """The tools that keep their own name."""
    names = model_names(origins, taken=())
    return {origin for origin, name in zip(origins, names, strict=True) if name == origin[1]}
