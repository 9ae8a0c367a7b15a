//! Sixteen kinds of file systems, each with a tree in it.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// How one is made.
pub struct Kind {
    pub name: &'static str,
    /// Arguments of mke2fs.
    mke2fs: &'static str,
    /// With a transaction in the log that was not written home.
    dirty: bool,
}

const fn kind(name: &'static str, mke2fs: &'static str) -> Kind {
    Kind { name, mke2fs, dirty: false }
}

const fn dirty(name: &'static str, mke2fs: &'static str) -> Kind {
    Kind { name, mke2fs, dirty: true }
}

/// All of them. Most have no checksums of metadata: with them a changed block is refused at once.
pub const KINDS: [Kind; 16] = [
    kind("ext2", "-t ext2 -b 1024"),
    kind("ext3", "-t ext3 -b 1024"),
    kind("small inodes, block maps", "-t ext4 -b 1024 -I 128 -O ^extent,^64bit,^metadata_csum"),
    kind("ext3, blocks of 4 KiB", "-t ext3 -b 4096 -I 256"),
    kind("ext4 without checksums", "-t ext4 -b 1024 -O ^metadata_csum,^64bit"),
    kind("blocks of 4 KiB", "-t ext4 -b 4096 -O ^metadata_csum"),
    kind("bigalloc", "-t ext4 -b 1024 -C 16384 -O bigalloc,^metadata_csum"),
    kind("inline data", "-t ext4 -b 1024 -I 256 -O inline_data,^metadata_csum"),
    kind("ext4", "-t ext4 -b 1024 -O metadata_csum,64bit"),
    kind("quotas", "-t ext4 -b 1024 -O quota,project,orphan_file,^metadata_csum"),
    kind("checksum seed", "-t ext4 -b 1024 -O metadata_csum,metadata_csum_seed,orphan_file"),
    kind("values in inodes", "-t ext4 -b 1024 -O ea_inode,^metadata_csum"),
    kind("meta_bg", "-t ext4 -b 1024 -O meta_bg,^resize_inode,^metadata_csum"),
    kind(
        "casefold, encrypt, verity",
        "-t ext4 -b 1024 -g 2048 -O encrypt,verity,sparse_super2,uninit_bg,^metadata_csum",
    ),
    dirty("a log to replay", "-t ext4 -b 1024 -O ^metadata_csum,^64bit"),
    dirty("a log with checksums", "-t ext4 -b 1024 -O metadata_csum,64bit"),
];

const SIZE: &str = "12m";

/// The image of one kind, made in `folder`.
pub fn make(kind: &Kind, folder: &Path) -> Vec<u8> {
    let (tree, image) = (folder.join("tree"), folder.join("whole.img"));
    tree_of(&tree);
    let mut mke2fs = Command::new("mke2fs");
    mke2fs.args(["-q", "-F", "-E", "root_owner=0:0", "-d"]).arg(&tree);
    mke2fs.args(kind.mke2fs.split(' ')).arg(&image).arg(SIZE);
    good(&mut mke2fs);
    let value = folder.join("value");
    fs::write(&value, vec![b'v'; 700]).unwrap();
    // A file in many pieces, attributes inside and outside of inodes.
    let mut script = String::from("ea_set /d1/a user.small inside\n");
    for path in ["/d1/b", "/d1/c"] {
        script += &format!("ea_set -f {} {path} user.long\n", value.display());
    }
    for block in (1..120).step_by(2) {
        script += &format!("punch /pieces {block} {block}\n");
    }
    if kind.dirty {
        // The log rewrites some of the blocks that hold the descriptors, the bitmaps and inodes.
        script += "jo\njw -b 2,3,4,5,100 /dev/zero\njc\n";
    }
    let commands = folder.join("commands");
    fs::write(&commands, script).unwrap();
    good(Command::new("debugfs").args(["-w", "-f"]).arg(&commands).arg(&image));
    fs::read(&image).unwrap()
}

fn good(command: &mut Command) {
    let out = command.output().unwrap();
    assert!(out.status.success(), "{command:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// Files of all sizes, links that lead out, a folder with many names, a hole.
fn tree_of(tree: &Path) {
    for folder in ["d1/d2/d3/d4", "many", "empty"] {
        fs::create_dir_all(tree.join(folder)).unwrap();
    }
    for (name, len) in [("a", 40), ("b", 3_000), ("c", 20_000), ("d2/d", 1_024), ("d2/d3/e", 1)] {
        fs::write(tree.join("d1").join(name), contents(len)).unwrap();
    }
    fs::write(tree.join("pieces"), contents(120 * 1024)).unwrap();
    for i in 0..150 {
        fs::write(tree.join(format!("many/a name of some length, number {i}")), "").unwrap();
    }
    let hole = fs::File::create(tree.join("hole")).unwrap();
    hole.set_len(5 << 20).unwrap();
    for (name, to) in [("out", "../victim"), ("outd", "../outside"), ("up", ".."), ("loop", "loop")]
    {
        symlink(to, tree.join("d1").join(name)).unwrap();
    }
    symlink("x".repeat(100), tree.join("long")).unwrap();
    fs::hard_link(tree.join("d1/a"), tree.join("d1/d2/again")).unwrap();
}

/// Recognised by [`super::mutation`], which leaves it alone.
fn contents(len: usize) -> Vec<u8> {
    super::mutation::CONTENTS.iter().copied().cycle().take(len).collect()
}
