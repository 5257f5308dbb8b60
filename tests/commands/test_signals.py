"""Commands that receive signals at any moment: a sample of `python -m tests.commands.signals`."""

import signal

import pytest

from tests.commands.signals import Trial
from tests.runtime.forked import run


@pytest.mark.requirement("PROMISE-6", "PROMISE-12")
def test_a_command_ended_by_a_signal_has_the_right_exit_code_and_a_usable_journal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    status, printed = run("tests.commands.signals", "--count", "4", "--seed", "3")
    assert (status, capfd.readouterr().err) == (0, ""), printed
    assert any(word in printed for word in ("once", "twice")), printed


def test_an_unexpected_exit_is_reported_with_the_output() -> None:
    trial = Trial(7, "trio", [signal.SIGINT], 1, 0.01)
    with pytest.raises(
        AssertionError, match=r"number=7(.|\n)*ended with 3, not with 130(.|\n)*one\n(.|\n)*two\n"
    ):
        trial.judge_end(3, b"one\n", b"two\n")
