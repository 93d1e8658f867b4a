"""The schemas that are shipped."""

from tests.kit.every_kind import schemas

__all__ = ["schemas"]
