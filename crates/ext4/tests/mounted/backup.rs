//! A damaged journal inode: the superblock's copy of it leads to the log.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::process::Command;
use std::sync::Arc;

use steadfast_ext4::mount::replayed_blocks;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_check::{FindingKind, check};
use steadfast_vfs::{FileSystem, FsError};

use crate::image::Image;
use crate::{RW, contents, create, mount, open, read_all};

/// Where the inode of the journal stands.
fn journal_inode(image: &Image, block_size: u64) -> u64 {
    let out = Command::new("debugfs").args(["-R", "imap <8>"]).arg(image.path()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    // "Inode 8 is part of block group 0", then "located at block 37, offset 0x0700".
    let words: Vec<&str> = said.split_whitespace().skip_while(|w| *w != "located").collect();
    let after = |word: &str| words[words.iter().position(|w| *w == word).unwrap() + 1];
    let block: u64 = after("block").trim_end_matches(',').parse().unwrap();
    let offset = u64::from_str_radix(after("offset").trim_start_matches("0x"), 16).unwrap();
    block * block_size + offset
}

/// Leaves a dirty journal and its inode damaged.
fn damaged(block_size: u64, features: &str, at: u64, bytes: &[u8]) -> Image {
    let size = block_size.to_string();
    let image = Image::mke2fs(48 << 20, &["-b", &size, "-I", "256", "-O", features]);
    let fs = mount(&image, MountOptions::default());
    for i in 0..5u64 {
        let (_, fh) = create(&*fs, &format!("kept{i}"), RW);
        fs.write(fh, 0, contents(i, 0, 10_000)).unwrap();
        fs.fsync(fh, false).unwrap();
        fs.release(fh).unwrap();
    }
    drop(fs);
    let file = OpenOptions::new().write(true).open(image.path()).unwrap();
    file.write_all_at(bytes, journal_inode(&image, block_size) + at).unwrap();
    image
}

fn assert_kept(fs: &dyn FileSystem) {
    for i in 0..5 {
        assert_eq!(read_all(fs, &format!("kept{i}")), contents(i, 0, 10_000), "kept{i}");
    }
}

#[test]
fn the_log_is_found_by_the_copy_of_its_inode() {
    let new = "metadata_csum,64bit";
    let old = "^metadata_csum,^64bit,^extent";
    // A wrong checksum; all zeros; a map to nowhere; no links.
    for (features, at, bytes) in [
        (new, 4, &[1, 2, 3, 4][..]),
        (new, 0, &[0; 256]),
        (old, 40, &[0; 60]),
        (old, 40, &[0xff; 60]),
        (old, 26, &[0; 2]),
    ] {
        // In small blocks the log does not happen to hold the journal's inode.
        let image = damaged(1024, features, at, bytes);
        let before = fs::read(image.path()).unwrap();
        let device = open(&image);
        let overlay = replayed_blocks(&device, &MountOptions::default()).unwrap();
        assert!(!overlay.is_empty());
        let found = check(&device, Some(&overlay)).unwrap().findings;
        let hint = |text: &str| text.contains("the superblock's copy of the inode is good");
        assert!(
            found.iter().any(|f| f.kind == FindingKind::Journal && hint(&f.text)),
            "{features} {at}: {found:?}"
        );
        let options = MountOptions { read_only: true, ..MountOptions::default() };
        let ro = Ext4::mount(Arc::clone(&device), options).unwrap();
        assert_kept(&*ro);
        ro.unmount().unwrap();
        drop((ro, device));
        assert!(before == fs::read(image.path()).unwrap(), "a read-only mount has written");
        let rw = mount(&image, MountOptions::default());
        assert_kept(&*rw);
        let why = rw.read_only_because().unwrap();
        assert!(why.contains("e2fsck") && why.contains("copy of its inode"), "{why}");
        let refused = rw.create(rw.root(), b"no", Default::default(), RW);
        assert!(matches!(refused, Err(FsError::ReadOnly { .. })));
        rw.unmount().unwrap();
        drop(rw);
        // e2fsck restores the inode from the same copy; then all is well.
        let mut command = Command::new("timeout");
        let args = ["-s", "KILL", "60", "e2fsck", "-fy"];
        let repaired = command.args(args).arg(image.path()).output().unwrap();
        assert!(repaired.status.code().is_some_and(|code| code <= 1), "{repaired:?}");
        image.assert_clean();
        let fs = mount(&image, MountOptions::default());
        assert_kept(&*fs);
        assert_eq!(fs.read_only_because(), None);
        fs.unmount().unwrap();
    }
}

#[test]
fn a_log_that_holds_the_inode_restores_it() {
    // In large blocks it stands beside the root directory's, and so in the log.
    let image = damaged(4096, "metadata_csum,64bit", 0, &[0; 256]);
    let fs = mount(&image, MountOptions::default());
    assert_kept(&*fs);
    assert_eq!(fs.read_only_because(), None);
    fs.unmount().unwrap();
    image.assert_clean();
}

/// Who only reads does not need the orphan file.
#[test]
fn a_damaged_orphan_file_beside_it_keeps_nobody_from_reading() {
    let image = damaged(1024, "metadata_csum,64bit,orphan_file", 0, &[0; 256]);
    let mut debugfs = Command::new("debugfs");
    let out = debugfs.args(["-w", "-R", "clri <12>"]).arg(image.path()).output().unwrap();
    assert!(out.status.success(), "{out:?}");
    let fs = mount(&image, MountOptions::default());
    assert_kept(&*fs);
    let why = fs.read_only_because().unwrap();
    assert!(why.contains("copy of its inode"), "{why}");
    fs.unmount().unwrap();
}
