//! What is sound and looks odd, and what is damaged and easily missed; e2fsck is asked too.

use crate::image::Image;

const MIB: u64 = 1 << 20;

/// Both find something; what we say.
fn assert_damaged(image: &Image, text: &str) {
    let (clean, said) = image.e2fsck();
    assert!(!clean, "{text}: e2fsck finds nothing: {said}");
    let said = image.ends("check disk.img", 1);
    assert!(said.contains(text), "{said}");
}

#[test]
fn sound_however_odd() {
    let image = Image::mke2fs(16 * MIB, &["-O", "quota,orphan_file"]);
    image.assert_clean();
    let image = Image::mke2fs(16 * MIB, &["-O", "^metadata_csum"]);
    image.poke(1024 + 0x68, &[0; 16]);
    image.assert_clean();
    // After 2310 and before 1970, as the kernel writes them. e2fsck asks whether the first is
    // not rather before 1970, too, as old kernels wrote it; to that, no is an answer.
    let image = Image::mke2fs(16 * MIB, &[]);
    image.debugfs(&[
        "mkdir d",
        "sif d mtime @-100000000",
        "sif d mtime_extra 3",
        "sif d atime @-100000000",
    ]);
    assert!(image.ends("check disk.img", 0).contains("clean"));
    assert!(image.ends("ls disk.img", 0).contains(" d"));
}

/// A descriptor of more than 64 bytes has a checksum over all of them, and the rest is kept.
#[test]
fn group_descriptors_of_128_bytes() {
    for checksums in [None, Some("metadata_csum"), Some("uninit_bg")] {
        let options = ["-b", "1024", "-O", "^resize_inode,^metadata_csum,^uninit_bg,64bit"];
        let image = Image::mke2fs(8 * MIB, &options);
        // One group, and so one descriptor, made longer in place.
        image.poke(1024 + 0xfe, &128u16.to_le_bytes());
        image.poke(2 * 1024 + 100, b"of another time");
        if let Some(feature) = checksums {
            image.tune2fs(&["-O", feature]);
        }
        image.assert_clean();
        std::fs::write(image.folder().join("file"), vec![7; 100_000]).unwrap();
        image.ends("put disk.img file /file", 0);
        image.ends("mkdir disk.img /folder", 0);
        image.assert_clean();
        image.ends("rm disk.img /file", 0);
        image.assert_clean();
        assert_eq!(image.bytes(2 * 1024 + 100, 15), b"of another time");
    }
}

#[test]
fn the_block_of_multiple_mount_protection() {
    let image = Image::mke2fs(16 * MIB, &["-O", "mmp"]);
    image.assert_clean();
    let block = u64::from_le_bytes(image.bytes(1024 + 0x168, 8).try_into().unwrap());
    let block_size = 1024 << u32::from_le_bytes(image.bytes(1024 + 0x18, 4).try_into().unwrap());
    let at = block * block_size;
    image.poke(at, b"XXXX");
    assert_damaged(&image, "multiple-mount protection");
    image.ends("mkdir disk.img /x", 1);
    let image = Image::mke2fs(16 * MIB, &["-O", "mmp"]);
    image.poke(at + 100, b"XXXX");
    assert_damaged(&image, "wrong checksum in the block of multiple-mount protection");
}

#[test]
fn a_journal_inode_that_says_it_is_encrypted() {
    let image = Image::mke2fs(16 * MIB, &["-O", "encrypt"]);
    image.debugfs(&["sif <8> flags 0x80800"]);
    let said = image.ends("check disk.img", 1);
    assert!(said.contains("the journal is no plain regular file"), "{said}");
    // A mount goes by the superblock's copy of the inode, and writes nothing.
    assert!(image.ends("ls disk.img", 0).contains("lost+found"));
    let before = std::fs::read(image.path()).unwrap();
    image.ends("mkdir disk.img /x", 1);
    assert!(std::fs::read(image.path()).unwrap() == before);
}

#[test]
fn a_journal_of_several_users() {
    let image = Image::mke2fs(16 * MIB, &["-b", "1024", "-O", "^metadata_csum"]);
    let said = image.debugfs(&["bmap <8> 0"]);
    let block: u64 = said.lines().last().unwrap().trim().parse().unwrap();
    image.poke(block * 1024 + 0x40, &3u32.to_be_bytes());
    assert_damaged(&image, "3 file systems use it");
}

#[test]
fn the_last_group_without_a_bitmap() {
    let options = ["-b", "1024", "-O", "^metadata_csum,uninit_bg,^64bit,^flex_bg"];
    let image = Image::mke2fs(24 * MIB, &options);
    image.assert_clean();
    image.debugfs(&["set_bg 2 flags 7", "set_bg 2 checksum calc"]);
    assert_damaged(&image, "the last group is marked as uninitialised");
}

#[test]
fn orphans_are_reported() {
    let image = Image::mke2fs(16 * MIB, &["-O", "^metadata_csum,^orphan_file"]);
    std::fs::write(image.folder().join("file"), vec![1; 50_000]).unwrap();
    image.debugfs(&[
        &format!("write {} file", image.folder().join("file").display()),
        "sif file links_count 0",
        "sif file dtime 0",
        "ssv last_orphan 12",
        "unlink file",
    ]);
    let said = image.ends("check disk.img", 0);
    assert!(said.contains("1 orphan, which the next mount deletes or cuts"), "{said}");
    assert!(image.ends("replay disk.img", 0).contains("1 orphan deleted or cut"));
    image.assert_clean();
}

/// The superblock asks for more room in each inode than an inode can have, or for an odd number.
#[test]
fn room_for_fields_that_cannot_be_is_not_given() {
    for (min, want) in [(7u16, 46u16), (0, 7), (0, 200), (0, 0), (40, 36)] {
        let image = Image::mke2fs(4 * MIB, &["-I", "256", "-O", "^metadata_csum"]);
        // s_min_extra_isize and s_want_extra_isize.
        image.poke(1024 + 0x15c, &[min.to_le_bytes(), want.to_le_bytes()].concat());
        std::fs::write(image.folder().join("file"), "x").unwrap();
        image.ends("put disk.img file /x", 0);
        let given = image.debugfs(&["stat /x"]);
        let expected = if min == 40 { 40 } else { 32 };
        assert!(given.contains(&format!("extra inode fields: {expected}")), "{given}");
        image.ends("check disk.img", 0);
        // It reports the superblock, and finds nothing wrong with the inodes.
        let judged = std::process::Command::new("e2fsck").arg("-fn").arg(image.path()).output();
        let judged = judged.unwrap();
        let said = String::from_utf8_lossy(&judged.stdout);
        assert!(judged.status.success() && !said.contains("Inode"), "{said}");
    }
}
