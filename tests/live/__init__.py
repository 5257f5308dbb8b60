"""A conversation with a real model, if one is provided. See docs/how-to/develop.md."""

import pytest

pytest.register_assert_rewrite("tests.live.conversation")  # so that its assertions show the compared values
