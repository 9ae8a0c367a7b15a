#!/bin/sh
# Shows a deleted file's data in another file after a cut, with the kernel's data=journal
# (docs/risk.md). Needs root, loop devices, e2fsprogs and Python.
set -eu
folder=$(mktemp -d)
trap 'umount "$folder/mount" 2> /dev/null || true; rm -rf "$folder"' EXIT
mkdir "$folder/mount"
cd "$folder"
for mode in journal ordered; do
    rm -f disk cut
    truncate -s 16M disk
    mkfs.ext4 -q -F -b 1024 -J size=4 disk
    mount -o "loop,nodiscard,data=$mode" disk mount
    python3 - << 'PYTHON'
import os

def new(name, data=b""):
    file = os.open("mount/" + name, os.O_CREAT | os.O_WRONLY)
    os.write(file, data)
    return file

folder = os.open("mount", os.O_RDONLY)
# In the transaction of the deleted file, so that it stays in the journal.
new("kept", b"KEEP" * 16384)
deleted = new("deleted", b"OLD!" * 131072)
os.fsync(deleted)
os.close(deleted)
os.unlink("mount/deleted")
os.fsync(folder)
# The whole of what is free, nearly: the blocks of the deleted file too.
file = new("allocated")
os.posix_fallocate(file, 0, 9 << 20)
os.fsync(file)
for offset in range(0, 9 << 20, 16 << 10):
    if offset >> 20 not in (3, 4, 5, 6):
        os.pwrite(file, b"N" * 4096, offset)
os.fsync(file)
os.fsync(folder)
PYTHON
    cp disk cut
    umount mount
    e2fsck -fy cut > check.log 2>&1 || true
    debugfs -R "dump allocated after" cut 2> /dev/null
    python3 - "$mode" << 'PYTHON'
import sys

data = open("after", "rb").read()
old = sum(data[at:at + 4] == b"OLD!" for at in range(0, len(data), 1024))
print(f"data={sys.argv[1]}: {old} blocks of the deleted file in the new one after the replay")
PYTHON
done
