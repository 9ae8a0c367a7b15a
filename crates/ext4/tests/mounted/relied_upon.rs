//! What a mount relies upon is looked at before anything is written.

use std::os::unix::fs::FileExt;
use std::process::Command;

use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_vfs::FileSystem;

use crate::image::Image;
use crate::{RW, create, mount, open};

/// Changes the image by debugfs.
fn change(image: &Image, requests: &[&str]) {
    for request in requests {
        let mut debugfs = Command::new("debugfs");
        let out = debugfs.args(["-w", "-R", request]).arg(image.path()).output().unwrap();
        assert!(out.status.success(), "{request}: {out:?}");
    }
}

/// Nothing is written, and the refusal's text.
fn refused(image: &Image, options: MountOptions) -> String {
    let before = std::fs::read(image.path()).unwrap();
    let error = Ext4::mount(open(image), options).map(drop).unwrap_err();
    assert!(before == std::fs::read(image.path()).unwrap(), "something was written: {error}");
    error.to_string()
}

#[test]
fn a_root_that_is_no_directory_is_refused() {
    for (requests, word) in [
        (&["set_inode_field <2> mode 0100755"][..], "no directory"),
        (&["set_inode_field <2> links_count 0", "set_inode_field <2> dtime 1"], "not in use"),
        (&["set_inode_field <2> links_count 0"], "no links"),
        (&["set_inode_field <2> size 0"], "no contents"),
        (&["set_inode_field <2> blocks 0"], "no contents"),
        (&["clri <2>"], "no valid file type"),
    ] {
        let image = Image::mke2fs(16 << 20, &[]);
        change(&image, requests);
        for read_only in [false, true] {
            let said = refused(&image, MountOptions { read_only, ..MountOptions::default() });
            assert!(said.contains(word) && said.contains("e2fsck"), "{requests:?}: {said}");
            assert!(said.contains("inode 2"), "{requests:?}: {said}");
        }
        let direct = MountOptions { read_only: true, no_load: true, ..MountOptions::default() };
        assert!(refused(&image, direct).contains(word), "{requests:?}");
    }
}

#[test]
fn other_inodes_of_the_file_systems_own_are_refused_by_name() {
    for (features, request, word) in [
        ("quota", "clri <3>", "quota file has no valid file type"),
        ("quota", "set_inode_field <4> mode 0040755", "no ordinary file"),
        ("orphan_file", "clri <12>", "orphan file has no valid file type"),
    ] {
        let image = Image::mke2fs(16 << 20, &["-O", features]);
        change(&image, &[request]);
        let said = refused(&image, MountOptions::default());
        assert!(said.contains(word), "{request}: {said}");
    }
}

#[test]
fn an_orphan_that_is_not_in_use_is_refused() {
    for features in ["metadata_csum", "^has_journal", "^metadata_csum"] {
        let image = Image::mke2fs(16 << 20, &["-O", features]);
        change(&image, &["set_super_value last_orphan 200"]);
        let said = refused(&image, MountOptions::default());
        assert!(said.contains("inode 200"), "{features}: {said}");
        let read_only = MountOptions { read_only: true, ..MountOptions::default() };
        Ext4::mount(open(&image), read_only).unwrap().unmount().unwrap();
    }
}

#[test]
fn a_directory_hash_without_a_name_is_refused() {
    let image = Image::mke2fs(16 << 20, &["-O", "^metadata_csum"]);
    let file = std::fs::File::options().write(true).open(image.path()).unwrap();
    file.write_all_at(&[255], 1024 + 0xfc).unwrap();
    for read_only in [false, true] {
        let said = refused(&image, MountOptions { read_only, ..MountOptions::default() });
        assert!(said.contains("directory hash version 255"), "{said}");
    }
}

/// The journal is left as it is: the next mount replays it, and says so.
#[test]
fn what_the_journal_holds_stays_where_the_mount_is_refused() {
    let image = Image::mke2fs(32 << 20, &["-O", "bigalloc"]);
    let fs = mount(&image, MountOptions::default());
    create(&*fs, "kept", RW);
    fs.sync().unwrap();
    drop(fs);
    // Not with bigalloc, and not on what is no memory.
    let transact = MountOptions { data: DataMode::Transact, ..MountOptions::default() };
    assert!(refused(&image, transact).contains("bigalloc"));
    // The root directory is cleared in its place, but not in the log, which has it whole.
    change(&image, &["clri <2>"]);
    let fs = mount(&image, MountOptions::default());
    assert!(fs.recovery().is_some());
    fs.lookup(fs.root(), b"kept").unwrap();
    fs.unmount().unwrap();
    image.assert_clean();
}
