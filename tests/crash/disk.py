"""A folder whose every file operation is seen: what lies there before each, and what a disk may have kept by then.

Python's audit hooks see names that change: files that are opened to be written, renamed, removed, folders that are
made. ``os.fsync`` is wrapped. Before each of these the folder is read whole, with what C++ and Rust wrote meanwhile.
So one run gives every state that a kill can leave, and every state that a loss of power can: a file's bytes are kept
once it was synced, and a name once its folder was. The ledger is left as it is: SQLite syncs it, unseen by us.
"""

import hashlib
import os
import random
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

LEDGER = "ledger.sqlite"
CHANGES = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

Tree = dict[str, "Node"]
"""What lies below a folder, by relative path; the folders that hold it come before it."""


@dataclass(frozen=True)
class Node:
    """A file or a folder: its permissions, and the hash of its bytes; ``uid`` tells it from all others there were."""

    uid: int
    mode: int
    content: str = ""

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


@dataclass(frozen=True)
class Point:
    """What lies in the folder before one operation, and what of it was synced: bytes by file, names by folder."""

    operation: str
    tree: Tree
    bytes: dict[int, str]
    names: dict[int, dict[str, Node]]


@dataclass
class Disk:
    """Watches a folder; ``before`` is called before each operation with its number."""

    root: Path
    points: list[Point] = field(default_factory=list)
    contents: dict[str, bytes] = field(default_factory=dict)
    before: Callable[[int, str], None] | None = None

    def __post_init__(self) -> None:
        self._lock, self._busy, self.on, self.count = threading.RLock(), threading.local(), False, 0
        self._uids: dict[int, int] = {}
        self._next, self._bytes, self._names = 0, dict[int, str](), dict[int, dict[str, Node]]()

    def watch(self) -> None:
        """Begin to watch this process; what lies there by now has long been synced."""
        for uid, names in _folders(tree := self.scan()).items():
            self._names[uid] = names
        self._bytes = {node.uid: node.content for node in tree.values() if not node.is_folder}
        sys.addaudithook(self._audit)
        real = os.fsync

        def fsync(descriptor: int) -> None:
            if self.on:
                self._operate(f"fsync {_path(descriptor)}")
            real(descriptor)
            if self.on:
                self._synced(os.fstat(descriptor).st_ino)

        os.fsync = fsync
        self.on = True

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not self.on or getattr(self._busy, "now", False):
            return
        if event in CHANGES or (event == "open" and isinstance(args[2], int) and args[2] & WRITES):
            place = str(args[0]) if isinstance(args[0], str | os.PathLike) else ""
            if place.startswith(str(self.root)) or not place.startswith("/"):
                self._operate(f"{event} {place}")

    def _operate(self, what: str) -> None:
        with self._lock, self._unseen():
            number, self.count = self.count, self.count + 1
            if self.before is not None:
                self.before(number, what)
            else:
                names = {uid: dict(held) for uid, held in self._names.items()}
                self.points.append(Point(what, self.scan(), dict(self._bytes), names))

    def _synced(self, inode: int) -> None:
        with self._lock, self._unseen():
            tree = self.scan()
            uid = self._uids.get(inode)
            found = next((node for node in tree.values() if node.uid == uid), None)
            if uid is not None and found is not None and found.is_folder:
                self._names[uid] = _folders(tree)[uid]
            elif uid is not None and found is not None:
                self._bytes[uid] = found.content

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        before, self._busy.now = getattr(self._busy, "now", False), True
        try:
            yield
        finally:
            self._busy.now = before

    def scan(self) -> Tree:
        """Read the folder, the folder itself included."""
        tree, seen = Tree(), dict[int, int]()
        for place in [str(self.root), *(os.path.join(at, one) for at, fs, ns in os.walk(self.root) for one in fs + ns)]:
            try:
                facts = os.lstat(place)
                content = b"" if stat.S_ISDIR(facts.st_mode) else Path(place).read_bytes()
            except FileNotFoundError:  # of another thread
                continue
            uid = seen[facts.st_ino] = self._uids.get(facts.st_ino) or self._new()
            digest = "" if stat.S_ISDIR(facts.st_mode) else self.keep(content)
            tree[os.path.relpath(place, self.root)] = Node(uid, facts.st_mode, digest)
        self._uids = seen  # a number that is gone may be given to another file
        return tree

    def _new(self) -> int:
        self._next += 1
        return self._next

    def keep(self, content: bytes) -> str:
        """Keep bytes, and return their hash."""
        digest = hashlib.sha256(content).hexdigest()
        self.contents.setdefault(digest, content)
        return digest


