//! Who may change what by ioctl on a mount that all users may enter (`-o allow_other`): as on the
//! kernel's ext4, by every number and from a user namespace too.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use super::bench::{Bench, text};

/// A user, and the owner of some files.
const USER: u32 = 1000;

/// Asks for an ioctl(2) with an argument of one word, by files that are opened for reading; what
/// each gave, in a line.
const ASK: &str = "for my $f (@ARGV) { my $a = pack('La252', $n, ''); \
                   sysopen(D, $f, 0) or print(\"$f: open: $!\\n\"), next; \
                   print(\"$f: \", (defined(ioctl(D, $c, $a)) ? 'done' : $!), \"\\n\") }";

/// By whom it is asked: a command in front of it, and whether the user's own files are his.
const CALLERS: [(&[&str], bool); 4] = [
    (&["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups"], true),
    (&["setpriv", "--reuid=1000", "--regid=1000", "--clear-groups", "unshare", "-Ur"], true),
    (&["setpriv", "--reuid=1001", "--regid=1000", "--clear-groups"], false),
    (&["setpriv", "--reuid=1001", "--regid=1001", "--clear-groups", "unshare", "-Ur"], false),
];

fn asked(b: &Bench, caller: &[&str], number: u64, word: u32, files: &[&str]) -> String {
    let script = format!("my $c = {number:#x}; my $n = {word}; {ASK}");
    let words = [&caller[1..], &["perl", "-e", &script], files].concat();
    let out = b.command(caller[0], &words);
    assert!(out.status.success(), "{}", text(&out.stderr));
    text(&out.stdout)
}

#[test]
fn flags_are_changed_by_the_owner_alone() {
    let Some(b) = Bench::with_image("32m") else { return };
    fs::set_permissions(b.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    b.good("mount disk.img m -o allow_other");
    for name in ["his", "roots", "kept"] {
        fs::write(b.at().join(name), name).unwrap();
    }
    chown(b.at().join("his"), Some(USER), Some(USER)).unwrap();
    // Anybody may write it, had root not made it immutable.
    fs::set_permissions(b.at().join("kept"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(b.command("chattr", &["+i", "m/kept"]).status.success());
    let flags = |name: &str| text(&b.command("lsattr", &[&format!("m/{name}")]).stdout);
    let before = ["roots", "kept"].map(flags);
    let files = ["m/his", "m/roots", "m/kept"];
    let refused = "Operation not permitted";
    for (caller, is_owner) in CALLERS {
        // FS_IOC_SETFLAGS and FS_IOC_FSSETXATTR: "not to be dumped" alone, with the extents that
        // SETFLAGS has to keep.
        for (number, word) in [(0x4008_6602, 0x8_0040), (0x401c_5820, 0x80)] {
            let said = asked(&b, caller, number, word, &files);
            let his = if is_owner { "done" } else { refused };
            let wanted = format!("m/his: {his}\nm/roots: {refused}\nm/kept: {refused}\n");
            assert_eq!(said, wanted, "{number:x} by {caller:?}");
        }
        // FS_IOC32_SETFLAGS is nothing that a caller of 64 bits has.
        let said = asked(&b, caller, 0x4004_6602, 0x8_0000, &files);
        assert_eq!(said.matches("Inappropriate ioctl for device").count(), 3, "{said}");
        // Append-only and immutable: not even the owner.
        for flag in [0x8_0010, 0x8_0020] {
            let said = asked(&b, caller, 0x4008_6602, flag, &files);
            assert_eq!(said.matches(refused).count(), 3, "{flag:x} by {caller:?}: {said}");
        }
        // The file system as a whole: FS_IOC_SETFSLABEL, and shutdown by both numbers.
        for number in [0x4100_9432, 0x8004_587d, 0x4004_587d] {
            let said = asked(&b, caller, number, 0x78, &["m"]);
            assert_eq!(said, format!("m: {refused}\n"), "{number:x} by {caller:?}");
        }
    }
    assert_eq!(["roots", "kept"].map(flags), before);
    assert!(fs::write(b.at().join("kept"), "over").is_err());
    // Root may.
    assert_eq!(asked(&b, &["env"], 0x4008_6602, 0x8_0000, &["m/kept"]), "m/kept: done\n");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn a_read_only_mount_changes_nothing_by_ioctl() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    fs::write(b.at().join("f"), "f").unwrap();
    b.good("umount m");
    let before = fs::read(b.path("disk.img")).unwrap();
    b.good("mount disk.img m -o ro");
    for (number, word) in [(0x4008_6602, 0x8_0040), (0x401c_5820, 0x80), (0x4100_9432, 0x78)] {
        let said = asked(&b, &["env"], number, word, &["m/f"]);
        assert_eq!(said, "m/f: Read-only file system\n", "{number:x}");
    }
    b.good("umount m");
    assert!(fs::read(b.path("disk.img")).unwrap() == before);
}
