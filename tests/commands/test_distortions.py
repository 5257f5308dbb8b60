"""Distorted answers decode to the same message or are marked as incomplete: a sample of the command."""

from random import Random

import pytest

from tests import naming
from tests.commands.at_scale import share
from tests.commands.distortions import FAMILIES, LOSSLESS, Answer, Trial, main, trial

SAMPLE = 12_000
"""The number of answers of the command; a test tries a share of them."""
EACH = 128
"""The number of answers for each distortion; a test tries a share of them."""


def test_a_distorted_answer_decodes_to_the_same_message_or_is_incomplete() -> None:
    for seed in range(share(SAMPLE)):
        tried = trial(seed)
        with naming.case(f"seed {seed}: {tried.dialect}, {', '.join(tried.names)}"):
            assert tried.fault() == ""


@pytest.mark.parametrize("dialect", FAMILIES)
def test_a_lossless_distortion_does_not_change_the_message(dialect: str) -> None:
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


def test_the_distortion_command_reports_its_figures(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--count", "20"]) == 0
    assert capsys.readouterr().out == "20 distorted answers, 0 decoded wrongly\n"
