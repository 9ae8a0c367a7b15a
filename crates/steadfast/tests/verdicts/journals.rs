//! Damaged journals: what is refused says what to do next, and can be read without the journal.

use std::fs;

use crate::image::Image;

const BLOCK: u64 = 1024;
const MAGIC: [u8; 4] = [0xc0, 0x3b, 0x39, 0x98];
const COMMIT: u32 = 2;
const REVOKE: u32 = 5;

/// An image with a file, and a journal of three transactions with checksums: two log a block each,
/// the third revokes the first.
fn dirty(checksums: bool) -> Image {
    let features = if checksums { "metadata_csum,64bit" } else { "^metadata_csum,^64bit" };
    let image = Image::mke2fs(8 << 20, &["-b", "1024", "-O", features, "-J", "size=2"]);
    let file = |name: &str| image.folder().join(name).display().to_string();
    for name in ["first", "second"] {
        fs::write(file(name), [name.as_bytes()[0]; BLOCK as usize]).unwrap();
    }
    image.debugfs(&[
        &format!("write {} file", file("first")),
        if checksums { "jo -c" } else { "jo" },
        &format!("jw -b 5000 {}", file("first")),
        &format!("jw -b 5001 {}", file("second")),
        "jw -r 5000",
        "jc",
    ]);
    image
}

/// Where the journal's blocks of a kind are, in bytes.
fn blocks_of(image: &Image, kind: u32) -> Vec<u64> {
    let said = image.debugfs(&["bmap <8> 0"]);
    let first: u64 = said.lines().last().unwrap().trim().parse().unwrap();
    let head = |at: u64| {
        let bytes = image.bytes(at, 8);
        bytes[..4] == MAGIC && bytes[4..] == kind.to_be_bytes()
    };
    (first + 1..first + 40).map(|block| block * BLOCK).filter(|at| head(*at)).collect()
}

/// Nothing is written and the way out is said; without the journal it can be read.
fn assert_refused(image: &Image, what: &str) {
    let before = fs::read(image.path()).unwrap();
    fs::write(image.folder().join("new"), "x").unwrap();
    for line in ["ls disk.img", "cat disk.img /file", "extents disk.img /file", "replay disk.img"] {
        let said = image.ends(line, 1);
        assert!(said.contains("hint:") && said.contains("--no-replay"), "{what}: {line}: {said}");
        assert!(said.contains("e2fsck -fy") && said.contains("noload"), "{what}: {line}: {said}");
    }
    image.ends("put disk.img new /new", 1);
    let said = image.ends("check disk.img", 1);
    assert!(said.contains("journal:") && said.contains("hint:"), "{what}: {said}");
    assert!(image.ends("ls --no-replay disk.img", 0).contains("file"), "{what}");
    assert_eq!(image.ends("cat --no-replay disk.img /file", 0), "f".repeat(BLOCK as usize));
    image.ends("get --no-replay disk.img /file got", 0);
    image.ends("extents --no-replay disk.img /file", 0);
    let said = image.ends("check --no-replay disk.img", 0);
    assert!(said.contains("without its journal"), "{what}: {said}");
    assert!(fs::read(image.path()).unwrap() == before, "{what}: something was written");
}

#[test]
fn a_transaction_of_another_number_in_the_middle() {
    let image = dirty(true);
    image.poke(blocks_of(&image, COMMIT)[1] + 8, &[0xff; 4]);
    assert_refused(&image, "the number in a commit block");
    // What the hint says works: whoever drops the rest leaves a file system that is ours to use.
    let repaired = std::process::Command::new("timeout")
        .args(["-s", "KILL", "60", "e2fsck", "-fy"])
        .arg(image.path())
        .output()
        .unwrap();
    assert!(repaired.status.code().is_some_and(|code| code <= 1), "{repaired:?}");
    image.assert_clean();
    image.ends("put disk.img new /new", 0);
}

/// As the kernel and e2fsck judge them; see docs/design.md.
#[test]
fn revoke_blocks_that_are_damaged() {
    let counts: [(&str, u64, &[u8]); 3] = [
        ("more bytes than the block has", 12, &[0xff; 4]),
        ("one byte too many", 12, &[0, 0, 4, 1]),
        ("all of it", 12, &[0xff; 1012]),
    ];
    for checksums in [false, true] {
        for (what, offset, bytes) in counts {
            let image = dirty(checksums);
            image.poke(blocks_of(&image, REVOKE)[0] + offset, bytes);
            assert_refused(&image, what);
        }
    }
    let image = dirty(true);
    image.poke(blocks_of(&image, REVOKE)[0] + 16, &[0, 0, 0x13, 0x99]);
    assert_refused(&image, "a checksum that does not match");
    // Without checksums nothing shows it.
    let image = dirty(false);
    image.poke(blocks_of(&image, REVOKE)[0] + 16, &[0, 0, 0x13, 0x99]);
    assert!(image.ends("replay disk.img", 0).contains("0 images revoked"));
}

#[test]
fn an_external_journal_that_is_lost() {
    let image = Image::mke2fs(1 << 20, &["-O", "^has_journal"]);
    image.ends("mkfs -O journal_dev card.img --size 8m", 0);
    image.ends("mkfs -F -J device=card.img disk2.img --size 16m", 0);
    let said = image.ends("ls disk2.img", 2);
    assert!(said.contains("hint: --no-replay"), "{said}");
    assert!(image.ends("ls disk2.img --no-replay", 0).contains("lost+found"));
    assert!(image.ends("check disk2.img --no-replay", 0).contains("clean"));
}

#[test]
fn a_journal_that_nothing_names_is_damage() {
    let image = Image::mke2fs(16 << 20, &["-O", "^metadata_csum"]);
    // s_journal_inum, of a file system whose s_journal_uuid is zeros as of any with a journal
    // inside.
    image.poke(1024 + 0xe0, &[0; 4]);
    for line in ["check disk.img", "ls disk.img", "replay disk.img", "mkdir disk.img /new"] {
        let said = image.ends(line, 1);
        assert!(said.contains("neither its inode nor the UUID of its device"), "{said}");
    }
    assert!(image.ends("ls disk.img --no-replay", 0).contains("lost+found"));
    assert!(image.ends("check disk.img --no-replay", 1).contains("names no journal"));
    // e2fsck finds it too.
    assert!(!image.e2fsck().0);
}

#[test]
fn mkfs_takes_the_journal_devices_block_size() {
    let image = Image::mke2fs(1 << 20, &["-O", "^has_journal"]);
    for block_size in [1024, 2048, 4096] {
        image.ends(&format!("mkfs -b {block_size} -O journal_dev card.img --size 8m"), 0);
        let said = image.ends("mkfs disk2.img --size 256m -J device=card.img", 0);
        assert!(said.contains(&format!("blocks of {block_size} bytes")), "{said}");
        image.ends("mkdir disk2.img /made --journal card.img", 0);
        assert!(image.ends("check disk2.img --journal card.img", 0).contains("clean"));
        // Another size is still refused by name, and a journal that is none as such.
        let other = if block_size == 1024 { 4096 } else { 1024 };
        let line = format!("mkfs -F -b {other} disk2.img -J device=card.img");
        assert!(image.ends(&line, 2).contains("must be equal"));
        assert!(image.ends("mkfs -F card.img -J device=disk2.img", 2).contains("holds a file sys"));
        fs::remove_file(image.folder().join("disk2.img")).unwrap();
        fs::remove_file(image.folder().join("card.img")).unwrap();
    }
}
