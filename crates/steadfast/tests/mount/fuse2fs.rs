//! In the place of fuse2fs, as container programs call it: under its name, with its options, images
//! inside larger files and by descriptor.

use std::fs;
use std::os::unix::fs::chown;

use super::bench::{Bench, text};

const USER: u32 = 65_534;

/// Runs a script with `$f`, the program under the name fuse2fs, in a mount namespace of its own;
/// its output. `served COMMAND...` starts it in the background and waits for the mount at m.
const PROLOGUE: &str = r#"
set -eu
: > err
s=./steadfast
f=./fuse2fs
served() {
    before=$(grep -c ' mounted at ' err || true)
    "$@" 2>> err &
    server=$!
    for n in $(seq 300); do
        # In the table it may be seen while it is only tried out.
        [ "$(grep -c ' mounted at ' err || true)" = "$before" ] || return 0
        kill -0 $server || { cat err >&2; exit 1; }
        sleep 0.02
    done
    exit 1
}
# As Apptainer ends it: unmounted, then the process is waited for.
ended() { umount m; wait $server; }
# Its process is gone in the middle of whatever it did.
killed() { kill -9 $server; wait $server || true; umount -l m; }
"#;

fn script(as_whom: &str, script: &str) -> Option<String> {
    let bench = Bench::with_image("32m")?;
    fs::copy(env!("CARGO_BIN_EXE_steadfast"), bench.path("steadfast")).unwrap();
    std::os::unix::fs::symlink("steadfast", bench.path("fuse2fs")).unwrap();
    fs::write(bench.path("script"), format!("{PROLOGUE}{script}")).unwrap();
    if !as_whom.is_empty() {
        fs::set_permissions(bench.path(""), std::os::unix::fs::PermissionsExt::from_mode(0o755))
            .unwrap();
        for name in ["", "disk.img", "m", "run"] {
            chown(bench.path(name), Some(USER), Some(USER)).unwrap();
        }
    }
    let outer = format!(
        "mknod fuse c 10 229 && chmod 666 fuse && mount --bind fuse /dev/fuse && \
         exec {as_whom} bash script"
    );
    let out = bench.command("unshare", &["--mount", "bash", "-c", &outer]);
    let said = text(&out.stdout);
    let err = fs::read_to_string(bench.path("err")).unwrap_or_default();
    assert!(out.status.success(), "{:?}\n{said}{}{err}", out.status, text(&out.stderr));
    Some(said + &err)
}

#[test]
fn its_options_and_its_place_in_a_larger_file() {
    let said = script(
        "",
        r#"
        $f -V | grep steadfast
        # An image behind a header, as in a SIF file; the rest of the file stays.
        head -c 1052672 /dev/urandom > head; head -c 40960 /dev/urandom > tail
        cat head disk.img tail > all.sif
        served $f -f -o offset=1052672 all.sif m
        echo text > m/file; sync m/file
        ended
        cmp -n 1052672 all.sif head; tail -c 40960 all.sif | cmp - tail
        tail -c +1052673 all.sif | head -c $((32 << 20)) > out.img
        e2fsck -fn out.img > /dev/null
        test "$($s cat out.img /file)" = text
        # The same offset as Apptainer hands it over, for a library that shifts reads.
        export OFFSETPRELOAD_FILE=all.sif OFFSETPRELOAD_OFFSET=1052672
        LD_PRELOAD=/lib/x86_64-linux-gnu/libc.so.6 served $f -f all.sif m
        test "$(cat m/file)" = text
        ended
        unset OFFSETPRELOAD_FILE OFFSETPRELOAD_OFFSET
        for bad in 100 1t; do
            status=0; $f -f -o offset=$bad all.sif m 2>> wrong || status=$?
            test $status = 2
        done
        grep -q 'a multiple is needed' wrong; grep -q 'bytes only' wrong
        # By descriptor, in the foreground and in the background.
        served $f -f -o ro,minixdf /proc/self/fd/3 m 3<> disk.img
        minix=$(stat -f -c %b m); ended
        $f -o rw,bsddf,acl,errors=remount-ro,no_default_opts disk.img m
        bsd=$(stat -f -c %b m); echo more > m/more; $s umount m
        test $minix -gt $bsd
        $s mount /dev/fd/4 m 4<> disk.img
        test "$(cat m/more)" = more; echo last > m/last; $s umount m
        test "$($s cat disk.img /last)" = last
        # Whoever hands the descriptor over may have locked it: for us.
        exec 5<> disk.img; flock -x 5
        served $f -f /dev/fd/5 m; ended
        exec 5>&-
        "#,
    );
    assert!(said.is_none_or(|said| !said.contains("ERROR")));
}

