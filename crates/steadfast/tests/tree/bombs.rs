//! Maps that claim the same blocks over and over: more than anybody can read.

use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use super::desk::Desk;

/// Has the third-level map of an object lead to one block some 2^24 times.
fn repeat(d: &Desk, path: &str, contents: &[u8], size: &str) {
    let image = std::fs::File::options().write(true).open(d.path("b.img")).unwrap();
    image.write_all_at(contents, 900 << 10).unwrap();
    for block in 901_u32..904 {
        let pointers = (block - 1).to_le_bytes().repeat(256);
        image.write_all_at(&pointers, u64::from(block) << 10).unwrap();
    }
    let field = |field: &str| format!("sif {path} {field}");
    let mut commands = vec![field("flags 0"), field(&format!("size {size}"))];
    commands.extend((1..12).map(|i| field(&format!("block[{i}] 900"))));
    for (slot, block) in [("0", 900), ("IND", 901), ("DIND", 902), ("TIND", 903)] {
        commands.push(field(&format!("block[{slot}] {block}")));
    }
    d.debugfs("b.img", &commands.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn a_file_of_one_block_again_and_again() {
    let d = Desk::new();
    std::fs::write(d.path("f"), "x").unwrap();
    d.plain_image("b.img");
    d.debugfs("b.img", &["write f f"]);
    repeat(&d, "f", &[b'A'; 1024], "17000000000");
    let started = Instant::now();
    for line in ["get b.img /f out", "cat b.img /f", "extents b.img /f"] {
        let said = d.bad(line);
        assert!(said.err.contains("more blocks than the image has"), "{line}: {}", said.err);
    }
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}

#[test]
fn a_folder_of_one_block_again_and_again() {
    let d = Desk::new();
    std::fs::write(d.path("f"), "x").unwrap();
    d.plain_image("b.img");
    d.debugfs("b.img", &["mkdir d", "write f f"]);
    // Inode 13 is the file: its name stands in the block as often as there is room.
    let entry = b"\x0d\0\0\0\x10\0\x05\x01again\0\0\0";
    for (size, message) in [("0xfffffc00", "more blocks than the image"), ("262144", "are refused")]
    {
        repeat(&d, "d", &entry.repeat(64), size);
        let started = Instant::now();
        for line in ["ls b.img /d", "get -r b.img /d out", "rm -r b.img /d"] {
            let said = d.bad(line);
            let has = said.err.contains(message) || line.starts_with("rm");
            assert!(has, "{line}: {}", said.err);
            assert!(said.err.lines().count() < 120 && said.out.lines().count() < 120, "{line}");
        }
        assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
    }
}

/// Many folders that each claim as much as the image could hold get it once, all together; a folder
/// that is as it seems is listed all the same.
#[test]
fn many_folders_of_one_block_share_the_bound() {
    let d = Desk::new();
    std::fs::write(d.path("f"), "x").unwrap();
    d.plain_image("b.img");
    let folders: Vec<String> = (0..24).map(|i| format!("d{i:02}")).collect();
    let made: Vec<String> = folders.iter().map(|f| format!("mkdir {f}")).collect();
    d.debugfs("b.img", &made.iter().map(String::as_str).collect::<Vec<_>>());
    d.debugfs("b.img", &["mkdir sound", "write f f", "write f sound/kept"]);
    for folder in &folders {
        // No name at all, again and again: what is read is all that grows.
        repeat(&d, folder, &[0, 0, 0, 0, 0, 4, 0, 0].repeat(128), "0xfffffc00");
    }
    let started = Instant::now();
    for line in ["ls -R b.img /", "get -r b.img / out"] {
        let said = d.bad(line);
        assert!(said.err.contains("more blocks than the image"), "{line}: {}", said.err);
    }
    assert!(d.bad("ls -R b.img /").out.contains("kept"));
    assert!(d.path("out/sound/kept").exists());
    assert!(started.elapsed() < Duration::from_secs(30), "{:?}", started.elapsed());
}
