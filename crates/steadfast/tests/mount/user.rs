//! Mounts of an ordinary user, through fusermount3: in a mount namespace of their own, where
//! everybody may open /dev/fuse (as where udev has set it up), also if that is not so here.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

use super::bench::{Bench, text};

/// The user "nobody" and its group.
const USER: u32 = 65_534;

/// Where his commands run: as him, a failing one ends the script. $s is the program, and
/// `refused STATUS COMMAND...` wants it to fail so, and prints what it says.
const PROLOGUE: &str = r#"
set -eu
refused() {
    want=$1; shift
    status=0
    said=$(timeout -s KILL 60 "$@" 2>&1) || status=$?
    [ $status = $want ] || { echo "$*: status $status: $said" >&2; exit 1; }
    echo "$said"
}
s=./steadfast
"#;

/// Runs a script as an ordinary user who has disk.img and m; its output. `None`, said aloud: no
/// FUSE, not root, or no fusermount3 with the right to mount.
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn as_user(script: &str) -> Option<String> {
    let bench = Bench::with_image("32m")?;
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let is_set_id = |folder: &str| {
        let program = std::path::Path::new(folder).join("fusermount3");
        fs::metadata(program).is_ok_and(|m| m.permissions().mode() & 0o4000 != 0)
    };
    let path = std::env::var("PATH").unwrap_or_default();
    if status.contains("NoNewPrivs:\t1") || !path.split(':').any(is_set_id) {
        println!("SKIPPED: needs a set-user-id fusermount3");
        return None;
    }
    fs::set_permissions(bench.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    // The build's folder may be closed to others.
    fs::copy(env!("CARGO_BIN_EXE_steadfast"), bench.path("steadfast")).unwrap();
    fs::write(bench.path("script"), format!("{PROLOGUE}{script}")).unwrap();
    for name in ["", "disk.img", "m", "run"] {
        chown(bench.path(name), Some(USER), Some(USER)).unwrap();
    }
    let outer = format!(
        "mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse && \
         exec setpriv --reuid={USER} --regid={USER} --clear-groups sh script"
    );
    let out = bench.command("unshare", &["--mount", "sh", "-c", &outer]);
    let said = text(&out.stdout);
    assert!(out.status.success(), "{:?}\n{said}{}", out.status, text(&out.stderr));
    bench.e2fsck_is_clean("disk.img");
    Some(said)
}

#[test]
fn an_ordinary_user_mounts_what_is_his() {
    // The root of an image made by root would be root's.
    let said = as_user(
        "mke2fs -q -F -t ext4 -E root_owner=65534:65534 disk.img
        $s mount disk.img m
        grep \"$PWD/.* fuse.steadfast \" /proc/self/mountinfo
        echo text > m/file
        test -O m/file
        $s umount m
        $s mount disk.img m -o ro
        cat m/file
        $s umount m",
    );
    let Some(said) = said else { return };
    assert!(said.contains("nosuid,nodev") && said.contains("user_id=65534"), "{said}");
    assert!(said.ends_with("text\n"), "{said}");
}

#[test]
fn what_is_not_his_to_ask_for_is_refused_in_words() {
    let said = as_user(
        "refused 2 $s mount disk.img m -o dev
        refused 1 $s mount disk.img /usr
        if grep -qx user_allow_other /etc/fuse.conf; then
            $s mount disk.img m -o allow_other
            $s umount m
        else
            refused 1 $s mount disk.img m -o allow_other
        fi",
    );
    let Some(said) = said else { return };
    assert!(said.contains("only root may mount with the option dev: leave it out"), "{said}");
    assert!(said.contains("no write access to mountpoint"), "{said}");
    if said.contains("allow_other") {
        assert!(said.contains("mount without allow_other, or have root allow it"), "{said}");
    }
}

#[test]
fn what_he_may_not_write_is_not_called_write_protected() {
    let said = as_user(
        "chmod 444 disk.img
        $s mount disk.img m 2> said
        cat said
        ls m
        $s umount m",
    );
    let Some(said) = said else { return };
    assert!(said.contains("no permission to write it, mounted read-only"), "{said}");
    assert!(said.contains("lost+found") && !said.contains("write-protected"), "{said}");
}

#[test]
fn the_root_folder_of_what_is_made_for_him_is_his() {
    let said = as_user(
        "$s mount --stack nvram-journal --variant external m
        echo text > m/file
        $s umount m
        $s crash run --size 32m --cuts 2 --linger 0.1 -- sh -c 'echo text > file; sync file'",
    );
    let Some(said) = said else { return };
    assert!(!said.contains("ermission denied"), "{said}");
}

#[test]
fn what_a_user_has_made_is_his_to_use() {
    // The README's chapter on mounts, as he would type it; the socket is found whatever the
    // environment says.
    let said = as_user(
        "unset STEADFAST_RUNTIME_DIR XDG_RUNTIME_DIR
        rm disk.img
        mkdir here session
        $s mkfs disk.img --size 32m
        XDG_RUNTIME_DIR=$PWD/session $s mount disk.img ./here
        echo text > here/file && mkdir here/folder
        XDG_RUNTIME_DIR= $s status ./here
        $s status --json ./here | grep '\"state\": \"writable\"'
        $s umount ./here
        $s mkfs card.img -O journal_dev --size 16m -q
        $s mkfs -F disk.img -J device=card.img -b 4096 -q
        $s mount -o data=transact,journal=card.img,accept_volatile disk.img ./here
        echo text > here/file
        $s umount ./here
        $s journal status disk.img --journal card.img
        $s journal detach disk.img --journal card.img
        $s check disk.img",
    );
    let Some(said) = said else { return };
    assert!(said.contains("writable") && said.contains("disk.img: clean"), "{said}");
}

/// A stop signal comes as fusermount3 has mounted, with nobody behind the mount yet: first when the
/// place is tried, then when it is mounted to stay.
#[test]
fn a_signal_while_it_is_mounted_leaves_no_dead_mount() {
    let said = as_user(
        "mkdir bin
        export real=$(command -v fusermount3)
        cat > bin/fusermount3 <<'END'
#!/bin/sh
$real \"$@\"
status=$?
[ $1 != -o ] || echo x >> calls
[ $1 != -o ] || [ $(wc -l < calls) != $TURN ] || kill -TERM $PPID
exit $status
END
        chmod 755 bin/fusermount3
        for TURN in 1 2; do
            export TURN
            rm -f calls
            status=0
            PATH=$PWD/bin:$PATH timeout -s KILL 60 $s mount --foreground disk.img m || status=$?
            echo status $status calls $(wc -l < calls)
            grep \"$PWD/.* fuse.steadfast \" /proc/self/mountinfo && exit 1
            ls m
        done",
    );
    let Some(said) = said else { return };
    // Ended by it, and unmounted because of it.
    assert!(said.contains("status 143 calls 1\nstatus 0 calls 2\n"), "{said}");
}
