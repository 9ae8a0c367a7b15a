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

#[test]
fn what_is_no_file_system_is_not_called_damaged() {
    let image = Image::mke2fs(4 * MIB, &[]);
    std::fs::write(image.folder().join("text"), "no file system\\n".repeat(5000)).unwrap();
    std::fs::create_dir(image.folder().join("m")).unwrap();
    for line in ["ls text", "info text", "mount text m", "replay text"] {
        let said = image.run(line);
        assert!(said.status != Some(0), "{line}");
        assert!(said.err.contains("no ext2/3/4 file system"), "{line}: {}", said.err);
        assert!(
            !said.err.contains("corrupt") && !said.err.contains("hint"),
            "{line}: {}",
            said.err
        );
    }
}

#[test]
fn a_target_that_is_too_long_is_called_so() {
    let fs = Fs::in_memory(16 * MIB).mount().unwrap();
    let failed = fs.symlink("x".repeat(5000), "/link").unwrap_err();
    assert_eq!(failed.errno(), 36);
    assert!(failed.to_string().contains("target of a symbolic link too long"), "{failed}");
    fs.unmount().unwrap();
}
