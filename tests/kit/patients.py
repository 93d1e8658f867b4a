"""A private table of patients that refers to a public one of products, of which two columns are not listed."""

import pyarrow as pa

SECRET = "Quillfeather"
SCHEMA = """
name: shop
public:
  product:
    key: id
    columns: {id: {type: identifier}, name: {type: identifier}}
tables:
  patient:
    key: id
    refers: [{to: product, by: product_id, nullable: true, unknown: "null"}]
    columns:
      id: {type: identifier, keep: regenerate}
      name: {type: identifier}
      product_id: {type: identifier}
      age: {type: integer, min: 0, max: 120}
"""
PRIVATE = pa.table({"id": [1, 2], "name": [f"{SECRET}-1", f"{SECRET}-2"], "product_id": [1, 1], "age": [30, 40]})
PUBLIC = pa.table({"id": [1, 2], "name": ["tea", "jam"], "price": [3, 4], "weight": [5, 6]})
