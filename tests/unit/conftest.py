"""Lets pytest explain the comparisons in what the tests share, too."""

import pytest

pytest.register_assert_rewrite("unit_support")
