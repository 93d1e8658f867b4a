"""The check of a hand-off by itself, and what a terminal and a notebook show of it."""

import os
from pathlib import Path

from dpmodels.errors import ArtifactError, in_words
from dpmodels.hand_off.verification import Verification
from dpmodels.pages.leaving import FILES
from dpmodels.plural import counted
from dpmodels.privacy import Adjacency
from nacre.calls import call_of
from nacre.notebook import facts_as_html
from nacre.places import Place
from nacre.words import argument


class Verified(Verification):
    """What a check found, in the order in which one reads it: the verdict, faults, what was promised, and notes."""

    def __repr__(self) -> str:
        lines = (f"  {name:12} {line}" for name, text in self._facts().items() for line in text.split("\n"))
        return "\n".join([f"<{self._headline()}", *lines]) + ">"

    def _repr_html_(self) -> str:
        return facts_as_html(self._headline(), self._facts())

    def _headline(self) -> str:
        return f"nacre hand-off: {in_words(self.headline, argument, call_of)}"

    def _facts(self) -> dict[str, str]:
        """Return what there is to say by its name; each fault, caution and note is a line."""
        facts = {
            FILES: "" if self.faults else self.leaving,
            **self.beside_leaving,
            "faults": "\n".join(self.faults),
            "cautions": "\n".join(self.cautions),
            "notes": "\n".join(self.notes),
            **self.facts,
            "unit": _in_words(self.unit),
            "status": self.next_step,
        }
        return {name.replace("_", " "): in_words(text, argument, call_of) for name, text in facts.items() if text}


def _in_words(unit: str) -> str:
    """Say what a unit and its adjacency hide."""
    for adjacency in Adjacency:
        if unit.endswith(after := f", {adjacency}"):
            return adjacency.of(unit.removesuffix(after))
    return unit


def verify(folder: Place, public_key: Place | None = None, officer_key: Place | None = None) -> Verified:
    """Check a hand-off by itself, without its ledger: every file, the budget, the pages, and the signature.

    With a public key (PEM) the manifest must be signed by its private key, and only then ``verdict`` of what is
    returned is ``VERIFIED``: otherwise nobody whom you know vouches for the hand-off, and it is ``CONSISTENT ONLY``.
    With an officer's key the run must have been approved with it, and where that officer did not sign that the files
    may leave, ``verdict`` is ``NOT APPROVED``.

    Raises:
        NacreError: something is wrong; the message names all of it.
    """
    from tasks.run.bucket import verify as check

    signer, officer = (Path(key) if key else None for key in (public_key, officer_key))
    verified = Verified(**vars(check(os.fspath(folder), signer, officer)))
    if verified.is_of_other_key:
        raise ArtifactError(f"the hand-off {folder}: {verified.headline}; {FILES}: {verified.leaving}")
    if verified.faults:
        raise ArtifactError(
            f"the hand-off {folder} has {counted(len(verified.faults), 'fault')}: {'; '.join(verified.faults)}; "
            f"signature: {verified.signature_beside_faults}"
        )
    return verified
