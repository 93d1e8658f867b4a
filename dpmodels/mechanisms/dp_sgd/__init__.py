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

A gradient is either a sum of outer products, which is never formed (gradients.py: linear layers, and slopes of them in
    the loss), or a vector (formed.py: any layers). Groups of coordinates may be clipped each to a norm of their own,
    with one sensitivity for all and for counts of who was within it (groups.py). Groups and norms may follow from what
    earlier steps released (adaptive.py). What an objective must be is said in objective.py.

What this rests on beyond the proof: AES-256 is a good cipher under a key of 32 bytes from the system; sums of products
of whole numbers below 2**53 are exact in float64, in whatever order a library takes them; and a record's terms are the
same bits wherever in a block it lies and whoever lies beside it. The last is so piece by piece:
    Matrix products, and the norms of what they are made of, are sums of such whole numbers, so order does not matter
    to them (products.py). The rest of an objective treats each number by itself (exp, add) or goes along the numbers of
    one record (softmax, the mean over its draws). A library may treat the last numbers of an array by another routine
    than the rest, which for exp is another result; blocks have a multiple of 64 rows, and the loops of torch take 32
    numbers at once or fewer, so with one thread nothing is left over.
This much is known of torch's loops, not promised by torch, so it is tried out as well: before its first step a training
differentiates a block of public random rows, and then the same block with one row put in before the others (places.py).
Is a single bit of anybody else's terms another one, then each record is differentiated in a block of its own. For
vectors, whose products are a library's own, the trial and what follows from it are all there is.
"""
