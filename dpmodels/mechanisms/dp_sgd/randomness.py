"""Random numbers of DP-SGD: blocks of AES-256 under one key of 32 bytes from the system.

A step that is repeated after a crash draws what it drew before. Block (step, 0, ...) and on are the step's stream;
block (2**63 + step, row, ...) are the latent draws of one record, so the two never meet.
"""

import secrets

import numpy as np
from numpy.typing import NDArray

from dpmodels.errors import InvalidArgument

KEY_BYTES = 32
_LATENT = np.uint64(2**63)
_BLOCK_BITS = 16


def new_key() -> bytes:
    """Return a key from the system's randomness."""
    return secrets.token_bytes(KEY_BYTES)


class KeyStream:
    """The random numbers of one step: who is in the batch, then the noise."""

    def __init__(self, key: bytes, step: int) -> None:
        from cryptography.hazmat.primitives.ciphers import Cipher
        from cryptography.hazmat.primitives.ciphers.algorithms import AES256
        from cryptography.hazmat.primitives.ciphers.modes import CTR

        self._encryptor = Cipher(AES256(key), CTR(step.to_bytes(8) + bytes(8))).encryptor()

    def words(self, count: int) -> NDArray[np.uint32]:
        """Return uniform 32-bit words."""
        return np.frombuffer(self._encryptor.update(bytes(4 * count)), dtype="<u4")

    def long_words(self, count: int) -> NDArray[np.uint64]:
        """Return uniform 64-bit words."""
        return np.frombuffer(self._encryptor.update(bytes(8 * count)), dtype="<u8")

    def poisson_batch(self, rows: int, probability: float) -> NDArray[np.int64]:
        """Return who is in the batch: each record by itself, with ``probability`` rounded down to 2**-32."""
        return np.flatnonzero(self.words(rows) < np.uint32(int(probability * 2.0**32)))


def record_normals(key: bytes, step: int, rows: NDArray[np.int64], count: int) -> NDArray[np.float32]:
    """Return ``count`` standard normals for each row: a function of key, step and row, whoever else is asked for.

    They protect nothing, so Box and Muller's method from 32-bit uniforms will do. Shapes: [B] -> [B, count].

    Raises:
        InvalidArgument: more numbers are wanted for one record than it has blocks.
    """
    from cryptography.hazmat.primitives.ciphers import Cipher
    from cryptography.hazmat.primitives.ciphers.algorithms import AES256
    from cryptography.hazmat.primitives.ciphers.modes import ECB

    blocks = -(-count // 4)
    if blocks > 2**_BLOCK_BITS:
        raise InvalidArgument("draws", count, f"be at most {4 * 2**_BLOCK_BITS} for each record")
    counters = np.empty((len(rows), blocks, 2), dtype=">u8")
    counters[..., 0] = _LATENT + np.uint64(step)
    counters[..., 1] = (rows[:, None] << _BLOCK_BITS) + np.arange(blocks)
    keystream = Cipher(AES256(key), ECB()).encryptor().update(counters.tobytes())
    uniform = (np.frombuffer(keystream, dtype="<u4").reshape(len(rows), 2, 2 * blocks) + 0.5) * 2.0**-32
    radius, angle = np.sqrt(-2 * np.log(uniform[:, 0])), 2 * np.pi * uniform[:, 1]
    normals = np.concatenate([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return np.ascontiguousarray(normals[:, :count], dtype=np.float32)
