//! What e2fsck, debugfs and the kernel say of an image that the library made.

use std::fs;
use std::path::Path;
use std::process::Command;

use steadfast::{DataMode, ExtVersion, Image, Journal};

fn run(program: &str, arguments: &[&str]) -> String {
    let out = Command::new("timeout")
        .args(["-s", "KILL", "60", program])
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{program} {arguments:?}: {text}{errors}");
    text
}

fn e2fsck_is_clean(disk: &Path, card: Option<&Path>) {
    let mut arguments = vec!["-fn"];
    if let Some(card) = card {
        arguments.extend(["-j", card.to_str().unwrap()]);
    }
    arguments.push(disk.to_str().unwrap());
    run("e2fsck", &arguments);
}

#[test]
fn every_kind_is_clean_and_debugfs_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, card) = (folder.path().join("disk.img"), folder.path().join("card.img"));
    let text: Vec<u8> = (0..200_000u32).flat_map(u32::to_le_bytes).collect();
    for kind in [ExtVersion::Ext2, ExtVersion::Ext3, ExtVersion::Ext4] {
        let modes: &[DataMode] = match kind {
            ExtVersion::Ext2 => &[DataMode::Ordered],
            _ => &[DataMode::Ordered, DataMode::Writeback, DataMode::Journal, DataMode::Transact],
        };
        for (outside, data) in modes.iter().flat_map(|mode| [(false, *mode), (true, *mode)]) {
            if outside && kind == ExtVersion::Ext2 {
                continue;
            }
            let mut image = Image::create(&disk).size(32 << 20).kind(kind).data(data);
            if outside {
                image = image.journal(Journal::external(&card));
            }
            let fs = image.mount().unwrap();
            fs.create_dir_all("/a/b").unwrap();
            fs.write("/a/b/file", &text).unwrap();
            fs.hard_link("/a/b/file", "/a/other").unwrap();
            fs.symlink("b/file", "/a/link").unwrap();
            fs.write("/gone", &text).unwrap();
            fs.remove_file("/gone").unwrap();
            fs.rename("/a/other", "/other").unwrap();
            fs.unmount().unwrap();
            e2fsck_is_clean(&disk, outside.then_some(&card));
            let copy = folder.path().join("copy");
            let dump = format!("dump /a/b/file {}", copy.display());
            run("debugfs", &["-R", &dump, disk.to_str().unwrap()]);
            assert!(fs::read(&copy).unwrap() == text, "{kind:?} {data:?}");
            for path in [&disk, &card, &copy] {
                let _ = fs::remove_file(path);
            }
        }
    }
}

#[test]
fn what_fails_leaves_no_image_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (disk, card) = (folder.path().join("disk.img"), folder.path().join("card.img"));
    let image = || Image::create(&disk).size(32 << 20).journal(Journal::external(&card));
    let error = image().journal_size(64 << 10).mount().unwrap_err();
    assert!(error.to_string().contains("a journal has at least"), "{error}");
    assert!(!disk.exists() && !card.exists());
    image().mount().unwrap().unmount().unwrap();
    // A journal that is in use, and a file that holds something.
    let other = folder.path().join("other.img");
    let error = Image::create(&other).size(32 << 20).journal(Journal::external(&card)).mount();
    assert!(error.is_err() && !other.exists() && card.exists());
    fs::write(&other, [b"XFSB".as_slice(), &[0; 1 << 20]].concat()).unwrap();
    let error = Image::create(&other).mount().unwrap_err();
    assert!(error.to_string().contains("holds an XFS file system"), "{error}");
}

/// As root: the kernel mounts what was written, and the library reads what the kernel wrote.
#[test]
fn the_kernel_reads_it_and_writes_it() {
    if !rustix::process::geteuid().is_root() {
        println!("SKIPPED: needs root");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (disk, at) = (folder.path().join("disk.img"), folder.path().join("mnt"));
    fs::create_dir(&at).unwrap();
    let fs = Image::create(&disk).size(32 << 20).data(DataMode::Transact).mount().unwrap();
    fs.create_dir("/folder").unwrap();
    fs.write("/folder/file", "by the library").unwrap();
    fs.unmount().unwrap();
    let (disk_name, at_name) = (disk.to_str().unwrap(), at.to_str().unwrap());
    run("mount", &["-o", "loop", "-t", "ext4", disk_name, at_name]);
    let read = fs::read_to_string(at.join("folder/file"));
    let written = fs::write(at.join("folder/reply"), "by the kernel");
    run("umount", &[at_name]);
    assert_eq!(read.unwrap(), "by the library");
    written.unwrap();
    let fs = Image::open(&disk).mount().unwrap();
    assert_eq!(fs.read_to_string("/folder/reply").unwrap(), "by the kernel");
    fs.unmount().unwrap();
    e2fsck_is_clean(&disk, None);
}
