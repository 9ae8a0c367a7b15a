//! mount(8), umount(8) and fstab, with the program as their helper: in a mount namespace with a
//! /sbin of its own.

use std::fs;

use super::bench::{Bench, text};

/// Runs a script in such a namespace; $s is the program.
fn in_namespace(b: &Bench, script: &str) -> String {
    let prologue = format!(
        "set -eu
        s={}
        mount -t tmpfs none /sbin
        ln -s $s /sbin/mount.fuse.steadfast
        ln -s $s /sbin/umount.fuse.steadfast
        {script}",
        env!("CARGO_BIN_EXE_steadfast")
    );
    let out = b.command("unshare", &["--mount", "sh", "-c", &prologue]);
    let said = text(&out.stdout) + &text(&out.stderr);
    assert!(out.status.success(), "{:?}\n{said}", out.status);
    said
}

#[test]
fn mount_remount_and_umount() {
    let Some(b) = Bench::with_image("32m") else { return };
    let said = in_namespace(
        &b,
        "mount -t fuse.steadfast disk.img m \\
            -o acl,user_xattr,lazytime,noexec,nofail,x-systemd.automount,data=journal
        grep \"$PWD/.* fuse.steadfast \" /proc/self/mountinfo
        echo text > m/file
        mount -o remount,ro m
        if touch m/no; then exit 1; fi
        $s status m
        mount -o remount,rw,exec m
        touch m/yes
        $s status --json m | tr -d ' \n'
        umount m",
    );
    assert!(said.contains("noexec") && said.contains("remounted read-only"), "{said}");
    assert!(said.contains(r#""rw","#) && said.contains(r#""exec","#), "{said}");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn a_remount_refuses_what_it_cannot_change() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m -o data=journal,cache=64m");
    let said = b.bad("mount disk.img m -o remount,ro,data=ordered,sync,cache=64m", 2);
    assert!(said.contains("data=ordered, sync cannot be changed by a remount"), "{said}");
    fs::write(b.at().join("file"), "still writable").unwrap();
    b.good("mount disk.img m -o remount,ro,data=journal,nofail");
    assert!(fs::write(b.at().join("file"), "").is_err());
    b.good("umount m");
}

#[test]
fn a_remount_changes_times_of_access() {
    let Some(b) = Bench::with_image("32m") else { return };
    let said = in_namespace(
        &b,
        "mount -t fuse.steadfast disk.img m -o noatime
        echo text > m/file
        touch -a -d 2020-01-01 m/file
        cat m/file; stat -c 'noatime %x' m/file
        mount -o remount,strictatime m
        cat m/file; stat -c 'strictatime %x' m/file
        mount -o remount,ro m
        mount -o remount,rw m
        grep \"$PWD/.* fuse.steadfast \" /proc/self/mountinfo
        touch -a -d 2020-01-01 m/file
        cat m/file; stat -c 'still %x' m/file
        $s status --json m | tr -d ' \n'
        umount m",
    );
    assert!(said.contains("noatime 2020-01-01"), "{said}");
    assert!(!said.contains("strictatime 2020") && !said.contains("still 2020"), "{said}");
    assert!(said.contains(r#""strictatime","#), "{said}");
}

#[test]
fn a_remount_of_what_cannot_be_written_is_wrong_use() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m -o ro");
    let said = b.bad("mount disk.img m -o remount,rw", 2);
    assert!(said.contains("was mounted read-only"), "{said}");
    b.good("umount m");
    b.good("mkfs other.img --size 32m -O ^has_journal");
    b.good("mount other.img m");
    b.good("mount other.img m -o remount,ro");
    b.good("mount other.img m -o remount,rw");
    b.good("umount m");
}

#[test]
fn a_line_of_fstab() {
    let Some(b) = Bench::with_image("32m") else { return };
    let said = in_namespace(
        &b,
        "echo text > file && $s put disk.img file /file
        line='fuse.steadfast ro,noauto,errors=remount-ro,x-systemd.requires=disk.mount 0 2'
        echo \"$PWD/disk.img $PWD/m $line\" > fstab
        mount --fstab $PWD/fstab $PWD/m
        cat m/file
        if mount -o remount,rw m; then exit 1; fi
        umount m",
    );
    assert!(said.contains("text") && said.contains("was mounted read-only"), "{said}");
}

#[test]
fn as_mount_fuse_calls_it() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("disk.img m -o rw,dev,suid,relatime");
    fs::write(b.at().join("file"), "text").unwrap();
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
    for (option, status) in [("grpid", 2), ("noacl", 2), ("nonsense", 2), ("nobarrier", 2)] {
        let said = b.bad(&format!("disk.img m -o rw,{option}"), status);
        assert!(said.contains(option), "{said}");
    }
}

#[test]
fn what_is_write_protected_is_mounted_read_only() {
    let Some(b) = Bench::with_image("32m") else { return };
    let before = fs::read(b.path("disk.img")).unwrap();
    let said = in_namespace(
        &b,
        "mount --bind . . && cd $PWD && mount -o remount,bind,ro .
        mount -t tmpfs none m
        export STEADFAST_RUNTIME_DIR=$PWD/m
        mkdir m/here && $s mount disk.img m/here
        ls m/here
        if touch m/here/no; then exit 1; fi
        $s umount m/here",
    );
    assert!(said.contains("write-protected, mounted read-only"), "{said}");
    assert!(said.contains("lost+found"), "{said}");
    assert!(before == fs::read(b.path("disk.img")).unwrap(), "nothing is written");
}

#[test]
fn every_write_is_durable_with_sync() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m -o sync,commit=600");
    fs::write(b.at().join("file"), "kept").unwrap();
    b.shut_down(2);
    b.good("umount m");
    b.good("mount disk.img m");
    assert_eq!(fs::read_to_string(b.at().join("file")).unwrap(), "kept");
    b.good("umount m");
}

#[test]
fn names_are_durable_with_dirsync_and_with_sync() {
    let Some(b) = Bench::with_image("32m") else { return };
    for (options, kept) in [("commit=600", false), ("commit=600,dirsync", true), ("sync", true)] {
        b.good(&format!("mount disk.img m -o {options}"));
        fs::create_dir(b.at().join(options)).unwrap();
        b.shut_down(2);
        b.good("umount m");
        b.good("mount disk.img m");
        assert_eq!(b.at().join(options).exists(), kept, "{options}");
        b.good("umount m");
        b.e2fsck_is_clean("disk.img");
    }
}

#[test]
fn words_of_mount8_that_take_another_back_and_nosymfollow() {
    let Some(b) = Bench::with_image("32m") else { return };
    let said = in_namespace(
        &b,
        "words=norelatime,nostrictatime,atime,nomand,nosymfollow,dirsync
        mount -t fuse.steadfast disk.img m -o $words
        echo text > m/file && ln -s file m/link
        readlink m/link
        if cat m/link; then exit 1; fi
        mount -o remount,symfollow m
        cat m/link
        mount -o remount,nosymfollow m
        if cat m/link; then exit 1; fi
        $s status --json m | tr -d ' \n'
        umount m",
    );
    assert!(said.contains("file\ntext"), "{said}");
    for word in ["relatime", "nosymfollow", "dirsync"] {
        assert!(said.contains(&format!("\"{word}\"")), "{word}: {said}");
    }
}

/// Linux knows no encoding of names.
#[test]
fn a_mount_point_need_not_be_text() {
    let Some(b) = Bench::with_image("32m") else { return };
    let said = in_namespace(
        &b,
        "m=$(printf 'm\\351')
        mkdir \"$m\"
        $s mount disk.img \"$m\"
        echo text > \"$m/file\"
        $s status --json \"$m\" | grep state
        $s umount \"$m\"
        ls \"$m\"
        $s mount disk.img m
        cat m/file
        $s umount m",
    );
    assert!(said.contains("writable") && said.ends_with("text\n"), "{said}");
    b.e2fsck_is_clean("disk.img");
}
