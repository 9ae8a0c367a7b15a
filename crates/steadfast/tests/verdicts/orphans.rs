//! Orphans that the kernel leaves when its power goes: until the next mount they may be in any
//! state, and are no damage. e2fsck -p has nothing to do but to delete them.

use std::fs::{self, File, OpenOptions};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt, symlink};
use std::path::Path;
use std::process::Command;

use rustix::fs::{Mode, OFlags, XattrFlags, setxattr};
use steadfast_host::Mount;

use crate::image::Image;

const MIB: u64 = 1 << 20;

/// Opens anything, links and pipes too, and no more: who does so keeps it from being deleted.
fn held(path: &Path) -> OwnedFd {
    rustix::fs::open(path, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty()).unwrap()
}

/// Removes a file or a folder that stays open.
fn nameless(path: &Path) -> OwnedFd {
    let open = held(path);
    if path.is_dir() && !path.is_symlink() {
        fs::remove_dir(path).unwrap();
    } else {
        fs::remove_file(path).unwrap();
    }
    open
}

/// One orphan of each shape; how many there are is what there is to hold open.
fn orphans(at: &Path, values: bool) -> Vec<OwnedFd> {
    let mut open = Vec::new();
    let new = |name: &str| File::create_new(at.join(name)).unwrap();
    let mut gone = |name: &str| open.push(nameless(&at.join(name)));
    new("empty");
    gone("empty");
    new("file").write_all_at(&[1; 50_000], 0).unwrap();
    gone("file");
    // So many extents that there is a tree, or indirect blocks.
    let holes = new("holes");
    (0..200).for_each(|i| holes.write_all_at(&[2; 700], i * 9000).unwrap());
    holes.sync_all().unwrap();
    gone("holes");
    // Longer than what is mapped, and shorter.
    new("long").set_len(3 * MIB).unwrap();
    gone("long");
    let short = new("short");
    rustix::fs::fallocate(&short, rustix::fs::FallocateFlags::KEEP_SIZE, 0, 90_000).ok();
    gone("short");
    symlink("short", at.join("link")).unwrap();
    gone("link");
    symlink("long".repeat(100), at.join("link")).unwrap();
    gone("link");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        at.join("pipe"),
        rustix::fs::FileType::Fifo,
        0o644.into(),
        0,
    )
    .unwrap();
    gone("pipe");
    // Attributes that two share, one of them a folder; and one that is too long for a block.
    fs::create_dir(at.join("marked")).unwrap();
    new("marked2");
    for name in ["marked", "marked2"] {
        setxattr(at.join(name), "user.same", &[3; 700], XattrFlags::empty()).unwrap();
    }
    if values {
        for name in ["marked", "marked2"] {
            setxattr(at.join(name), "user.long", &[4; 9000], XattrFlags::empty()).unwrap();
        }
    }
    gone("marked");
    // Folders: one as it was made, one within another, one with an index.
    fs::create_dir(at.join("folder")).unwrap();
    gone("folder");
    fs::create_dir_all(at.join("outer/inner")).unwrap();
    gone("outer/inner");
    gone("outer");
    let large = at.join("large");
    fs::create_dir(&large).unwrap();
    let name = |i: u32| large.join(format!("{i:0>100}"));
    (0..300).for_each(|i| drop(File::create_new(name(i)).unwrap()));
    (0..300).for_each(|i| fs::remove_file(name(i)).unwrap());
    gone("large");
    // Renamed over.
    new("old").write_all_at(&[5; 5000], 0).unwrap();
    open.push(held(&at.join("old")));
    new("new").write_all_at(&[6; 5000], 0).unwrap();
    fs::rename(at.join("new"), at.join("old")).unwrap();
    // Never had a name.
    let unnamed = OpenOptions::new().write(true).custom_flags(libc::O_TMPFILE).open(at).unwrap();
    unnamed.write_all_at(&[7; 20_000], 0).unwrap();
    open.push(unnamed.into());
    open
}

/// What is on the disk of a machine whose power goes: `work` is done, and what it gives stays open.
fn cut<T>(image: &Image, work: impl FnOnce(&Path) -> T) -> Option<Image> {
    let mount = match Mount::of_image(&image.path(), None, "commit=9999") {
        Ok(mount) => mount,
        Err(e) => {
            println!("SKIPPED: cannot mount: {e}");
            return None;
        }
    };
    let open = work(mount.path());
    let other = File::create(mount.path().join("other")).unwrap();
    other.write_all_at(b"x", 0).unwrap();
    other.sync_all().unwrap();
    let left = image.copy();
    drop(open);
    Some(left)
}

