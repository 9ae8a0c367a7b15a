//! Open files without names, and truncations that a crash interrupts.

use std::process::Command;

use steadfast_ext4::{Ext4, Ext4Error, MountOptions};
use steadfast_vfs::{FileSystem, FsError, OpenFlags, SetAttr};

use crate::image::Image;
use crate::{RW, contents, create, mount};

fn images() -> Vec<Image> {
    ["^orphan_file", "orphan_file"].map(|f| Image::mke2fs(48 << 20, &["-O", f])).into()
}

#[test]
fn a_file_lives_until_it_is_closed() {
    for image in images() {
        let fs = mount(&image, MountOptions::default());
        let free = fs.statfs().unwrap();
        let (attr, fh) = create(&*fs, "gone", RW);
        fs.write(fh, 0, contents(1, 0, 500_000)).unwrap();
        fs.unlink(fs.root(), b"gone").unwrap();
        assert_eq!(fs.lookup(fs.root(), b"gone"), Err(FsError::NotFound));
        assert_eq!(fs.getattr(attr.ino).unwrap().nlink, 0);
        fs.write(fh, 500_000, contents(1, 500_000, 500_000)).unwrap();
        fs.fsync(fh, false).unwrap();
        assert_eq!(fs.read(fh, 0, 2_000_000).unwrap(), contents(1, 0, 1_000_000));
        fs.release(fh).unwrap();
        assert_eq!(fs.getattr(attr.ino), Err(FsError::NotFound));
        assert_eq!(fs.open(attr.ino, OpenFlags::READ), Err(FsError::NotFound));
        fs.sync().unwrap();
        assert_eq!(fs.statfs().unwrap(), free);
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

#[test]
fn orphans_of_a_crash_are_deleted_by_us_and_by_e2fsck() {
    for by_us in [true, false] {
        for image in images() {
            let fs = mount(&image, MountOptions::default());
            let free = fs.statfs().unwrap();
            let handles: Vec<_> = (0..40)
                .map(|i| {
                    let name = format!("orphan{i}");
                    let (_, fh) = create(&*fs, &name, RW);
                    fs.write(fh, 0, contents(i, 0, 50_000)).unwrap();
                    fs.unlink(fs.root(), name.as_bytes()).unwrap();
                    fh
                })
                .collect();
            // Some in the middle go in order.
            for fh in &handles[10..20] {
                fs.release(*fh).unwrap();
            }
            fs.sync().unwrap();
            drop(fs);
            if by_us {
                let fs = mount(&image, MountOptions::default());
                assert_eq!(fs.statfs().unwrap(), free);
                fs.unmount().unwrap();
            } else {
                image.repair();
                let fs = mount(&image, MountOptions::default());
                assert_eq!(fs.statfs().unwrap().inodes_free, free.inodes_free);
                fs.unmount().unwrap();
            }
            image.assert_clean();
        }
    }
}

#[test]
fn a_file_open_at_unmount_is_deleted() {
    for image in images() {
        let fs = mount(&image, MountOptions::default());
        let free = fs.statfs().unwrap();
        let (_, fh) = create(&*fs, "open", RW);
        fs.write(fh, 0, contents(1, 0, 300_000)).unwrap();
        fs.unlink(fs.root(), b"open").unwrap();
        fs.unmount().unwrap();
        image.assert_clean();
        drop(fs);
        let fs = mount(&image, MountOptions::default());
        assert_eq!(fs.statfs().unwrap(), free);
        fs.unmount().unwrap();
        image.assert_clean();
    }
}

#[test]
fn large_files_are_cut_and_deleted_in_steps() {
    // 1 KiB blocks, every second one a hole: tens of thousands of extents.
    let image = Image::mke2fs(64 << 20, &["-b", "1024", "-J", "size=1"]);
    let fs = mount(&image, MountOptions::default());
    let free = fs.statfs().unwrap();
    let (attr, fh) = create(&*fs, "holes", RW);
    for i in 0..15_000u64 {
        fs.write(fh, i * 2048, contents(i, 0, 1024)).unwrap();
    }
    fs.fsync(fh, false).unwrap();
    let cut = SetAttr { size: Some(1 << 20), ..SetAttr::default() };
    fs.setattr(attr.ino, cut).unwrap();
    let blocks = fs.getattr(attr.ino).unwrap().blocks_512;
    assert!((1024..1100).contains(&blocks), "{blocks}");
    fs.write(fh, 20 << 20, contents(1, 0, 9000)).unwrap();
    fs.release(fh).unwrap();
    fs.unlink(fs.root(), b"holes").unwrap();
    fs.sync().unwrap();
    assert_eq!(fs.statfs().unwrap(), free);
    fs.unmount().unwrap();
    image.assert_clean();
}

pub(crate) fn debugfs(image: &Image, command: &str) -> String {
    let done = Command::new("debugfs").args(["-w", "-R", command]).arg(image.path()).output();
    let done = done.unwrap();
    assert!(done.status.success(), "{command}");
    String::from_utf8(done.stdout).unwrap()
}

/// The orphan file's inode (12, with links or without), the journal's and the root are never
/// deleted, whatever an image says.
#[test]
fn inodes_of_the_file_system_itself_are_no_orphans() {
    let features = ["-O", "orphan_file,^metadata_csum", "-b", "4096"];
    for (in_file, number) in [(false, 12u32), (false, 2), (false, 8), (true, 12), (true, 2)] {
        let image = Image::mke2fs(64 << 20, &features);
        if in_file {
            let block: usize = debugfs(&image, "bmap <12> 0").trim().parse().unwrap();
            let mut bytes = std::fs::read(image.path()).unwrap();
            bytes[block * 4096..][..4].copy_from_slice(&number.to_le_bytes());
            std::fs::write(image.path(), bytes).unwrap();
        } else {
            debugfs(&image, &format!("ssv last_orphan {number}"));
            if number == 12 {
                debugfs(&image, "sif <12> links_count 0");
            }
        }
        let before = std::fs::read(image.path()).unwrap();
        let refused = Ext4::mount(crate::open(&image), MountOptions::default()).map(drop);
        let says = matches!(&refused, Err(Ext4Error::Corrupt { what, .. })
            if what.contains("belongs to the file system itself"));
        assert!(says, "inode {number}: {refused:?}");
        assert!(std::fs::read(image.path()).unwrap() == before, "inode {number}: changed");
        let found = steadfast_ext4_check::check(&crate::open(&image), None).unwrap();
        let says = match in_file {
            true => format!("holds inode {number}"),
            false => format!("the list of orphans leads to inode {number}"),
        };
        assert!(found.findings.iter().any(|f| f.text.ends_with(&says)), "{:?}", found.findings);
    }
}
