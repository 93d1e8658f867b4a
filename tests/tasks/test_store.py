"""What a run says of its stages while others write in the released zone."""

from pathlib import Path
from threading import Event, Thread

from dpmodels.artifact import aside, replace_folder
from tasks.run.store import Run


def test_a_table_that_is_replaced_while_somebody_asks_for_it_is_not_finished(tmp_path: Path) -> None:
    run, ended = Run(home=tmp_path, name="polled"), Event()
    (run.released / "stages").mkdir(parents=True)

    def write() -> None:
        with aside(run.place("sample")) as part:
            part.mkdir()
            for number in range(30):
                (part / f"part-{number:05d}.parquet").write_bytes(b"rows")
            replace_folder(part, run.place("sample"))

    def sample() -> None:
        while not ended.is_set():
            write()

    write()
    done = run.finish("sample")
    writer = Thread(target=sample)
    writer.start()
    try:
        found = {run.finished("sample") for _ in range(300)}
    finally:
        ended.set()
        writer.join()
    assert found <= {None, done} and run.finished("sample") == done
