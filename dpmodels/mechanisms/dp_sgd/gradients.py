"""Each record's gradient, never formed: what went into every linear layer and what came back."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dpmodels.errors import Unsuitable
from dpmodels.mechanisms.dp_sgd.clipping import MOST_ROWS, Term, lattice_factors, lattice_sum, record_norms
from dpmodels.mechanisms.dp_sgd.groups import ClipGroups, counted
from dpmodels.mechanisms.dp_sgd.objective import Held, trained
from dpmodels.mechanisms.dp_sgd.products import ExactProducts, Uses


def made_of_linear_layers(objective: nn.Module) -> bool:
    """Return whether what is trained are whole linear layers, each with parameters of its own."""
    pieces = [p for layer in _layers(objective) for p in layer.parameters()]
    trained_ones = {id(p) for p in objective.parameters() if p.requires_grad}
    return len({id(p) for p in pieces}) == len(pieces) and {id(p) for p in pieces} == trained_ones


class RecordGradients:
    """Differentiates an objective that returns one loss a row and is made of linear layers, and maybe of their slopes.

    Raises:
        InvalidArgument: rows would be treated together, or something other than linear layers is trained.
    """

    whole_tensors = True

    def __init__(self, objective: nn.Module) -> None:
        self.objective, self.parameters, self.most_rows = objective, trained(objective), MOST_ROWS
        self._groups: tuple[tuple[Tensor, ...], list[set[int]]] | None = None
        if not made_of_linear_layers(objective):
            raise Unsuitable("the objective trains more than whole linear layers of their own; freeze the rest")
        self.layers = _layers(objective)

    def __call__(self, rows: Sequence[Tensor]) -> tuple[Tensor, Held]:
        """Return the losses of the rows and the terms of every layer, in float64."""
        with ExactProducts(layer.weight for layer in self.layers) as products:
            losses: Tensor = self.objective(*rows)
        torch.autograd.grad(losses.sum(), self.parameters, allow_unused=True)
        return losses.detach(), [self._term(products.uses[id(layer.weight)]) for layer in self.layers]

    def clipped_sum(self, gradients: Held, usable: Tensor, groups: ClipGroups, bound: float) -> Tensor:
        """Clip and add up a block's gradients.

        Raises:
            InvalidArgument: a group holds a part of a weight or of a bias.
        """
        if self._groups is None or self._groups[0] is not groups.members:
            self._groups = groups.members, [self._within(members) for members in groups.members]
        sums: dict[int, Tensor] = {}
        votes: list[Tensor] = []
        for group, clip, noise in zip(self._groups[1], groups.clip_norms, groups.noise_norms, strict=True):
            pieces = [(layer, _piece(layer, term, group)) for layer, term in zip(self.layers, gradients, strict=True)]
            pieces = [(layer, piece) for layer, piece in pieces if piece[0].shape[-1]]
            if groups.share:
                votes.append(counted(record_norms([piece for _, piece in pieces])[0], usable, clip))
            factors = lattice_factors([piece for _, piece in pieces], usable, noise, bound * (clip / noise))
            for (layer, _), product in zip(pieces, lattice_sum(factors), strict=True):
                sums |= {id(layer.weight): product[:, : layer.in_features]} if id(layer.weight) in group else {}
                sums |= {id(layer.bias): product[:, -1]} if id(layer.bias) in group else {}
        return torch.cat([sums[id(p)].flatten() for p in self.parameters] + [vote[None] for vote in votes])

    def _within(self, members: Tensor) -> set[int]:
        """Return the parameters that a group is made of."""
        sizes = [p.numel() for p in self.parameters]
        inside = torch.zeros(sum(sizes), dtype=torch.bool)
        inside[members] = True
        parts = list(zip(self.parameters, torch.split(inside, sizes), strict=True))
        if any(part.any() != part.all() for _, part in parts):
            raise Unsuitable("a group holds a part of a weight or bias; give linear layers groups of whole ones")
        return {id(p) for p, part in parts if part.all()}

    def _term(self, uses: Uses) -> Term:
        """Put a layer's uses, and whatever lies between the records and the features, into one dimension."""
        terms = [[rows.reshape(len(rows), -1, rows.shape[-1]) for rows in use] for use in uses if len(use) == 2]
        if not terms:
            raise Unsuitable("the objective trains a layer that it does not use; freeze it")
        a, g = terms[0] if len(terms) == 1 else [torch.cat(factors, dim=1) for factors in zip(*terms, strict=True)]
        return a, g


def _piece(layer: nn.Linear, term: tuple[Tensor, ...], group: set[int]) -> Term:
    """Return the part of a layer's term that is a group's, if any; a copy where others want the rest unrounded."""
    a, g = term
    first = 0 if id(layer.weight) in group else layer.in_features
    columns = a[..., first : layer.in_features + (id(layer.bias) in group)]
    return (a, g) if columns.shape == a.shape else (columns.clone(), g.clone())


def _layers(objective: nn.Module) -> list[nn.Linear]:
    return [m for m in objective.modules() if type(m) is nn.Linear and m.weight.requires_grad]
