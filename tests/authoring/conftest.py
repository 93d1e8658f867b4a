"""The schemas that are shipped."""

from tests.every_kind import schemas

__all__ = ["schemas"]
