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
    assert!(said.contains("the orphans: ") && said.contains("orphan file"), "{said}");
    assert!(!said.contains("replay"), "{said}");
}
