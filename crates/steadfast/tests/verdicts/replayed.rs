//! After `replay` an image is as clean as after a mount.

use std::fs;

use steadfast_host::Mount;

use crate::image::Image;

/// What the kernel leaves when its power goes: files, and one that is open and has no name.
fn dirty(options: &[&str], orphan: bool) -> Option<Image> {
    let image = Image::mke2fs(16 << 20, options);
    let left = Image::mke2fs(1 << 20, &["-O", "^has_journal"]);
    let mount = match Mount::of_image(&image.path(), None, "commit=9999") {
        Ok(mount) => mount,
        Err(e) => {
            println!("SKIPPED: cannot mount: {e}");
            return None;
        }
    };
    let held = orphan.then(|| {
        let name = mount.path().join("nameless");
        fs::write(&name, [1; 50_000]).unwrap();
        let file = fs::File::open(&name).unwrap();
        fs::remove_file(name).unwrap();
        file
    });
    for n in 0..40 {
        let folder = mount.path().join(format!("d{n}"));
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("f"), [2; 5000]).unwrap();
        fs::File::open(folder.join("f")).unwrap().sync_all().unwrap();
    }
    fs::copy(image.path(), left.path()).unwrap();
    drop(held);
    drop(mount);
    Some(left)
}

#[test]
fn the_kernels_journal() {
    for (options, orphan) in [
        (&["-b", "1024"][..], false),
        (&["-b", "4096"], true),
        (&["-b", "1024", "-O", "orphan_file,metadata_csum_seed"], true),
        (&["-b", "1024", "-O", "^metadata_csum,^64bit,^flex_bg"], false),
    ] {
        let Some(image) = dirty(options, orphan) else { return };
        let said = image.ends("check disk.img", 0);
        assert!(said.contains("once its journal is replayed"), "{said}");
        let said = image.ends("replay disk.img", 0);
        assert!(said.contains(" replayed: "), "{said}");
        assert_eq!(said.contains("1 orphan deleted"), orphan, "{options:?}: {said}");
        image.assert_clean();
        assert!(image.ends("replay disk.img", 0).contains("nothing to replay"));
    }
}

/// With quota, which the kernel's mount may lack: an open file without a name is a quota's too.
#[test]
fn our_journal_with_quota() {
    let image = Image::mke2fs(16 << 20, &["-b", "1024", "-O", "quota"]);
    let at = image.folder().join("at");
    fs::create_dir(&at).unwrap();
    let mounted = image.run("mount disk.img at -o commit=300");
    if mounted.status != Some(0) {
        println!("SKIPPED: cannot mount: {}", mounted.err);
        return;
    }
    fs::write(at.join("nameless"), [1; 50_000]).unwrap();
    let held = fs::File::open(at.join("nameless")).unwrap();
    fs::remove_file(at.join("nameless")).unwrap();
    fs::write(at.join("kept"), [2; 5000]).unwrap();
    fs::File::open(at.join("kept")).unwrap().sync_all().unwrap();
    let left = Image::mke2fs(1 << 20, &["-O", "^has_journal"]);
    fs::copy(image.path(), left.path()).unwrap();
    drop(held);
    image.ends("umount at", 0);
    assert!(left.ends("check disk.img", 0).contains("once its journal is replayed"));
    assert!(left.ends("replay disk.img", 0).contains("1 orphan deleted"));
    left.assert_clean();
    image.assert_clean();
}

/// What is damaged is named, before it is said that all is well.
#[test]
fn a_damaged_orphan_file_with_nothing_to_replay() {
    let image = Image::mke2fs(16 << 20, &["-O", "orphan_file"]);
    image.debugfs(&["clri <12>"]);
    let said = image.ends("replay disk.img", 1);
    assert!(said.contains("with -o ro: ") && said.contains("orphan file"), "{said}");
    assert!(!said.contains("replay"), "{said}");
}

/// That there is nothing to replay is no good news of what a mount refuses.
#[test]
fn what_no_mount_takes() {
    for (features, request, words) in [
        ("quota", "set_inode_field <2> mode 0100644", "the root directory is no directory"),
        ("quota", "clri <3>", "quota file"),
        ("orphan_file", "clri <12>", "orphan file"),
        ("^has_journal", "clri <2>", "root directory"),
        ("^resize_inode", "set_block_group 0 checksum 1", "checksum"),
    ] {
        let image = Image::mke2fs(16 << 20, &["-O", features]);
        image.debugfs(&[request]);
        let before = fs::read(image.path()).unwrap();
        let said = image.ends("replay disk.img", 1);
        assert!(said.contains(words), "{request}: {said}");
        assert!(fs::read(image.path()).unwrap() == before, "{request}: something was written");
    }
    // An unknown state, and that of a running e2fsck.
    for (state, status, words) in
        [(0xff4d_4d0fu32, 1, "clear_mmp"), (0xe24d_4d50, 2, "e2fsck is running on the file system")]
    {
        let image = Image::mke2fs(16 << 20, &["-O", "mmp,^metadata_csum", "-b", "1024"]);
        let block = u64::from_le_bytes(image.bytes(1024 + 0x168, 8).try_into().unwrap());
        image.poke(block * 1024 + 4, &state.to_le_bytes());
        let said = image.ends("replay disk.img", status);
        assert!(said.contains("can only be mounted with -o ro") && said.contains(words), "{said}");
    }
}

/// By the superblock's copy of the journal's inode only the log is replayed: so a mount does.
#[test]
fn orphans_beside_a_damaged_journal_inode_are_left() {
    let image = Image::mke2fs(16 << 20, &[]);
    image.debugfs(&[
        "write /etc/passwd f",
        "unlink f",
        "sif <12> links_count 0",
        "ssv last_orphan 12",
        "sif <8> flags 0x80800",
    ]);
    let before = fs::read(image.path()).unwrap();
    let said = image.ends("replay disk.img", 0);
    assert!(said.contains("nothing to replay") && said.contains("left alone"), "{said}");
    assert!(!said.contains("deleted"), "{said}");
    assert!(fs::read(image.path()).unwrap() == before);
    // With the inode whole again it goes.
    image.debugfs(&["sif <8> flags 0x80000"]);
    assert!(image.ends("replay disk.img", 0).contains("1 orphan deleted"));
    image.assert_clean();
}
