"""A few letters about three matters, public ones and private ones: what the tests of documents share."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import yaml

MATTERS = {
    "garden": ["roses", "tulips", "soil", "rain", "spade", "bees", "hedge", "compost", "lawn", "seeds"],
    "music": ["violin", "choir", "rhythm", "piano", "chord", "opera", "drum", "melody", "concert", "flute"],
    "sea": ["harbor", "sail", "tide", "anchor", "wave", "gull", "mast", "storm", "rope", "lighthouse"],
}


def make_letters(number: int, seed: int, sentences: int = 6) -> pa.Table:
    """Return letters of about so many sentences, each about one matter; three letters in a row have one author."""
    rng = np.random.default_rng(seed)
    texts, names = [], list(MATTERS)
    for index in range(number):
        words = np.array(MATTERS[names[index % 3]])
        lines = [words[rng.integers(0, len(words), 5)] for _ in range(sentences)]
        texts.append(" ".join(" ".join(line).capitalize() + "." for line in lines))
    ids = [f"{seed}-{index:04d}" for index in rng.permutation(number)]
    authors = [f"author {index // 3}" for index in range(number)]
    matter = [names[index % 3] for index in range(number)]
    columns = {"id": ids, "text": texts, "author": authors, "matter": matter}
    return pa.table({name: pa.array(values, pa.string()) for name, values in columns.items()})


def write_letters(folder: Path, number: int = 40) -> tuple[Path, Path]:
    """Write private letters, public ones and a configuration with few candidates; return the paths of both letters."""
    folder.mkdir(parents=True, exist_ok=True)
    private, public = folder / "letters.parquet", folder / "public.parquet"
    pq.write_table(make_letters(number, seed=1), private)
    pq.write_table(make_letters(90, seed=2), public)
    recipe = {"candidates": 60, "least_sentences": 2, "clusters": 5, "projections": 10, "hidden": [16, 8]}
    (folder / "config.yaml").write_text(yaml.safe_dump({"model": {"method": "deep-candidate", "recipe": recipe}}))
    return private, public


def embed_words(folder: Path, **options: object) -> list[object]:
    """Return the words of a quick `nacre embed-documents` on the letters written to ``folder``; options override."""
    named = {
        "candidates": folder / "public.parquet",
        "config": folder / "config.yaml",
        "encoder": "hashed",
        "dim": 32,
        "target-epsilon": 10,
        "out": folder / "out",
        "home": folder / "home",
        **{key.replace("_", "-"): value for key, value in options.items()},
    }
    documents = named.pop("documents", folder / "letters.parquet")
    words = ["embed-documents", documents, "--no-prefect"]
    return words + [word for key, value in named.items() if value is not None for word in (f"--{key}", value)]