def torn(disk: Disk, number: int) -> Tree:
    """Return what a kill leaves of a write in pieces: of each file that changed since the last operation, half."""
    tree, before = disk.points[number].tree, disk.points[max(number - 1, 0)].tree
    known = {node.uid: node.content for node in before.values()}

    def half(name: str, node: Node) -> Node:
        if node.is_folder or LEDGER in name or known.get(node.uid) == node.content:
            return node
        content = disk.contents[node.content]
        return Node(node.uid, node.mode, disk.keep(content[: len(content) // 2]))

    return {name: half(name, node) for name, node in tree.items()}


def without_power(disk: Disk, number: int, names: str) -> Tree:
    """Return what a disk may have when the power is lost, which is no byte that was not synced.

    Of the names it has those of the last moment (``new``), those that were synced (``old``), or, for each folder, one
    of the two (``mixed``); then each file too has what it had last, or what was synced of it.
    """
    point, choice, empty = disk.points[number], random.Random(number), disk.keep(b"")
    now, nodes = _folders(point.tree), {node.uid: node for node in point.tree.values()}
    tree = Tree()

    def content(node: Node) -> str:
        last = names == "mixed" and choice.random() < 0.5
        return nodes.get(node.uid, node).content if last else point.bytes.get(node.uid, empty)

    def walk(name: str, node: Node) -> None:
        tree[name] = node if node.is_folder else Node(node.uid, node.mode, content(node))
        if node.is_folder:
            new = names == "new" or (names == "mixed" and choice.random() < 0.5)
            entries = now.get(node.uid, {}) if new else point.names.get(node.uid, {})
            for entry, child in sorted(entries.items()):
                walk(os.path.normpath(os.path.join(name, entry)), child)

    walk(".", point.tree["."])
    for name, node in point.tree.items():
        if LEDGER in name:
            tree[name] = node
            for above in Path(name).parents:
                tree.setdefault(str(above), point.tree[str(above)])
    return dict(sorted(tree.items()))


def lay_out(disk: Disk, tree: Tree, ledger: Path) -> None:
    """Make the folder what a tree says; ``ledger`` keeps the ledger's file, whose number a home remembers."""
    for at, folders, files in os.walk(disk.root, topdown=False):
        for name in files:
            os.unlink(os.path.join(at, name))
        for name in folders:
            os.rmdir(os.path.join(at, name))
    for name, node in sorted(tree.items()):
        place = disk.root / name
        if node.is_folder:
            place.mkdir(exist_ok=True)
            place.chmod(stat.S_IMODE(node.mode))
            continue
        if place.name == LEDGER:
            os.link(ledger, place)
        place.write_bytes(disk.contents[node.content])
        place.chmod(stat.S_IMODE(node.mode))


def _folders(tree: Tree) -> dict[int, dict[str, Node]]:
    """Return the entries of each folder."""
    found: dict[int, dict[str, Node]] = {node.uid: {} for node in tree.values() if node.is_folder}
    for name, node in tree.items():
        if name != ".":
            above = tree.get(os.path.dirname(name) or ".")
            if above is not None:
                found[above.uid][os.path.basename(name)] = node
    return found


def _path(descriptor: int) -> str:
    return os.readlink(f"/proc/self/fd/{descriptor}")
