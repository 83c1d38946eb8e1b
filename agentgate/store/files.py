"""Where a SQLite ledger may lie: created private, never behind a symlink, never on a network file system."""

import os
import re
import stat
from pathlib import Path

from agentgate.errors import UnsafeStore

MOUNTS = Path("/proc/self/mountinfo")

# SQLite's locks and our front lock are advisory locks of the host's kernel; these do not keep them, or not
# across hosts. Source: sqlite.org/useovernet.html.
NETWORK = frozenset(
    [
        "nfs",
        "nfs4",
        "cifs",
        "smb2",
        "smb3",
        "smbfs",
        "ncpfs",
        "afs",
        "ceph",
        "lustre",
        "gpfs",
        "9p",
        "davfs",
        "fuse.sshfs",
        "fuse.glusterfs",
        "fuse.s3fs",
        "fuse.rclone",
        "fuse.gcsfuse",
        "fuse.davfs2",
        "beegfs",
        "orangefs",
        "ocfs2",
    ]
)
_OCTAL = re.compile(rb"\\([0-7]{3})")  # how mountinfo writes a space, a tab, a newline and a backslash
SIBLINGS = ("", "-journal", "-wal", "-shm", ".lock")


def create(path: Path) -> bool:
    """Create the database file readable by its owner alone; return whether it was new."""
    check(path)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    except FileExistsError:
        return False
    except FileNotFoundError as error:
        raise UnsafeStore(str(path), "its folder does not exist", "create the folder, or name another") from error
    except OSError as error:
        raise UnsafeStore(str(path), f"cannot be created ({error.strerror})", "name a folder you may write") from error
    os.close(descriptor)
    return True


def check(path: Path) -> None:
    """Refuse a place that would break the ledger's promises.

    Raises:
        UnsafeStore: the file or one of its siblings is a symlink or no regular file, or lies on a network
            file system.
    """
    for suffix in SIBLINGS:
        _check_regular(path.with_name(path.name + suffix))
    kind = file_system(path)
    if kind in NETWORK:
        raise UnsafeStore(
            str(path), f"lies on a network file system ({kind})", "use a local disk, or PostgreSQL for many machines"
        )


def _check_regular(path: Path) -> None:
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    except OSError as error:
        raise UnsafeStore(str(path), f"cannot be looked at ({error.strerror})", "check the path") from error
    if stat.S_ISLNK(mode):
        raise UnsafeStore(str(path), "is a symbolic link", "name the file it points to")
    if not stat.S_ISREG(mode):
        raise UnsafeStore(str(path), "is no regular file", "name a file")


def file_system(path: Path) -> str | None:
    """Return the type of the file system that holds ``path``; None where the host does not tell."""
    try:
        lines = MOUNTS.read_bytes().splitlines()
    except OSError:
        return None
    folder = os.path.realpath(os.fsencode(path.parent))
    best, kind = b"", None
    for line in lines:
        left, _, right = line.partition(b" - ")
        mount = _OCTAL.sub(lambda found: bytes([int(found[1], 8)]), left.split(b" ")[4])
        inside = folder == mount or folder.startswith(mount.rstrip(b"/") + b"/")
        # A later line at the same place hides the earlier one.
        if inside and len(mount) >= len(best):
            best, kind = mount, os.fsdecode(right.split(b" ")[0])
    return kind


def identity(path: Path) -> tuple[int, int]:
    """Return (device, inode): a database that is replaced under us accepts writes silently."""
    found = path.stat()
    return found.st_dev, found.st_ino
