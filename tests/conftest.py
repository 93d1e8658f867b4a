"""Set-up for every test: one thread per process, and a Prefect that never looks outside."""

import os

# Before torch and OpenBLAS are imported: on shared cores their thread pools are a hundred times slower than one thread.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", DO_NOT_TRACK="1")
for name in [name for name in os.environ if name.startswith(("PREFECT_", "NACRE_"))]:
    if name != "NACRE_DATA":
        del os.environ[name]
