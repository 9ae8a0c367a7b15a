//! A directory that ignores case, through the kernel: what it remembers of names must not outlive
//! them.

use std::fs;

use super::bench::{Bench, text};

#[test]
fn a_file_is_gone_in_every_spelling() {
    let Some(b) = Bench::new() else { return };
    b.good("mkfs -O casefold disk.img --size 32m");
    b.good("mount disk.img m");
    let dir = b.at().join("dir");
    fs::create_dir(&dir).unwrap();
    assert!(!dir.join("B").exists() && !dir.join("b").exists());
    let out = b.command("chattr", &["+F", "m/dir"]);
    assert!(out.status.success(), "{}", text(&out.stderr));
    let flags = text(&b.command("lsattr", &["-d", "m/dir"]).stdout);
    assert!(flags.split_whitespace().next().unwrap().contains('F'), "{flags}");
    for round in ["first", "second"] {
        fs::write(dir.join("b"), round).unwrap();
        for name in ["B", "b"] {
            assert_eq!(fs::read_to_string(dir.join(name)).unwrap(), round);
        }
        fs::remove_file(dir.join("B")).unwrap();
        assert!(!dir.join("B").exists() && !dir.join("b").exists());
    }
    fs::write(dir.join("Straße"), "x").unwrap();
    fs::rename(dir.join("STRASSE"), b.at().join("out")).unwrap();
    assert!(!dir.join("straSSe").exists() && !dir.join("Straße").exists());
    fs::write(dir.join("Kept"), "x").unwrap();
    let out = b.command("chattr", &["-F", "m/dir"]);
    assert!(!out.status.success(), "not an empty directory");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
    assert!(b.good("check disk.img").contains("clean"));
    assert!(b.good("ls disk.img /dir/").contains("Kept"));
    assert_eq!(b.good("cat disk.img /dir/kEPT"), "x");
}