/// What e2fsck says, which repairs without a question what is no damage. That is enough, but for
/// counts that e2fsck 1.47 itself gets wrong: of values in inodes, and of free clusters.
fn e2fsck_p(image: &Image, miscounts: bool) -> String {
    let copy = image.copy();
    let out = Command::new("e2fsck").arg("-p").arg(copy.path()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(matches!(out.status.code(), Some(0 | 1)), "e2fsck -p: {said}");
    if !miscounts {
        copy.assert_clean();
    }
    said
}

fn round(options: &[&str]) {
    let values = options.iter().any(|o| o.contains("ea_inode"));
    let image = Image::mke2fs(16 * MIB, options);
    let Some(left) = cut(&image, |at| orphans(at, values)) else { return };
    let judge = e2fsck_p(&left, values || options.iter().any(|o| o.contains("bigalloc")));
    assert!(judge.contains("Clearing orphaned inode"), "{options:?}: {judge}");
    let said = left.ends("check disk.img", 0);
    assert!(said.contains("clean, once its journal is replayed"), "{options:?}: {said}");
    let count = judge.matches("Clearing orphaned inode").count();
    assert!(said.contains(&format!("{count} orphans, which")), "{options:?}: {said}{judge}");
    assert!(left.ends("ls disk.img", 0).contains("other"), "{options:?}");
    let said = left.ends("replay disk.img", 0);
    assert!(said.contains(&format!("{count} orphans deleted or cut")), "{options:?}: {said}");
    left.assert_clean();
}

#[test]
fn of_a_list() {
    round(&["-b", "1024", "-O", "^orphan_file"]);
    round(&["-b", "4096", "-O", "^orphan_file,ea_inode"]);
    round(&["-b", "1024", "-O", "^orphan_file,^extent,^64bit,^metadata_csum"]);
}

#[test]
fn of_an_orphan_file() {
    round(&["-b", "1024", "-O", "orphan_file"]);
    round(&["-b", "1024", "-O", "orphan_file,ea_inode"]);
    round(&["-b", "4096", "-N", "1024", "-O", "orphan_file,bigalloc"]);
    // Mapped block by block.
    round(&["-b", "1024", "-O", "orphan_file,^extent,^64bit"]);
    round(&["-b", "1024", "-O", "orphan_file,^extent,^64bit,^metadata_csum"]);
}

/// What an orphan folder holds has no name any more: that is damage.
#[test]
fn a_folder_with_something_in_it() {
    let image = Image::mke2fs(16 * MIB, &["-b", "1024", "-O", "orphan_file"]);
    image.debugfs(&["mkdir d", "mkdir d/e"]);
    let inode = |path: &str| {
        let said = image.debugfs(&[&format!("stat {path}")]);
        let number = said.split("Inode: ").nth(1).and_then(|rest| rest.split(' ').next());
        number.unwrap().to_owned()
    };
    let (outer, inner) = (inode("d"), inode("d/e"));
    image.debugfs(&[
        "unlink d",
        &format!("sif <{outer}> links_count 0"),
        &format!("ssv last_orphan {outer}"),
        "sif / links_count 3",
    ]);
    let said = image.ends("check disk.img", 1);
    let lost = format!("directory inode {inner}: the directory has no name");
    assert!(said.contains(&lost), "{said}");
}

/// Of a damaged orphan file: who reads does without it; all others say the same of it.
#[test]
fn in_a_damaged_file() {
    for (dirty, bytes) in [(false, 4), (true, 4), (true, 400)] {
        let image = Image::mke2fs(16 * MIB, &["-b", "1024", "-O", "orphan_file"]);
        fs::create_dir(image.folder().join("m")).unwrap();
        let left = if dirty { cut(&image, |at| orphans(at, false)) } else { Some(image) };
        let Some(left) = left else { return };
        fs::create_dir_all(left.folder().join("m")).unwrap();
        // Not one that the log may hold: a kernel on processor n begins at block 13 n, of 32.
        let number = left.debugfs(&["bmap <12> 19"]);
        let number: u64 = number.lines().last().unwrap().trim().parse().unwrap();
        left.poke(number * 1024 + 400, &vec![0x5a; bytes]);
        let before = fs::read(left.path()).unwrap();
        left.ends("ls -R disk.img", 0);
        left.ends("get -r disk.img / out", 0);
        left.ends("info disk.img", 0);
        let mounted = left.run("mount disk.img m -o ro");
        if mounted.status == Some(0) {
            assert!(left.folder().join("m/lost+found").is_dir());
            left.ends("umount m", 0);
        } else {
            println!("SKIPPED: cannot mount: {}", mounted.err);
        }
        assert!(fs::read(left.path()).unwrap() == before, "a reader has written");
        let said = left.ends("check disk.img", 1);
        assert!(said.contains(&format!("block {number} of the orphan file")), "{said}");
        for line in ["replay disk.img", "mkdir disk.img /d", "mount disk.img m"] {
            let said = left.ends(line, 1);
            assert!(said.contains(&format!("(orphan file block {number})")), "{line}: {said}");
            assert!(said.contains("e2fsck -f repairs it"), "{line}: {said}");
        }
        let out = Command::new("e2fsck").arg("-fy").arg(left.path()).output().unwrap();
        assert!(matches!(out.status.code(), Some(1)), "e2fsck -fy: {:?}", out.status);
        left.assert_clean();
        left.ends("replay disk.img", 0);
        left.ends("mkdir disk.img /d", 0);
    }
}
