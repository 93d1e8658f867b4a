"""An audit of a few methods."""

from dpmodels.audit.findings import Audit, Finding, Recovery


def an_audit(**changes: object) -> Audit:
    recovered = Recovery(
        step="step 1, sum",
        mechanism="discrete Gaussian",
        claimed=0.5,
        parametric=(0.48, 0.51),
        assumption_free=0.4,
        ceiling=5.25,
        draws=20_000,
        reach=0.999,
    )
    facts = {
        "method": "moments",
        "epsilon": 1.0,
        "delta": 1e-5,
        "full": True,
        "confidence": 0.999,
        "machine": "x86_64",
        "date": "2026-01-31",
        "findings": (Finding(check="noise", holds=True, says="it is as charged"),),
        "recovered": (recovered, recovered.model_copy(update={"assumption_free": None, "parametric": (0.5, None)})),
        "uncovered": ("time",),
    }
    return Audit.model_validate({**facts, **changes})
