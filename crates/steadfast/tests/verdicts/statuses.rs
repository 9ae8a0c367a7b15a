//! "Not supported" is neither damage nor misuse.

use crate::image::Image;

const MIB: u64 = 1 << 20;
/// Offsets of the feature words in the superblock.
const COMPAT: u64 = 1024 + 0x5c;
const INCOMPAT: u64 = 1024 + 0x60;
const RO_COMPAT: u64 = 1024 + 0x64;

/// Sets bits of a word of an image without checksums.
fn with_bits(at: u64, bits: u32) -> Image {
    let image = Image::mke2fs(4 * MIB, &["-O", "^metadata_csum"]);
    let old = u32::from_le_bytes(image.bytes(at, 4).try_into().unwrap());
    image.poke(at, &(old | bits).to_le_bytes());
    image
}

#[test]
fn a_feature_that_is_not_implemented_is_named_with_a_status_of_its_own() {
    let cases = [
        (COMPAT, 0x2, "imagic_inodes"),
        (RO_COMPAT, 0x4000, "shared_blocks"),
        (INCOMPAT, 0x1000, "dirdata"),
        (INCOMPAT, 0x4000_0000, "FEATURE_I30"),
        (INCOMPAT, 0x3_0000, "casefold"),
    ];
    for (at, bits, name) in cases {
        let image = with_bits(at, bits);
        let before = std::fs::read(image.path()).unwrap();
        std::fs::write(image.folder().join("file"), "x").unwrap();
        for line in [
            "check disk.img",
            "check --json disk.img",
            "ls disk.img",
            "cat disk.img /x",
            "get disk.img /x y",
            "put disk.img file /x",
            "rm disk.img /x",
            "mkdir disk.img /x",
            "replay disk.img",
            "extents disk.img /x",
            "mount disk.img .",
        ] {
            let said = image.ends(line, 3);
            assert!(said.contains("not supported") && said.contains(name), "{line}: {said}");
        }
        // `info` describes it all the same.
        image.ends("info disk.img", 0);
        assert!(std::fs::read(image.path()).unwrap() == before, "{name}: it was written to");
    }
    let image = Image::mke2fs(8 * MIB, &["-O", "quota,ea_inode"]);
    assert!(image.ends("check disk.img", 3).contains("quota together with ea_inode"));
}

#[test]
fn a_feature_of_the_journal_too() {
    let image = Image::mke2fs(16 * MIB, &["-O", "^metadata_csum", "-J", "size=4"]);
    let block = image.debugfs(&["bmap <8> 0"]);
    let block: u64 = block.lines().last().unwrap().trim().parse().unwrap();
    // Its superblock is of version 2, big-endian, without a checksum.
    image.poke(block * 1024 + 0x28, &0x4000_0000u32.to_be_bytes());
    for line in ["check disk.img", "ls disk.img", "mkdir disk.img /x"] {
        let said = image.ends(line, 3);
        assert!(said.contains("journal feature not supported"), "{line}: {said}");
    }
}

#[test]
fn mkfs_distinguishes_what_it_cannot_make_from_what_does_not_exist() {
    let image = Image::mke2fs(8 * MIB, &[]);
    assert!(image.ends("mkfs -F -O verity disk.img", 3).contains("verity"));
    assert!(image.ends("mkfs -F -O no_such_thing disk.img", 2).contains("no_such_thing"));
}

#[test]
fn mkfs_used_wrongly_makes_nothing() {
    let image = Image::mke2fs(MIB, &["-O", "^has_journal"]);
    for (line, why) in [
        ("mkfs nodir/new.img --size 64m", "nodir/new.img: cannot create it: No such file"),
        ("mkfs new.img --size 0", "at least 4096 bytes"),
        ("mkfs new.img --size 1k", "at least 4096 bytes"),
        ("mkfs new.img --size 64q", "k, m, g or t"),
        ("mkfs new.img --size 4k", "too small"),
        ("mkfs new.img --size 64m -b 1000000", "blocks of 1000000 bytes: choose a power of two"),
        ("mkfs new.img --size 64m -J device=missing", "missing: cannot open it: No such file"),
        ("mkfs new.img --size 64m -E root_owner=bin:bin", "root_owner=1000:1000"),
        ("mkfs new.img --size 1m -J size=4", "more than half"),
        ("mkfs new.img --size 300k -O has_journal", "too small for a journal"),
        ("mkfs new.img", "--size SIZE"),
        ("info new.img", "cannot open it"),
    ] {
        let said = image.ends(line, 2);
        assert!(said.contains(why), "{line}: {said}");
        assert!(said.matches("os error").count() < 2, "{line}: {said}");
        assert!(!said.contains("note:"), "{line}: what is refused is said alone: {said}");
        assert!(!image.folder().join("new.img").exists(), "{line}");
    }
}

#[test]
fn mkfs_does_what_mke2fs_does_with_little_room_and_no_features() {
    let image = Image::mke2fs(MIB, &["-O", "^has_journal"]);
    let said = image.ends("mkfs small.img --size 300k", 0);
    assert!(said.contains("Journal: none") && said.contains("too small for a journal"), "{said}");
    let said = image.ends("mkfs plain.img --size 8m -O none", 0);
    assert!(said.contains("Journal: none") && !said.contains("extent"), "{said}");
    image.ends("mkfs grows.img --size 8m -E resize=4g", 0);
    for name in ["small.img", "plain.img", "grows.img"] {
        image.ends(&format!("check {name}"), 0);
        let judged = std::process::Command::new("e2fsck")
            .arg("-fn")
            .arg(image.folder().join(name))
            .output()
            .unwrap();
        assert!(judged.status.success(), "{name}: {}", String::from_utf8_lossy(&judged.stdout));
    }
}

#[test]
fn what_an_image_says_of_itself_is_not_obeyed_by_a_terminal() {
    let image = Image::mke2fs(MIB, &["-O", "^has_journal,^metadata_csum"]);
    // s_volume_name and s_last_mounted.
    image.poke(1024 + 0x78, b"a\x1b[31mred");
    image.poke(1024 + 0x88, b"/x\x1b]0;title\x07");
    let said = image.ends("info disk.img", 0);
    assert!(!said.contains('\x1b') && !said.contains('\x07'), "{said:?}");
    assert!(said.contains("a\\033[31mred"), "{said}");
    assert!(said.lines().all(|l| l.chars().count() < 80), "{said}");
}

#[test]
fn every_command_says_its_exit_status() {
    let image = Image::mke2fs(MIB, &["-O", "^has_journal"]);
    let commands = image.ends("--help", 0);
    let lines = commands.lines().skip_while(|l| !l.starts_with("Usage:")).skip(1);
    // They stand in groups, each below what it is for.
    let names: Vec<&str> = lines
        .take_while(|l| !l.starts_with("Options:"))
        // What is further in is the rest of the line above.
        .filter(|l| l.starts_with("  ") && !l.starts_with("   "))
        .filter_map(|l| l.split_whitespace().next())
        .filter(|name| !matches!(*name, "help" | "iozone" | "Print"))
        .collect();
    assert!(names.len() > 15, "{commands}");
    for name in names {
        let help = image.ends(&format!("{name} --help"), 0);
        assert!(help.contains("Exit status"), "{name}\n{help}");
    }
    image.ends("man pages", 0);
    let page = std::fs::read_to_string(image.folder().join("pages/steadfast-get.1")).unwrap();
    assert!(page.contains("Exit status") && page.contains("3 not supported"), "{page}");
}
