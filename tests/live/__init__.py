"""A conversation with a real model, if someone brings one. See docs/how-to/develop.md."""

import pytest

pytest.register_assert_rewrite("tests.live.conversation")  # so that its assertions say what they compared