/// Without the right to write: read-only, with what its journal holds replayed in memory.
#[test]
fn an_image_that_may_only_be_read_shows_what_its_journal_holds() {
    let said = script(
        "setpriv --reuid=65534 --regid=65534 --clear-groups",
        r#"
        mke2fs -q -F -t ext4 -E root_owner=65534:65534 disk.img
        served $f -f disk.img m
        echo synced > m/file; sync m/file
        kill -9 $server; wait $server || true; fusermount3 -uz m
        chmod 444 disk.img; cp disk.img before.img
        served $f -f disk.img m
        cat m/file
        if echo x > m/new; then exit 1; fi
        fusermount3 -u m; wait $server
        cmp disk.img before.img
        # The journal is not looked at: what it holds is not there.
        served $f -f -o norecovery disk.img m
        if cat m/file; then exit 1; fi
        fusermount3 -u m; wait $server
        chmod 644 disk.img
        e2fsck -fp disk.img > /dev/null || test $? = 1
        "#,
    );
    let Some(said) = said else { return };
    assert!(said.contains("synced\n"), "{said}");
    assert!(said.contains("no permission to write it, mounted read-only"), "{said}");
    assert!(said.contains("in memory only"), "{said}");
}

/// Apptainer's overlay, with the commands that it runs (pkg/image, internal/pkg/image/driver): made
/// with mke2fs of a prepared folder, mounted with `fakeroot` as its caller in a user namespace with
/// the right to mount, used as an overlay's upper folder, unmounted, the process waited for.
#[test]
fn apptainers_overlay_survives_a_kill() {
    let said = script(
        "setpriv --reuid=65534 --regid=65534 --clear-groups unshare --user --map-current-user \
         --keep-caps --mount",
        r#"
        rm disk.img; truncate -s 34G disk.img
        mkdir -p top/upper top/work
        mkfs.ext3 -q -F -E root_owner=65534:65534 -d top disk.img 64m || \
            mke2fs -q -t ext3 -F -d top disk.img 64m
        run() { served $f -f -o fakeroot /proc/self/fd/3 $PWD/m 3<> disk.img; }
        run
        grep " $PWD/m " /proc/self/mountinfo | grep -v default_permissions > /dev/null
        # Root's files, a folder that nobody may enter: everything is allowed.
        mkdir m/work/work; chmod 0 m/work/work; ls m/work/work
        mkdir m/upper/etc; chown 65534:65534 m/upper/etc
        echo first > m/upper/etc/synced; sync m/upper/etc/synced
        ended
        # The second run is killed in the middle of its writes.
        run
        test "$(cat m/upper/etc/synced)" = first
        ( n=0; while :; do n=$((n+1)); echo $n > m/upper/more-$n; done ) 2> /dev/null &
        writer=$!
        echo second > m/upper/second; sync m/upper/second m/upper
        for n in $(seq 20); do
            head -c 300000 /dev/urandom > m/upper/data-$n; sync m/upper/data-$n
            sha256sum < m/upper/data-$n > sum-$n; last=$n
        done
        killed
        kill $writer 2> /dev/null || true; wait $writer 2> /dev/null || true
        # Run again: no fsck by hand, nothing synced is lost.
        run
        test "$(cat m/upper/second)" = second
        for n in $(seq $last); do
            test "$(sha256sum < m/upper/data-$n)" = "$(cat sum-$n)"
        done
        echo third > m/upper/third
        ended
        e2fsck -fn disk.img > /dev/null
        echo "checked $last"
        "#,
    );
    let Some(said) = said else { return };
    assert!(said.contains("checked 20"), "{said}");
}
