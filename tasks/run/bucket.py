"""A hand-off in an object store: its table is written there by whoever draws it, and its manifest last, by one machine.

An object appears when all of it was sent, so no part is ever seen in pieces. A hand-off without its manifest is none:
whoever reads the place before sees parts that nothing vouches for. Credentials are those of the process that writes.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.fs as pafs

from dpmodels.artifact import sha256_of
from dpmodels.codec.flat import is_cut
from dpmodels.errors import ArtifactError, FileMissing, InvalidArgument, NacreError, Unsuitable
from dpmodels.files import read_at_most
from dpmodels.hand_off.check_files import is_handed_over
from dpmodels.hand_off.manifest import MANIFEST
from dpmodels.hand_off.signature import OFFICER_SIGNATURE, SIGNATURE
from dpmodels.hand_off.verification import Verification
from dpmodels.hand_off.verify import check_signers, verify_hand_off
from dpmodels.limits import LARGEST_LISTING
from dpmodels.reading.data_files import FAILURES, check_place, is_uri, open_system
from tasks.engine.engines import Engine
from tasks.engine.progress import progress_bar
from tasks.run.store import MADE, Run, new_name

LISTING = "parts.json"
"""Names the files of a table in an object store with their digests; on this machine it takes the place of the table."""
PART = re.compile(r"part-\d{5}\.parquet")
EMPTY = "be a place where nothing lies, as nobody could tell it from the hand-off"
STEP = 2**23
"""Bytes that are asked of a store at once."""
DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Bucket:
    """A place in an object store, which each process opens by itself; its URI holds no secret."""

    place: str

    @contextmanager
    def _reached(self) -> Iterator[tuple[pafs.FileSystem, str]]:
        """Open the place; what a store says may hold more than may be told, so none of it is passed on."""
        try:
            system, root = open_system(self.place)
            yield system, root.rstrip("/")
        except NacreError:
            raise
        except FAILURES:
            said = f"{self.place} cannot be read or written: check its name, and the credentials in the environment"
            raise ArtifactError(said) from None

    def names(self) -> set[str]:
        """List what lies at the place, by the names below it."""
        with self._reached() as (system, root):
            found = system.get_file_info(pafs.FileSelector(root, recursive=True, allow_not_found=True))
            return {info.path[len(root) + 1 :] for info in found if info.type == pafs.FileType.File}

    def put(self, file: Path, name: str) -> str:
        """Write a file, which is seen whole or not at all; return its digest."""
        with self._reached() as (system, root), pa.memory_map(str(file)) as source:
            sink = system.open_output_stream(f"{root}/{name}")
            sink.write(source.read_buffer())  # in one step: a stream that is left in the middle would end what it holds
            sink.close()
        return sha256_of(file)

    def write(self, content: bytes, name: str) -> None:
        """Write a small file, which is seen whole or not at all."""
        with self._reached() as (system, root), system.open_output_stream(f"{root}/{name}") as sink:
            sink.write(content)

    def read(self, name: str, most: int) -> bytes:
        """Return a small file's content, and no more than ``most`` bytes of it."""
        with self._reached() as (system, root), system.open_input_file(f"{root}/{name}") as source:
            return bytes(source.read(most))

    def size(self, name: str) -> int:
        """Return how many bytes a file has."""
        with self._reached() as (system, root):
            return int(system.get_file_info(f"{root}/{name}").size)

    def get(self, name: str, target: Path, sha256: str = "") -> Path:
        """Read a file into a new one; with a digest, it must be the file that was written.

        Raises:
            ArtifactError: it is not the one that was written, or is gone.
        """
        with self._reached() as (system, root), system.open_input_file(f"{root}/{name}") as source:
            source.download(str(target), buffer_size=STEP)
        if sha256 and sha256_of(target) != sha256:
            raise ArtifactError(f"{name} at {self.place} was changed after it was written; nothing was handed over")
        return target

    def digest(self, name: str) -> str:
        """Hash a file where it lies."""
        with self._reached() as (system, root), system.open_input_file(f"{root}/{name}") as source:
            seen = hashlib.sha256()
            while chunk := source.read(STEP):
                seen.update(chunk)
            return seen.hexdigest()

    def check_free(self) -> None:
        """Refuse a place that cannot hold a hand-off, or where something lies; writes nothing.

        Raises:
            InvalidArgument: the URI is none that can be written, or holds a secret, or something lies there.
            ArtifactError: this process cannot reach it.
        """
        check_place(self.place, "out")
        if self.place.startswith("https:"):
            raise InvalidArgument("out", "https://…", "be a folder, or a URI that can be written")
        if self.names():
            raise InvalidArgument("out", self.place, EMPTY)

    def check(self) -> None:
        """Refuse a place where this process cannot write, or cannot take away what it wrote.

        Raises:
            ArtifactError: it cannot.
        """
        self._mark(name := f".nacre-{token_hex(8)}")
        self._delete({name})

    def claim(self, run: str) -> None:
        """Keep the place for a run, before it is charged; of two that come at once, at most one gets it.

        Raises:
            InvalidArgument: something lies there.
        """
        if (own := claimed_by(run)) in (found := self.names()):
            return
        if not found:
            self._mark(own)
            found = self.names() - {own}
        if found:
            self._delete({own})
            raise InvalidArgument("out", self.place, EMPTY)

    def settle(self, run: str, folder: Path, manifest: Mapping[str, str], engine: Engine) -> None:
        """Write what the manifest names and is not there yet; then, where nothing else lies, signature and manifest.

        Raises:
            ArtifactError: something lies there that is not of this hand-off.
        """
        own, found = {claimed_by(run)}, self.names()
        here = sorted(name for name in manifest if (folder / name).is_file())
        last = [name for name in (SIGNATURE, MANIFEST) if (folder / name).is_file()]
        if found - own - manifest.keys() - set(last):
            raise ArtifactError(f"{self.place} holds what this run did not write; remove it and resume the run")
        for _ in engine.map(Upload(self, folder), here):
            pass
        if manifest.keys() - self.names():
            raise ArtifactError(f"{self.place} lacks a part that was written; resume the run under another --out")
        self._delete(own & found)
        for name in last:
            self.put(folder / name, name)

    def abandon(self, run: str) -> None:
        """Take away what a run left that never handed over, as far as the place can be reached."""
        with suppress(NacreError):
            found, own = self.names(), claimed_by(run)
            if own in found and MANIFEST not in found:
                self._delete({name for name in found if is_handed_over(name)})
                self._delete({own})

    def _mark(self, name: str) -> None:
        with TemporaryDirectory() as scratch:
            (file := Path(scratch) / name).write_text("kept for a hand-off that is being written\n", encoding="utf-8")
            self.put(file, name)

    def _delete(self, names: set[str]) -> None:
        with self._reached() as (system, root):
            for name in names:
                with suppress(FileNotFoundError):
                    system.delete_file(f"{root}/{name}")


