"""ggml's tensor types: names, and how many bytes a row takes.

Sources: llama.cpp, ggml/include/ggml.h (numbers) and ggml/src/ggml-common.h (blocks);
from 133 on ik_llama.cpp, whose newer types put a scale before each row. Forks give
the same number to different types: whoever reads a file checks the bytes against the
places of its tensors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class GgmlType(NamedTuple):
    """Blocks of `elements` in `block_bytes`, after `row_bytes` for each row."""

    name: str
    elements: int
    block_bytes: int
    row_bytes: int = 0

    def bytes_of(self, width: int, rows: int) -> int | None:
        """Bytes of `rows` rows of `width` elements; None if blocks do not fit them."""
        blocks, rest = divmod(width, self.elements)
        if rest:
            return None
        return rows * (self.row_bytes + blocks * self.block_bytes)


GGML_TYPES: Final[Mapping[int, GgmlType]] = {
    0: GgmlType("f32", 1, 4),
    1: GgmlType("f16", 1, 2),
    2: GgmlType("q4_0", 32, 18),
    3: GgmlType("q4_1", 32, 20),
    6: GgmlType("q5_0", 32, 22),
    7: GgmlType("q5_1", 32, 24),
    8: GgmlType("q8_0", 32, 34),
    9: GgmlType("q8_1", 32, 36),
    10: GgmlType("q2_k", 256, 84),
    11: GgmlType("q3_k", 256, 110),
    12: GgmlType("q4_k", 256, 144),
    13: GgmlType("q5_k", 256, 176),
    14: GgmlType("q6_k", 256, 210),
    15: GgmlType("q8_k", 256, 292),
    16: GgmlType("iq2_xxs", 256, 66),
    17: GgmlType("iq2_xs", 256, 74),
    18: GgmlType("iq3_xxs", 256, 98),
    19: GgmlType("iq1_s", 256, 50),
    20: GgmlType("iq4_nl", 32, 18),
    21: GgmlType("iq3_s", 256, 110),
    22: GgmlType("iq2_s", 256, 82),
    23: GgmlType("iq4_xs", 256, 136),
    24: GgmlType("i8", 1, 1),
    25: GgmlType("i16", 1, 2),
    26: GgmlType("i32", 1, 4),
    27: GgmlType("i64", 1, 8),
    28: GgmlType("f64", 1, 8),
    29: GgmlType("iq1_m", 256, 56),
    30: GgmlType("bf16", 1, 2),
    31: GgmlType("q4_0_4_4", 32, 18),
    32: GgmlType("q4_0_4_8", 32, 18),
    33: GgmlType("q4_0_8_8", 32, 18),
    34: GgmlType("tq1_0", 256, 54),
    35: GgmlType("tq2_0", 256, 66),
    39: GgmlType("mxfp4", 32, 17),
    40: GgmlType("nvfp4", 64, 36),
    41: GgmlType("q1_0", 128, 18),
    42: GgmlType("q2_0", 64, 18),
    133: GgmlType("q6_0", 32, 26),
    137: GgmlType("iq2_k", 256, 76),
    138: GgmlType("iq3_k", 256, 110),
    139: GgmlType("iq4_k", 256, 144),
    140: GgmlType("iq5_k", 256, 176),
    141: GgmlType("iq6_k", 256, 212),
    144: GgmlType("iq4_ks", 256, 136, 4),
    145: GgmlType("iq2_ks", 256, 70, 2),
    146: GgmlType("iq4_kss", 256, 128, 4),
    152: GgmlType("iq5_ks", 256, 168, 4),
    153: GgmlType("iq2_kt", 256, 68, 4),
    154: GgmlType("iq3_kt", 256, 100, 4),
    155: GgmlType("iq4_kt", 256, 128, 4),
    156: GgmlType("iq3_ks", 256, 102, 2),
    157: GgmlType("iq2_kl", 256, 86, 2),
    158: GgmlType("iq1_kt", 256, 56, 4),
}

FILE_TYPES: Final[Mapping[int, str]] = {
    0: "f32",
    1: "f16",
    2: "q4_0",
    3: "q4_1",
    7: "q8_0",
    8: "q5_0",
    9: "q5_1",
    10: "q2_k",
    11: "q3_k_s",
    12: "q3_k_m",
    13: "q3_k_l",
    14: "q4_k_s",
    15: "q4_k_m",
    16: "q5_k_s",
    17: "q5_k_m",
    18: "q6_k",
    19: "iq2_xxs",
    20: "iq2_xs",
    21: "q2_k_s",
    22: "iq3_xs",
    23: "iq3_xxs",
    24: "iq1_s",
    25: "iq4_nl",
    26: "iq3_s",
    27: "iq3_m",
    28: "iq2_s",
    29: "iq2_m",
    30: "iq4_xs",
    31: "iq1_m",
    32: "bf16",
    36: "tq1_0",
    37: "tq2_0",
    38: "mxfp4_moe",
    39: "nvfp4",
    40: "q1_0",
}
"""`general.file_type` -> the mixture of types a file was made as (llama.h)."""

GUESSED: Final = 1024
"""Added to a file type that the file's maker was not told."""
