"""Where the sensitive zone may lie: on a disk of this machine, in folders that others can neither open nor replace."""

import os
import re
import stat
from pathlib import Path

from dpmodels.errors import ArtifactError

ACCEPTED = "shared-on-purpose"
"""A file in the home in which the operator says why the zone lies where others may reach it."""
MOUNTS = Path("/proc/self/mountinfo")
"""What Linux says of file systems; elsewhere nothing is known of them, and nothing is said."""
OVER_A_NETWORK = re.compile(
    r"nfs\d*|cifs|smb\d*|smbfs|afs|ncpfs|ceph|glusterfs|lustre|beegfs|gpfs|orangefs|ocfs2|gfs2|davfs\d*"
    r"|fuse\.(sshfs|s3fs|goofys|gcsfuse|blobfuse\d*|rclone|glusterfs|cephfs|juicefs|davfs\d*|afp\w*|curlftpfs|mount-s3)"
)


def check_place(home: Path) -> None:
    """Refuse a home whose sensitive zone others may reach, unless the operator wrote down why it lies there.

    Raises:
        ArtifactError: the zone can be opened or replaced by others, or lies on a network.
    """
    reach = _reach(home / "sensitive")
    accepted = home / ACCEPTED
    if reach and not (accepted.is_file() and accepted.read_text(encoding="utf-8", errors="replace").strip()):
        raise ArtifactError(
            f"{reach}; nothing was read and nothing was charged. If it must lie there, write the reason into {accepted}"
        )


def _reach(zone: Path) -> str:
    """Say how others reach a folder, or one that does not exist yet; empty if they do not."""
    there = next(part for part in (zone, *zone.parents) if part.exists()).resolve()
    kind = file_system(there)
    if OVER_A_NETWORK.fullmatch(kind):
        return f"the sensitive zone {zone} lies on a network ({kind}), where this machine's modes protect nothing"
    if zone.exists() and stat.S_IMODE(zone.stat().st_mode) & stat.S_IRWXO:
        return f"the sensitive zone {zone} is open to everybody on this machine: chmod 700 it"
    for part in (there, *there.parents):
        mode = part.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return f"everybody on this machine can write {part}, and so replace the sensitive zone in it: chmod o-w it"
    return ""


def file_system(path: Path) -> str:
    """Return the kind of file system that an absolute path lies on, as Linux names it; empty where nobody says."""
    try:
        lines = MOUNTS.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    kind, deepest = "", -1
    for line in lines:
        before, _, after = line.partition(" - ")
        fields, kinds = before.split(), after.split()
        if len(fields) < 5 or not kinds:
            continue
        mount = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), fields[4])
        if _is_below(path, mount) and len(mount) >= deepest:  # a later mount hides an earlier one
            kind, deepest = kinds[0], len(mount)
    return kind


def _is_below(path: Path, mount: str) -> bool:
    return os.path.commonpath([path, mount]) == mount if mount.startswith("/") else False
