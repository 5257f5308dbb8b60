"""Distorted answers decode to the same message or are marked as incomplete: a sample of the command."""

from random import Random

import pytest

from tests import naming
from tests.commands.at_scale import share
from tests.commands.distortions import FAMILIES, LOSSLESS, Answer, Trial, main, trial

SAMPLE = 12_000
"""Answers, of which a test tries a share."""
EACH = 128
"""Of each distortion, likewise."""


def test_a_distorted_answer_is_the_same_message_or_incomplete() -> None:
    for seed in range(share(SAMPLE)):
        tried = trial(seed)
        with naming.case(f"seed {seed}: {tried.dialect}, {', '.join(tried.names)}"):
            assert tried.fault() == ""


@pytest.mark.parametrize("dialect", FAMILIES)
def test_each_distortion_that_loses_nothing_leaves_the_message_as_it_was(dialect: str) -> None:
    write, reason, ways = FAMILIES[dialect]
    answer = Answer(
        "So, {} it is.", (("write", '{"path":"a {} b","text":"é"}'), ("now", "{}"), ("read", '{"a": [1]}'))
    )
    for way in (way for way in ways if way in LOSSLESS):
        for seed in range(share(EACH)):
            stream = way(answer.pieces(random := Random(seed)), random)
            tried = Trial(dialect, answer, (way.__name__,), write(stream, reason), True, True)
            with naming.case(f"{way.__name__}, seed {seed}"):
                assert tried.fault() == ""


def test_the_command_says_what_it_tried(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "20"]) == 0
    assert capsys.readouterr().out == "20 distorted answers, 0 decoded wrongly\n"
