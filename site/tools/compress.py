"""Compresses files with gzip, FILE to FILE.gz. Runs inside Pyodide (pyodide.mjs).

Pyodide's zlib is pinned with it; the machine's own gives other bytes elsewhere.
"""

import gzip
from pathlib import Path

for name in argv[1:]:  # noqa: F821  (set by pyodide.mjs)
    Path(f"{name}.gz").write_bytes(gzip.compress(Path(name).read_bytes(), 9, mtime=0))
