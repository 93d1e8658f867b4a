"""Output perturbation: whether the optimizer finds the optimum that its sensitivity is proved for.

The bound on how far a record moves what is found holds for the optimum itself, and two tolerances of the gradient more.
An optimizer that stops early, or stops by what the data are like, breaks it without any trace in a release. So what is
found is compared with what another optimizer finds (L-BFGS of SciPy), and its gradient is computed anew, in other code.
"""

from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from dpmodels.arrays import Whole
from dpmodels.audit.findings import Finding
from dpmodels.audit.made import clients
from dpmodels.statistics.component_moments import Z_BITS
from dpmodels.statistics.logistic import Logistic

OPTIMIZER = 1e-4
"""What the other optimizer may be off by, as a share of the bound."""


def optimum_findings() -> list[Finding]:
    """Hold the optimizer to the optimum, for one and for several outputs, and for weak and strong regularization."""
    findings = []
    for outputs in (1, clients.CLASSES):
        for strength in (0.5, 50.0):
            problem = Logistic(clients.SIZE, outputs, strength, 0.3, True, 600)
            findings.append(_finding(problem, *_records(outputs)))
    return findings


def _records(outputs: int) -> tuple[Whole, Whole]:
    rng = np.random.default_rng(outputs)
    z = clients.whole_vectors(rng.standard_normal((300, clients.SIZE)))
    return z, rng.integers(0, max(2, outputs), len(z))


def _finding(problem: Logistic, z: Whole, label: Whole) -> Finding:
    scaled = np.ldexp(z.astype(np.float64), -Z_BITS) * np.sqrt(1 - problem.bias**2)
    phi = np.concatenate([scaled, np.full((len(z), 1), problem.bias)], axis=1)
    targets = problem.targets(label)
    whole = problem.whole(problem.features(z), targets).reshape(problem.outputs, -1) * problem.step

    def loss(flat: Any) -> tuple[float, Any]:
        w = flat.reshape(problem.outputs, -1)
        logits = phi @ w.T
        both = logits if problem.outputs > 1 else np.concatenate([logits, np.zeros_like(logits)], axis=1)
        share = np.exp(both - logsumexp(both, axis=1, keepdims=True))[:, : problem.outputs]
        value = logsumexp(both, axis=1).sum() - (targets * logits).sum() + problem.strength / 2 * (w * w).sum()
        return float(value), ((share - targets).T @ phi + problem.strength * w).ravel()

    options = {"gtol": 1e-9, "ftol": 1e-15, "maxiter": 10_000}
    other = minimize(loss, np.zeros(whole.size), jac=True, method="L-BFGS-B", options=options)
    apart = float(np.linalg.norm(whole.ravel() - other.x))
    rounding = problem.step * np.sqrt(problem.dim)
    allowed = problem.tolerance / problem.strength + rounding + OPTIMIZER * problem.bound
    slope = float(np.linalg.norm(loss(whole.ravel())[1]))
    certified = slope <= problem.tolerance + rounding * (problem.strength + len(z))
    says = (
        f"heads: what is found for {problem.outputs} outputs at strength {problem.strength:g} is within "
        f"{100 * apart * problem.strength / problem.change:.2g} % of a record's reach of the optimum"
    )
    return Finding(check="optimum", holds=apart <= allowed and certified, says=says)
