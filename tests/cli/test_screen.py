"""Escaping and colour of terminal output."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.cli.screen import Screen, escape_controls, one_line, print_notice, screen


class Terminal(io.StringIO):
    """A stream that reports a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b]0;owned\x07", r"\x1b]0;owned\x07"),
        ("\x1b[2J", r"\x1b[2J"),
        ("good\rbad", r"good\rbad"),
        ("\x9b31m", r"\x9b31m"),
        ("a\u202eb", r"a\u202eb"),
        ("\ud800", r"\ud800"),
        ("two\nlines\tand a tab, café 漢字", "two\nlines\tand a tab, café 漢字"),
    ],
)
def test_control_characters_are_escaped_and_text_is_unchanged(text: str, shown: str) -> None:
    assert escape_controls(text) == shown


@given(st.text(st.characters(codec=None)), st.integers(0, 40))
def test_escaping_pieces_equals_escaping_the_whole_text(text: str, cut: int) -> None:
    assert escape_controls(text[:cut]) + escape_controls(text[cut:]) == escape_controls(text)
    assert not any(ord(char) < 32 and char not in "\n\t" for char in escape_controls(text))
    assert escape_controls(escape_controls(text)) == escape_controls(text)


def test_colour_is_printed_only_on_terminals_and_only_without_the_variable_NO_COLOR() -> None:
    assert screen(Terminal(), {}).color
    assert not screen(Terminal(), {"NO_COLOR": "1"}).color
    assert not screen(Terminal(), {"TERM": "dumb"}).color
    assert not screen(io.StringIO(), {}).color
    assert not screen(Terminal(), {}, "never").color
    assert screen(io.StringIO(), {"NO_COLOR": "1", "TERM": "dumb"}, "always").color
    assert Screen(io.StringIO()).style("x", "red") == "x"
    assert Screen(io.StringIO(), True).style("x", "red") == "\x1b[31mx\x1b[0m"


def test_an_error_message_is_always_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    print_notice("first\nsecond\x1b[31m\u2028third")
    assert capsys.readouterr().err == "actors: first second\\x1b[31m\\u2028third\n"


def test_a_shortened_line_ends_with_dots() -> None:
    assert one_line("a  b\nc", 10) == "a b c"
    assert one_line("x" * 20, 10) == "xxxxxxx..."
