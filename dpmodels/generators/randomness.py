"""Seeded randomness for training and sampling, explicit and independent from step to step. Never for noise."""

import numpy as np
import torch


def stream(seed: int, step: int, device: str | torch.device = "cpu") -> torch.Generator:
    """Return the generator of one step of one seed.

    The pair is hashed to 32 bits, because torch's CPU generator ignores the upper half of a 64-bit seed.
    """
    state = np.random.SeedSequence([seed, step]).generate_state(1)[0]
    return torch.Generator(device).manual_seed(int(state))
