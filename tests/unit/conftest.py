"""Lets pytest explain the comparisons in the shared helpers, too."""

import pytest

pytest.register_assert_rewrite("unit_support")
