"""Vectors on the sphere in whole steps, and the two forms in which embedded documents are written."""

import numpy as np
import pytest

from dpmodels.audit.made.mails import CLASSES, make_records, make_schema
from dpmodels.codec.embedded import BITS, Embedded, EmbeddedCodec, codec_of, labels_of, on_sphere
from dpmodels.errors import DataError
from tests.kit.errors import refused


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1e-3, 1.0, 1e12, 1e300])
@pytest.mark.parametrize("dim", [1, 2, 257])
def test_no_vector_is_longer_than_one_however_large_or_small_it_was(scale, dim):
    vectors = scale * np.random.default_rng(0).standard_normal((200, dim))
    vectors[0], vectors[1] = 0, scale
    whole = on_sphere(vectors).astype(np.int64)
    norms = (whole * whole).sum(axis=1)
    assert norms.max() <= 4**BITS and norms[0] == 0
    assert scale < 1e-300 or (norms[1:] > 4**BITS * (1 - dim**0.5 * 2.0**-12)).all()


def test_a_vector_is_its_own_function_in_any_batch():
    vectors = np.random.default_rng(1).standard_normal((50, 8))
    assert all(np.array_equal(on_sphere(vectors)[i], on_sphere(vectors[i : i + 1])[0]) for i in range(50))


def test_documents_come_back_from_both_forms():
    documents, codec = make_records(30), codec_of(make_schema())
    for back in (codec.from_arrow(codec.to_arrow(documents)), codec.encode(codec.decode(documents))):
        assert np.array_equal(back.vectors, documents.vectors) and np.array_equal(back.labels, documents.labels)
    with refused(DataError, "belong to this contract", column=""):
        EmbeddedCodec(make_schema(encoder={"name": "given", "dim": 7})).from_arrow(codec.to_arrow(documents))


def test_documents_without_labels_are_written_without_them():
    contract = make_schema(label="", classes=[])
    codec = EmbeddedCodec(contract)
    documents = Embedded(make_records(5).vectors, np.zeros(5, dtype=np.int32))
    table = codec.decode(documents)
    assert table.schema.names == ["embedding"] and np.array_equal(codec.encode(table).labels, documents.labels)
    assert labels_of(contract).classes == 1 and labels_of(make_schema()).classes == len(CLASSES)
