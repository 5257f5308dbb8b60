"""Commands that are told to end at any moment: a sample of `python -m tests.commands.signals`."""

import signal

import pytest

from tests.commands.signals import Trial
from tests.runtime.forked import run


@pytest.mark.requirement("PROMISE-6", "PROMISE-12")
def test_a_command_that_is_signalled_ends_with_its_code_and_leaves_a_journal_to_go_on_with(
    capfd: pytest.CaptureFixture[str],
) -> None:
    status, printed = run("tests.commands.signals", "--count", "4", "--seed", "3")
    assert (status, capfd.readouterr().err) == (0, ""), printed
    assert any(word in printed for word in ("once", "twice")), printed


def test_a_command_that_ends_in_another_way_is_told_with_all_that_it_printed() -> None:
    trial = Trial(7, "trio", [signal.SIGINT], 1, 0.01)
    with pytest.raises(
        AssertionError, match=r"number=7(.|\n)*ended with 3, not with 130(.|\n)*one\n(.|\n)*two\n"
    ):
        trial.judged(3, b"one\n", b"two\n")
