"""Users without a row cannot be in one flat file, so no synthetic user of such data is without one.

Privacy: post-processing; that all rows came in one file is public.
"""

from dpmodels.contract.family import CHILDREN
from dpmodels.generators.users import LEAST, UserModel
from dpmodels.late import torch


def with_rows(model: UserModel) -> UserModel:
    """Return a model of which each user has a row at least, where the columns of users would let them have none.

    The share of a component that has none goes to its other numbers of rows, in proportion.
    """
    users = model.schema.users
    if users is None or users.fewest > 0:
        return model
    place = model.partition.names.index(CHILDREN)
    merge, detail = model.partition.merge[place], model.detail[place].copy()
    cell, ones = merge[0], merge == merge[0]
    left = 1 - detail[:, 0]  # of the cell that holds "no row", which others may be in
    detail[:, 0] = 0
    detail[:, ones] /= detail[:, ones].sum(axis=1, keepdims=True).clip(min=LEAST)
    begin, end = model.partition.offsets[place : place + 2]
    probabilities = model.probabilities.clone()
    shares = probabilities[:, :, begin:end].clamp_min(LEAST)
    shares[:, :, cell] *= torch.from_numpy(left if ones.sum() > 1 else 0 * left)[:, None].float()
    probabilities[:, :, begin:end] = shares / shares.sum(dim=2, keepdim=True)
    details = [*model.detail[:place], detail, *model.detail[place + 1 :]]
    return UserModel(**{**vars(model), "probabilities": probabilities, "detail": details})
