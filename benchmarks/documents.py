"""Embed many documents one by one, stage by stage: how many a CPU second, and in how much memory.

The documents are reviews of IMDB, each several times with a sentence of its own; the candidates are other reviews.
"""

import json
import sys
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import ROOT, Table, data_dir, measure, parse, report
from benchmarks.production import timed

EPSILON = 10.0


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--copies", type=int, default=16, help="of the 5000 reviews; 16 have a million sentences")
    parser.add_argument("--encoder", default="wordllama")
    parser.add_argument("--method", default="deep-candidate")
    parser.add_argument("--stages", type=Path, metavar="FOLDER", help="run here, and print the stages as JSON")


def write_reviews(folder: Path, copies: int, most: int) -> int:
    """Write private and public reviews; return the number of private documents."""
    texts = pq.read_table(data_dir() / "imdb_train5000.parquet")["text"].to_pylist()[:most]
    (folder / "reviews").mkdir()
    for copy in range(copies):
        rows = {
            "id": [f"{copy}-{number}" for number in range(len(texts))],
            "text": [f"{text} Copy {copy} ends here." for text in texts],
        }
        pq.write_table(pa.table(rows), folder / "reviews" / f"part-{copy:03d}.parquet")
    public = pq.read_table(data_dir() / "imdb_test2000.parquet")["text"].to_pylist()
    pq.write_table(pa.table({"id": list(map(str, range(len(public)))), "text": public}), folder / "public.parquet")
    return copies * len(texts)


def staged(folder: Path, encoder: str, method: str) -> dict[str, Any]:
    """Embed in this process; return what each stage took, and how many sentences there were."""
    from dpmodels.text.passages import PassageFile
    from flows.config import EmbedConfig
    from flows.synthesize import pipeline, start

    places = {"documents": folder / "reviews", "candidates": folder / "public.parquet", "out": folder / "out"}
    asked = {"columns": {"encoder": encoder}, "privacy": {"target_epsilon": EPSILON}, "model": {"method": method}}
    run = start(EmbedConfig.build({**places, **asked, "runtime": {"home": folder / "home"}}))
    taken = timed(pipeline, run)
    sentences = sum(len(batch.vectors) for batch in PassageFile(run.sensitive / "encoded" / "passages.arrow"))
    return {"taken": taken, "sentences": sentences}


def main() -> None:
    args = parse(__doc__, options)
    if args.stages:
        print(json.dumps(staged(args.stages, args.encoder, args.method)))
        return
    with tempfile.TemporaryDirectory() as place:
        documents = write_reviews(Path(place), 1 if args.quick else args.copies, 200 if args.quick else 5000)
        words = ["-m", "benchmarks.documents", "--stages", place, "--encoder", args.encoder, "--method", args.method]
        ran = measure([sys.executable, *words], cwd=ROOT)
    if ran.code:
        raise SystemExit(f"the run failed:\n{ran.output}")
    made = json.loads(ran.output.splitlines()[-1])
    columns = ["stage", "seconds", "CPU seconds", "documents a CPU second", "peak MiB"]
    title = f"{args.method}, {args.encoder}: {documents:,} documents, {made['sentences']:,} sentences"
    table = Table(title, columns, digits=1)
    for one in made["taken"]:
        table.add(one["stage"], one["seconds"], one["cpu"], documents / one["cpu"], one["peak"])
    report("documents", [table], [0], args)


if __name__ == "__main__":
    main()
