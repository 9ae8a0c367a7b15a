//! Features that go together, names that lead where none may, and what is no file system at all.

use steadfast::{Image as Fs, OpenOptions};

use crate::image::Image;

const MIB: u64 = 1 << 20;

/// An inode that has its contents in itself is charged for the values of its attributes that have
/// inodes of their own, as any other.
#[test]
fn contents_and_values_in_inodes_go_together() {
    let image = Image::mke2fs(16 * MIB, &["-I", "256", "-O", "inline_data,ea_inode"]);
    let fs = Fs::open(image.path()).mount().unwrap();
    for (name, contents) in [("/small", &b"in the inode"[..]), ("/large", &[7; 20_000])] {
        fs.write(name, contents).unwrap();
        let file = OpenOptions::new().read(true).write(true).open(&fs, name).unwrap();
        file.set_xattr("user.large", &[name.len() as u8; 30_000]).unwrap();
        file.set_xattr("user.small", b"x").unwrap();
    }
    fs.create_dir("/folder").unwrap();
    fs.open("/folder").unwrap().set_xattr("user.large", &[3; 9000]).unwrap();
    fs.unmount().unwrap();
    image.assert_clean();
    assert!(image.debugfs(&["stat /small"]).contains("Size of inline data"));
}

/// Quotas and orphans have inodes that look like any other's, and are the file system's own.
#[test]
fn names_of_the_file_systems_own_inodes_are_not_followed() {
    let features = "quota,project,orphan_file,^metadata_csum";
    let image = Image::mke2fs(16 * MIB, &["-I", "256", "-O", features, "-E", "quotatype=prjquota"]);
    let stat = image.debugfs(&["stats"]);
    let number = |key: &str| {
        let line = stat.lines().find(|line| line.starts_with(key));
        line.and_then(|line| line.rsplit(' ').next()).unwrap_or_else(|| panic!("{key}: {stat}"))
    };
    let own = [number("Project quota inode:"), number("Orphan file inode:")];
    for (n, own) in own.iter().enumerate() {
        assert!(own.parse::<u32>().unwrap() > 10, "{own}");
        image.debugfs(&[&format!("link <{own}> name{n}")]);
        let said = image.ends(&format!("cat disk.img /name{n}"), 1);
        assert!(said.contains(&format!("reserved inode {own}")), "{said}");
        let said = image.ends("check disk.img", 1);
        assert!(said.contains(&format!("names inode {own}, which no entry may name")), "{said}");
    }
}

/// What every command that opens an image says of something else, and with which status.
#[test]
fn what_is_no_file_system_is_not_called_damaged() {
    let image = Image::mke2fs(4 * MIB, &[]);
    std::fs::create_dir(image.folder().join("m")).unwrap();
    std::fs::write(image.folder().join("one"), "1").unwrap();
    let at = |at: usize, bytes: &[u8]| {
        let mut all = vec![0; MIB as usize];
        all[at..at + bytes.len()].copy_from_slice(bytes);
        all
    };
    let cases = [
        ("empty", vec![], "is too small for a device: 0 bytes"),
        ("line", b"a line\n".to_vec(), "is too small for a device: 7 bytes"),
        ("sector", b"a line\n".repeat(100), "has only 512 bytes"),
        ("text", b"no file system\n".repeat(5000), "it holds text"),
        ("zeros", at(0, &[]), "it holds zeros"),
        ("xfs", at(0, b"XFSB"), "it holds an XFS file system"),
        ("swap", at(4086, b"SWAPSPACE2"), "it holds swap space"),
        ("luks", at(0, b"LUKS\xba\xbe"), "it holds a LUKS volume"),
        ("gpt", at(512, b"EFI PART"), "it holds a GPT partition table"),
        ("zstd", at(0, b"\x28\xb5\x2f\xfd"), "it holds data compressed by zstd"),
        ("unknown", vec![7; 9216], "the magic number is 0x0707"),
    ];
    for (name, contents, _) in &cases {
        std::fs::write(image.folder().join(name), contents).unwrap();
    }
    let lines = [
        "check IMAGE",
        "check --no-replay IMAGE",
        "check --json IMAGE",
        "ls IMAGE",
        "ls --no-replay IMAGE",
        "cat IMAGE /x",
        "get IMAGE / out",
        "put IMAGE one /x",
        "rm IMAGE /x",
        "info IMAGE",
        "replay IMAGE",
        "journal status IMAGE",
        "journal detach IMAGE",
        "journal attach IMAGE",
        "mount IMAGE m",
    ];
    for (number, (name, contents, says)) in cases.iter().enumerate() {
        // All lines for one of them, some for each.
        let some = lines.iter().enumerate().filter(|(i, _)| number == 3 || i % 5 == number % 5);
        for (_, line) in some {
            let line = line.replace("IMAGE", name);
            let said = image.ends(&line, 2);
            let small = says.contains("too small for a device");
            let named = said.contains("no ext2/3/4 file system") || small;
            let named = named && said.contains(says);
            let damaged = said.contains("corrupt") || said.contains("hint: ");
            assert!(named && !damaged, "{line}: {said}");
        }
        assert!(std::fs::read(image.folder().join(name)).unwrap() == *contents, "{name}");
    }
}

/// A file system whose superblock is overwritten is damaged, if that can be seen.
#[test]
fn a_file_system_without_its_magic_number_is_damaged() {
    for options in [&["-b", "1024"][..], &["-b", "1024", "-O", "^metadata_csum"], &["-b", "4096"]] {
        let image = Image::mke2fs(4 * MIB, options);
        image.poke(1024 + 0x38, &[0, 0]);
        for line in ["check disk.img", "ls disk.img", "replay disk.img", "info disk.img"] {
            let said = image.ends(line, 1);
            assert!(said.contains("0x0000, but all else is right"), "{line}: {said}");
        }
    }
    let image = Image::mke2fs(16 * MIB, &["-b", "1024"]);
    image.poke(0, &[0; 2048]);
    let said = image.ends("check disk.img", 1);
    assert!(said.contains("`e2fsck -b 8193 -B 1024` restores it"), "{said}");
    let mut command = std::process::Command::new("e2fsck");
    let done = command.args(["-fy", "-b", "8193", "-B", "1024"]).arg(image.path()).output();
    assert_eq!(done.unwrap().status.code(), Some(1));
    image.assert_clean();
}

#[test]
fn a_target_that_is_too_long_is_called_so() {
    let fs = Fs::in_memory(16 * MIB).mount().unwrap();
    let failed = fs.symlink("x".repeat(5000), "/link").unwrap_err();
    assert_eq!(failed.errno(), 36);
    assert!(failed.to_string().contains("target of a symbolic link too long"), "{failed}");
    fs.unmount().unwrap();
}
