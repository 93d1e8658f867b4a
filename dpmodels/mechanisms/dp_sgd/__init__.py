"""DP-SGD on an integer lattice: Poisson batches, clipping by construction, exact noise, the expected batch as divisor.

    B ~ each record with probability q,   s = round(sum_{i in B} clip(grad loss_i) / (C 2**-20))          clipping.py
    k = s + round(N(0, (sigma 2**20)^2 I))                                                               noise.py
    theta <- Adam(theta, k C 2**-20 / (q n)),   n a released number of records                           training.py

Privacy: unit one record, add or remove. Randomness is dealt out in blocks of AES, to a record by its row and to the
    noise by its coordinate. Blocks are alike, so a proof may give every record the same ones in both neighbours: it is
    then in a batch with probability at most q, its draws depend on nobody else, and the sums of neighbours differ by
    the one record's lattice gradient.
    That gradient has norm at most b C, checked on its integers, and rounding to steps of 2**-20 C moves each of P
    coordinates by less than a step: neighbouring s differ by at most b C + 2**-20 sqrt(P) C <= C, which is 2**20 steps.
    As s is whole, s + round(y) = round(s + y): k is a continuous Gaussian release of s, rounded, and T steps are
    SampledGaussian(sigma, q) composed T times, which the caller's ledger entry charges. Everything after k is
    post-processing, the mean over steps as well as one step alone, whose weights hold the signs of k.

What this rests on beyond the proof: AES-256 is a good cipher under a key of 32 bytes from the system; sums of products
of whole numbers below 2**53 are exact in float64, in whatever order a library takes them; and a record's float32
gradient does not depend on the other rows of its block. The last is measured, not proved: matmul libraries promise
nothing, but blocks have one public shape, whatever the batch, and on CPUs a test finds the same bits wherever in the
block a record lies. Were every other record's gradient to move by the last bits of float32 when one is added, a
relative 2**-20 say, the sum over a batch of m would move by at most m 2**-20 C beside the C that is charged for.
"""

from dpmodels.mechanisms.dp_sgd.randomness import KeyStream, new_key
from dpmodels.mechanisms.dp_sgd.training import DpSgd, Noise, Rows, SgdSpec

__all__ = ["DpSgd", "KeyStream", "Noise", "Rows", "SgdSpec", "new_key"]