def claimed_by(run: str) -> str:
    """Name the object that keeps a place for a run; its name begins as those of files that readers leave out."""
    return f".nacre-{run}"


@dataclass(frozen=True)
class Upload:
    """Writes a file of a folder to the same name in an object store."""

    bucket: Bucket
    folder: Path

    def __call__(self, name: str) -> None:
        """Write one file."""
        self.bucket.put(self.folder / name, name)


@dataclass(frozen=True)
class Fetched:
    """Does what is to be done with a file of a table, on a copy of it that lasts as long."""

    bucket: Bucket
    function: Any

    def __call__(self, part: tuple[str, str]) -> Any:
        """Fetch a file, given its name and its digest."""
        name, sha256 = part
        with TemporaryDirectory() as scratch:
            return self.function(self.bucket.get(f"{MADE['sample']}/{name}", Path(scratch) / name, sha256))


def write_listing(folder: Path, parts: Mapping[str, str]) -> None:
    """Write down which files a table has in an object store."""
    (folder / LISTING).write_text(json.dumps(dict(sorted(parts.items())), indent=1), encoding="utf-8")


def read_listing(folder: Path, place: str) -> dict[str, str] | None:
    """Return the files of a table in an object store and their digests; None where the table lies in the folder.

    Raises:
        ArtifactError: the listing is none that was written for a table, or the run's hand-off goes to no object store.
    """
    if not (folder / LISTING).is_file():
        return None
    if not place:  # whoever wrote it would have us read files of this machine
        raise ArtifactError(f"{folder / LISTING} is no file of a run whose hand-off goes to a folder")
    try:
        parts = json.loads(read_at_most(folder / LISTING, LARGEST_LISTING))
        sound = all(PART.fullmatch(name) and DIGEST.fullmatch(sha256) for name, sha256 in parts.items())
    except (ValueError, AttributeError, TypeError, RecursionError):
        sound = False
    if not sound or not parts:
        raise ArtifactError(f"{folder / LISTING} does not list the files of a table")
    return dict(sorted(parts.items()))


