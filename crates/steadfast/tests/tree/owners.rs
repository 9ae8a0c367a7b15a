//! Owners, set-id bits, devices, access lists and capabilities, as root and as somebody else.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

use rustix::buffer::spare_capacity;
use rustix::fs::{CWD, FileType, Mode, XattrFlags};

use super::desk::{Desk, root};

/// An access control list: rw- for the owner, rw- for user 1001, nothing for the group.
fn acl() -> Vec<u8> {
    let none = u32::MAX;
    let entries = [(1_u16, 6_u16, none), (2, 6, 1001), (4, 0, none), (16, 6, none), (32, 0, none)];
    let mut acl = vec![2, 0, 0, 0];
    for (tag, perm, id) in entries {
        acl.extend(tag.to_le_bytes());
        acl.extend(perm.to_le_bytes());
        acl.extend(id.to_le_bytes());
    }
    acl
}

/// cap_net_raw+ep, in the kernel's form (version 2).
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn attribute(path: &std::path::Path, name: &str) -> Option<Vec<u8>> {
    let mut value = Vec::with_capacity(1000);
    rustix::fs::lgetxattr(path, name, spare_capacity(&mut value)).ok()?;
    Some(value)
}

/// Files as only root has them.
fn source(d: &Desk) -> Option<std::path::PathBuf> {
    let src = d.path("src");
    std::fs::create_dir(&src).unwrap();
    for name in ["suid", "able", "listed", "odd"] {
        std::fs::write(src.join(name), "x").unwrap();
    }
    chown(src.join("suid"), Some(1000), Some(1001)).unwrap();
    std::fs::set_permissions(src.join("suid"), PermissionsExt::from_mode(0o6755)).unwrap();
    let set = |name: &str, key: &str, value: &[u8]| {
        rustix::fs::lsetxattr(src.join(name), key, value, XattrFlags::empty())
    };
    let able = set("able", "security.capability", &CAPABILITY);
    if able.and_then(|()| set("listed", "system.posix_acl_access", &acl())).is_err() {
        println!("SKIPPED: no capabilities or access lists on {}", src.display());
        return None;
    }
    let device = rustix::fs::makedev(1, 3);
    if rustix::fs::mknodat(CWD, src.join("null"), FileType::CharacterDevice, Mode::RUSR, device)
        .is_err()
    {
        println!("SKIPPED: devices: not permitted");
        return None;
    }
    rustix::fs::mknodat(CWD, src.join("socket"), FileType::Socket, Mode::RUSR, 0).unwrap();
    Some(src)
}

#[test]
fn root_keeps_all_and_others_are_reported() {
    if !root("root_keeps_all_and_others_are_reported") {
        return;
    }
    let d = Desk::new();
    let Some(src) = source(&d) else { return };
    d.good("mkfs a.img --size 16m");
    d.good("put -r a.img src /");
    d.e2fsck_is_clean("a.img");
    // An owner that chown(2) takes for "leave it": root's set-id file it must not become.
    d.debugfs("a.img", &["sif src/odd uid 4294967295", "sif src/odd mode 0104755"]);
    let said = d.good("get -r a.img /src back");
    assert!(said.err.contains("set-user-ID") && said.err.contains("back/odd"), "{}", said.err);
    let back = d.path("back");
    let of = |name: &str| back.join(name).symlink_metadata().unwrap();
    assert_eq!(of("odd").mode() & 0o7777, 0o755);
    assert_eq!((of("suid").uid(), of("suid").gid(), of("suid").mode()), (1000, 1001, 0o106_755));
    assert_eq!(attribute(&back.join("able"), "security.capability"), Some(CAPABILITY.to_vec()));
    let acls = ["src", "back"]
        .map(|top| attribute(&d.path(top).join("listed"), "system.posix_acl_access"));
    assert!(acls[0].is_some() && acls[0] == acls[1]);
    let raw = |name: &str| FileType::from_raw_mode(of(name).mode());
    assert_eq!((raw("null"), of("null").rdev()), (FileType::CharacterDevice, of_rdev(&src)));
    assert_eq!(raw("socket"), FileType::Socket);
    // Put over it again from a file without any of that.
    std::fs::write(d.path("plain"), "y").unwrap();
    std::fs::set_permissions(d.path("plain"), PermissionsExt::from_mode(0o600)).unwrap();
    for name in ["suid", "able", "listed"] {
        d.good(&format!("put a.img plain /src/{name}"));
        d.good(&format!("get a.img /src/{name} again"));
        let again = d.path("again");
        assert_eq!(again.metadata().unwrap().mode(), 0o100_600, "{name}");
        assert_eq!(attribute(&again, "security.capability"), None, "{name}");
        assert_eq!(attribute(&again, "system.posix_acl_access"), None, "{name}");
    }
}

/// What holds for files of one host only is left out, and it is said so; what else root may set is
/// kept, both ways, as cp -a keeps it.
#[test]
fn attributes_of_root_are_kept_and_the_hosts_own_are_not() {
    if !root("attributes_of_root_are_kept_and_the_hosts_own_are_not") {
        return;
    }
    let d = Desk::new();
    std::fs::write(d.path("f"), "x").unwrap();
    d.plain_image("b.img");
    let kept = ["security.mine", "trusted.overlay.opaque", "user.mine"];
    let own = ["security.ima", "security.evm", "security.selinux"];
    d.debugfs("b.img", &["write f f"]);
    let set = kept.iter().chain(&own).map(|n| format!("ea_set f {n} 1")).collect::<Vec<_>>();
    d.debugfs("b.img", &set.iter().map(String::as_str).collect::<Vec<_>>());
    let said = d.good("get b.img /f out");
    for name in own {
        assert_eq!(said.err.matches(name).count(), 1, "{}", said.err);
        assert_ne!(attribute(&d.path("out"), name), Some(b"1".to_vec()), "{name}");
    }
    assert!(!said.err.contains("mine"), "{}", said.err);
    d.good("put b.img out /again");
    d.good("get b.img /again back");
    for name in kept {
        for file in ["out", "back"] {
            assert_eq!(attribute(&d.path(file), name), Some(b"1".to_vec()), "{file}: {name}");
        }
    }
}

fn of_rdev(src: &std::path::Path) -> u64 {
    src.join("null").metadata().unwrap().rdev()
}

/// Somebody else's set-id file does not become one of his own.
#[test]
fn without_the_right_to_the_owner_there_is_no_set_id() {
    if !root("without_the_right_to_the_owner_there_is_no_set_id") {
        return;
    }
    let d = Desk::new();
    if source(&d).is_none() {
        return;
    }
    d.good("mkfs a.img --size 16m");
    d.good("put -r a.img src /");
    for path in ["", "a.img"] {
        std::fs::set_permissions(d.path(path), PermissionsExt::from_mode(0o777)).unwrap();
    }
    let said = d.run_as_nobody("get -r a.img /src back");
    assert_eq!(said.status, Some(1), "{}", said.err);
    // The device alone has failed.
    assert!(said.err.contains("error: back/null: "), "{}", said.err);
    assert_eq!(said.err.matches("error:").count(), 1, "{}", said.err);
    for note in ["set-user-ID", "owners are not kept", "attribute security.capability is not"] {
        assert_eq!(said.err.matches(note).count(), 1, "{note}\n{}", said.err);
    }
    let of = |name: &str| d.path("back").join(name).metadata().unwrap();
    assert_eq!((of("suid").uid(), of("suid").mode()), (65534, 0o100_755));
    assert_eq!(std::fs::read(d.path("back/able")).unwrap(), b"x");
}