@contextmanager
def here(folder: Path, place: str, most: int | None = None) -> Iterator[Path]:
    """Yield a folder of this machine with the files of a table, or with the first of them, wherever they lie."""
    parts = read_listing(folder, place)
    if parts is None:
        yield folder
        return
    with TemporaryDirectory() as scratch:
        for name, sha256 in list(parts.items())[:most]:
            Bucket(place).get(f"{MADE['sample']}/{name}", Path(scratch) / name, sha256)
        yield Path(scratch)


def verify(place: str | Path, public_key: Path | None = None, officer_key: Path | None = None) -> Verification:
    """Check a hand-off in a folder, or in an object store: of its table there only digests are kept.

    Raises:
        NacreError: there is no readable manifest, the place cannot be read, or the key cannot.
    """
    if folder := local(place):
        check_there(folder)
        return verify_hand_off(folder, public_key, officer_key=officer_key, bar=progress_bar)
    bucket, elsewhere = Bucket(str(place)), dict[str, str]()
    with TemporaryDirectory() as scratch:
        names = bucket.names()
        for name in (MANIFEST, SIGNATURE, OFFICER_SIGNATURE):
            if name in names and bucket.size(name) <= LARGEST_LISTING:
                bucket.get(name, Path(scratch) / name)
        found, manifest = check_signers(Path(scratch), public_key, officer_key)
        if manifest is None:
            return found
        for name in set(names) - {MANIFEST, SIGNATURE, OFFICER_SIGNATURE}:
            known = name in manifest.artifacts and is_handed_over(name)
            if known and "/" not in name and bucket.size(name) <= LARGEST_LISTING:
                bucket.get(name, Path(scratch) / name)
            else:
                elsewhere[name] = bucket.digest(name) if known else ""
        return verify_hand_off(Path(scratch), public_key, elsewhere, officer_key)


def check_there(folder: Path) -> None:
    """Refuse what cannot be a hand-off, since no folder is there.

    Raises:
        FileMissing: nothing is there.
        Unsuitable: it is a file.
    """
    if not folder.exists():
        raise FileMissing(f"{folder} does not exist")
    if not folder.is_dir():
        raise Unsuitable(f"{folder} is a file; name the folder of the hand-off")


def local(out: str | Path) -> Path | None:
    """Return the folder that a place for a hand-off is; None for one in an object store."""
    place = str(out).removeprefix("file://")
    if "\0" in place:
        raise InvalidArgument("folder", place, "not hold the letter NUL")
    return None if is_uri(place) else Path(place).absolute()


def landing(out: str | Path, home: Path) -> dict[str, Any]:
    """Return the settings of a hand-off's place; of one in an object store, all but the table is also kept at home.

    A folder is where its links lead at this moment: what is checked now is what is written later.
    """
    folder = local(out)
    real = Path(os.path.realpath(folder)) if folder else home / "hand-offs" / new_name()
    return {"out": real, "bucket": "" if folder else str(out)}


def keep_place(run: Run, engine: Engine) -> Bucket | None:
    """Keep the place in an object store for a run's hand-off; return it if the table is drawn into it.

    It is not where the table is drawn by the train worker, from which it is received first, nor for users and
    their rows, which are cut apart first, or where columns are left out: one machine writes these.
    """
    settings = run.settings
    if not settings.bucket:
        return None
    bucket = Bucket(settings.bucket)
    apart = settings.train_on != "here" or is_cut(run.plan.release.contract)
    if not apart:
        engine.everywhere(bucket.check)
    bucket.claim(run.name)
    return None if apart else bucket
