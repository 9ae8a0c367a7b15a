//! Tar archives and folders in new images, and images as archives: judged by e2fsck, the kernel's
//! mount, and GNU tar both ways.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use steadfast_host::LoopDevice;

use super::desk::{Desk, root};

const LIMIT: Duration = Duration::from_secs(120);
const UUID: &str = "8d0e4f0a-1c2b-4d3e-9f10-2233445566f1";

/// Runs a shell's commands in the desk's folder, which must succeed; what they print.
fn sh(d: &Desk, script: &str) -> String {
    let mut command = Command::new("bash");
    command.args(["-euo", "pipefail", "-c", script]).current_dir(d.path("."));
    command.env("STEADFAST", env!("CARGO_BIN_EXE_steadfast")).env("LC_ALL", "C");
    let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(out.status.success(), "{script}\n{}{}", text(&out.stdout), text(&out.stderr));
    text(&out.stdout)
}

/// Everything that `stat`, contents and attributes say of a tree, by name.
fn fingerprint(d: &Desk, folder: &Path) -> String {
    let script = format!(
        r"cd '{}'
        find . -path ./lost+found -prune -o -type d -printf '%p d %m %U:%G %T@\n' \
            -o -type l -printf '%p l %U:%G %T@ %l\n' \
            -o -printf '%p %y %m %U:%G %s %T@ %n\n' | sort
        find . -type f -size -64M -print0 | sort -z | xargs -0r sha256sum
        find . -type f -size +64M | sort | while read -r f; do
            head -c 1M $f | sha256sum
            dd if=$f bs=1M skip=4608 count=1 status=none | sha256sum; done
        find . -type f -links +1 -printf '%i %p\n' | sort -k2 |
            awk '{{ if (!($1 in n)) n[$1] = ++count; print n[$1], $2 }}'
        find . \( -type b -o -type c \) -print0 | sort -z | xargs -0r stat -c '%n %t:%T'
        find . -path ./lost+found -prune -o -print0 | sort -z |
            xargs -0r getfattr -h -d -m - --absolute-names 2>&1",
        folder.display()
    );
    sh(d, &script)
}

/// The same of an image, as the kernel mounts it.
fn mounted_fingerprint(d: &Desk, image: &str) -> String {
    let device = LoopDevice::attach(&d.path(image)).unwrap();
    let at = d.path("kernel");
    std::fs::create_dir_all(&at).unwrap();
    let (device, place) = (device.path().display().to_string(), at.display().to_string());
    sh(d, &format!("mount -t ext4 -o ro '{device}' '{place}'"));
    let seen = fingerprint(d, &at);
    sh(d, &format!("umount '{place}'"));
    seen
}

/// A tree with all that files have. Owners, devices and some attributes need root.
fn tree(d: &Desk) {
    let long = "n".repeat(120);
    sh(
        d,
        &format!(
            r"mkdir -p src/deep/{long}/{long} src/empty; cd src
            printf 'text\n' > plain; ln plain deep/again; ln plain zz-last
            head -c 3000000 /dev/urandom > large
            printf '%s' '' > nothing
            truncate -s 5G sparse
            printf begin | dd of=sparse conv=notrunc status=none
            printf middle | dd of=sparse bs=1 seek=4831838208 conv=notrunc status=none
            truncate -s 1M hole; truncate -s 8191 endhole; printf x | dd of=endhole conv=notrunc \
                status=none
            for n in $(seq 0 2 60); do
                printf x | dd of=pieces bs=4096 seek=$n conv=notrunc status=none; done
            ln -s target link; ln -s /{long}/{long} deep/longlink
            echo deep > deep/{long}/{long}/{long}
            mkfifo fifo; mknod null c 1 3; mknod disk b 259 1000000
            setfattr -n user.note -v 0x310a323d3300ff plain
            setfattr -n user.a=b%c -v x large
            setfattr -n trusted.mine -v y deep
            setcap cap_net_raw+ep large || true
            setfacl -m u:1001:rw,g:1002:r large
            setfacl -d -m u:1003:rwx deep
            chown 1000:1001 plain; chown 3000000000:4000000000 nothing; chmod 6755 large
            chmod 1777 empty; chown -h 12:13 link
            touch -d '1969-12-31 23:59:58.25' nothing; touch -d '2200-01-01 00:00:00.123456789' \
                endhole; touch -h -d '2001-02-03 04:05:06.7' link; touch -d '2000-01-01' deep ."
        ),
    );
}

#[test]
fn archives_of_gnu_tar_are_what_the_kernel_shows() {
    if !root("archives_of_gnu_tar_are_what_the_kernel_shows") {
        return;
    }
    let d = Desk::new();
    tree(&d);
    let all = "--xattrs --xattrs-include=* --acls --numeric-owner -C src -cf a.tar .";
    let made = |form: &str| {
        let of_source = fingerprint(&d, &d.path("src"));
        sh(&d, &format!("rm -f a.img a.tar; set -f; tar {form} {all}"));
        d.good("mkfs -q -d a.tar a.img --size 64m");
        d.e2fsck_is_clean("a.img");
        assert_eq!(mounted_fingerprint(&d, "a.img"), of_source, "{form}");
    };
    for form in [
        "--format=posix -S",
        "--format=posix -S --sparse-version=0.1",
        "--format=posix -S --sparse-version=0.0",
    ] {
        made(form);
    }
    // Five GiB of hole are five GiB in an archive that knows none.
    sh(&d, "mv src/sparse .; touch -d 2000-01-01 src");
    made("--format=posix");
    sh(&d, "mv sparse src; touch -d 2000-01-01 src");
    // GNU's old form has no attributes and whole seconds: as GNU tar itself extracts it.
    for form in ["--format=gnu -S", "--format=oldgnu -S"] {
        sh(
            &d,
            &format!(
                "rm -rf a.img a.tar out; mkdir out; tar {form} --numeric-owner -C src -cf a.tar .
                tar -C out --numeric-owner -xpf a.tar; touch -r src out"
            ),
        );
        sh(&d, "cat a.tar | \"$STEADFAST\" mkfs -q -d - a.img --size 64m");
        d.e2fsck_is_clean("a.img");
        let mut out = fingerprint(&d, &d.path("out"));
        let mut seen = mounted_fingerprint(&d, "a.img");
        for text in [&mut out, &mut seen] {
            // The top's time in nanoseconds is touch's.
            *text = text.lines().filter(|l| !l.starts_with(". d")).collect::<Vec<_>>().join("\n");
        }
        assert_eq!(seen, out, "{form}");
    }
}

#[test]
fn a_folder_fills_an_image_and_gnu_tar_reads_what_get_writes() {
    if !root("a_folder_fills_an_image_and_gnu_tar_reads_what_get_writes") {
        return;
    }
    let d = Desk::new();
    tree(&d);
    let of_source = fingerprint(&d, &d.path("src"));
    for journal in ["", "-O ^has_journal", "-t ext3 -I 256 -b 4096"] {
        sh(&d, "rm -f a.img");
        let said = d.good(&format!("mkfs -d src {journal} a.img --size 64m"));
        assert!(said.out.contains("Contents: "), "{}", said.out);
        d.e2fsck_is_clean("a.img");
        if journal.starts_with("-t ext3") {
            continue;
        }
        assert_eq!(mounted_fingerprint(&d, "a.img"), of_source, "{journal}");
    }
    sh(&d, "rm a.img");
    d.good("mkfs -q -d src a.img --size 64m");
    d.good("get --tar a.tar a.img");
    sh(
        &d,
        "set -f; mkdir out; tar -C out --xattrs --xattrs-include=* --acls --numeric-owner \
         -xpf a.tar; tar --exclude=./sparse -df a.tar -C out",
    );
    assert_eq!(fingerprint(&d, &d.path("out")), of_source);
    assert!(sh(&d, "du -B1M out | tail -1 | cut -f1").trim().parse::<u64>().unwrap() < 20);
    // Into another image, over a stream, below a folder; and the same archive again.
    d.good("mkfs -q b.img --size 64m");
    d.good("mkdir b.img /below");
    sh(&d, "\"$STEADFAST\" get --tar - a.img / | \"$STEADFAST\" put --tar - b.img /below");
    d.e2fsck_is_clean("b.img");
    d.good("get --tar again.tar b.img /below");
    sh(&d, "cmp a.tar again.tar");
    // Unpacked over itself nothing changes.
    d.good("put --tar a.tar b.img /below");
    d.good("get --tar again.tar b.img /below");
    sh(&d, "cmp a.tar again.tar");
    d.e2fsck_is_clean("b.img");
    // One file, by its own name.
    assert_eq!(sh(&d, "\"$STEADFAST\" get --tar - a.img /plain | tar -t"), "plain\n");
}

/// The order in which a folder was made, who makes the image, and when, do not matter.
#[test]
fn the_same_input_gives_the_same_bytes() {
    let d = Desk::new();
    sh(
        &d,
        r"mkdir a b; for n in $(seq 300); do head -c $((n * 100)) /dev/zero | tr '\0' x > a/$n; done
        mkdir a/sub; echo x > a/sub/file; ln a/1 a/sub/link; ln -s file a/sub/l
        for n in $(seq 300 -1 2); do cp a/$n b/; done; mkdir b/sub; cp a/1 b/1
        ln b/1 b/sub/link; ln -s file b/sub/l; echo x > b/sub/file
        find a b -exec touch -h -d 2020-01-01 {} +; cat a/1 a/2 > /dev/null; touch -a a/3
        chmod -R a+rX a b .
        tar --sort=name --format=posix --pax-option=delete=atime,delete=ctime -C a -cf a.tar .",
    );
    let make = |options: &str, image: &str| {
        sh(
            &d,
            &format!(
                "export SOURCE_DATE_EPOCH=1700000000
                \"$STEADFAST\" mkfs -q --uuid {UUID} {options} {image} --size 48m; sync {image}"
            ),
        );
        d.e2fsck_is_clean(image);
    };
    make("-d a", "1.img");
    make("-d b", "2.img");
    sh(&d, "cmp 1.img 2.img");
    make("-d a.tar", "3.img");
    sh(&d, "cmp 1.img 3.img");
    sh(&d, "dumpe2fs -h 1.img 2>/dev/null > 1.txt");
    for (words, text) in [
        ("Filesystem UUID", UUID),
        ("Directory Hash Seed", "-"),
        ("Filesystem created", "Tue Nov 14 22:13:20 2023"),
        ("Last write time", "Tue Nov 14 22:13:20 2023"),
    ] {
        let line = sh(&d, &format!("TZ=UTC dumpe2fs -h 1.img 2>/dev/null | grep '^{words}'"));
        assert!(line.contains(text), "{line}");
    }
    // The later commands too; each image has its own numbers.
    let change = |image: &str| {
        sh(
            &d,
            &format!(
                "export SOURCE_DATE_EPOCH=1700000100
                \"$STEADFAST\" put -r {image} a /more; \"$STEADFAST\" rm -r {image} /more/7
                \"$STEADFAST\" mkdir {image} /new; \"$STEADFAST\" put --tar a.tar {image} /new
                \"$STEADFAST\" rm -r {image} /sub"
            ),
        );
        d.e2fsck_is_clean(image);
    };
    change("1.img");
    change("2.img");
    sh(&d, "cmp 1.img 2.img");
    if root("the_same_input_gives_the_same_bytes: as another user") {
        let made = d.run_as_nobody("mkfs -q -U clear -d a.tar /proc/self/fd/9 --size 1m");
        // Where nobody may write nothing is made; a place of its own does.
        assert_ne!(made.status, Some(0));
        sh(
            &d,
            &format!(
                "mkdir nobody; chown 65534:65534 nobody; cp \"$STEADFAST\" nobody/steadfast
                chmod a+x nobody/steadfast
                SOURCE_DATE_EPOCH=1700000000 TZ=Asia/Tokyo setpriv --reuid 65534 --regid 65534 \
                --clear-groups nobody/steadfast mkfs -q -U {UUID} -d a.tar nobody/4.img --size 48m
                cmp 3.img nobody/4.img; rm nobody/steadfast"
            ),
        );
    }
}

/// Names, links and sizes of an archive that wants out, or is broken.
#[test]
fn a_strangers_archive_stays_inside() {
    let d = Desk::new();
    sh(
        &d,
        r#"mkdir x; echo 1 > x/good; echo 2 > outside
        tar -C x -cPf dots.tar --transform='s,^good$,../../outside,' good
        tar -C x -rPf dots.tar good
        tar -C x -cPf absolute.tar --transform='s,^good$,/etc/made-by-a-test,' good
        ln -s /tmp x/away; tar -C x -cf through.tar away
        tar -C x -rf through.tar --transform='s,^good$,away/made-by-a-test,' good
        tar -C x -rf through.tar good
        ln x/good x/link; tar -C x -cf link.tar --transform='s,^good$,../../../etc/passwd,rh' \
            --transform='s,^good$,other,R' good link
        head -c 200000 /dev/zero > x/zeros; tar -C x -cf whole.tar good zeros
        head -c 100000 whole.tar > cut.tar
        gzip -k whole.tar; head -c 5000 /dev/urandom > noise.tar; : > empty.tar
        echo short > short.tar"#,
    );
    let bad = |archive: &str, said: &str| {
        sh(&d, "rm -f a.img");
        let run = d.run(&format!("mkfs -q -d {archive} a.img --size 16m"));
        assert_eq!(run.status, Some(1), "{archive}: {}", run.err);
        assert!(
            run.err.contains(said) && run.err.contains("is not made"),
            "{archive}: {}",
            run.err
        );
        assert!(!d.path("a.img").exists(), "{archive}");
    };
    bad("dots.tar", "'..' is no name that leads into the target");
    bad("through.tar", "its path leads through 'away', which is no folder");
    bad("cut.tar", "the archive is cut off: it ends at byte ");
    bad("whole.tar.gz", "zcat");
    bad("noise.tar", "this is no tar archive");
    bad("short.tar", "this is no tar archive");
    bad("missing.tar", "missing.tar");
    let said = d.good("mkfs -q -d absolute.tar a.img --size 16m").err;
    assert!(said.contains("the / in front of the name is left out"), "{said}");
    assert_eq!(d.good("cat a.img /etc/made-by-a-test").out, "1\n");
    assert!(!Path::new("/etc/made-by-a-test").exists());
    // What is wrong with one does not keep the others out where that is wanted.
    d.good("mkfs -q -F -U clear a.img");
    let said = d.bad("put --tar dots.tar a.img");
    assert!(said.err.contains("'..'"), "{}", said.err);
    assert_eq!(d.good("cat a.img /good").out, "1\n");
    let said = d.bad("put --tar through.tar a.img").err;
    assert!(said.contains("through 'away'"), "{said}");
    let said = d.run("put --tar link.tar a.img").err;
    assert!(said.contains("a hard link to") || said.contains("'..'"), "{said}");
    d.bad("put --tar cut.tar a.img");
    let said = d.good("put --tar empty.tar a.img").err;
    assert!(said.contains("the archive is empty"), "{said}");
    assert_eq!(std::fs::read_to_string(d.path("outside")).unwrap(), "2\n");
    d.e2fsck_is_clean("a.img");
    // A member that claims more than any disk has: sparse, and as data.
    let header = |name: &str, size: &str, kind: u8| {
        let mut block = vec![0_u8; 512];
        block[..name.len()].copy_from_slice(name.as_bytes());
        block[100..107].copy_from_slice(b"0000644");
        block[124..135].copy_from_slice(size.as_bytes());
        block[156] = kind;
        block[257..265].copy_from_slice(b"ustar\x0000");
        block[148..156].fill(b' ');
        let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
        block[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        block
    };
    std::fs::write(d.path("huge.tar"), header("huge", "77777777777", b'0')).unwrap();
    bad("huge.tar", "cut off");
    std::fs::write(d.path("records.tar"), header("x", "77777777777", b'x')).unwrap();
    bad("records.tar", "records of 8589934591 bytes: at most");
    sh(
        &d,
        "truncate -s 15T big; tar -cSf big.tar --format=posix big
        \"$STEADFAST\" mkfs -q -t ext3 -b 1024 a.img --size 16m",
    );
    let said = d.bad("put --tar big.tar a.img");
    assert!(said.err.contains("big: "), "{}", said.err);
    d.e2fsck_is_clean("a.img");
}

#[test]
fn a_full_image_is_said_and_removed() {
    let d = Desk::new();
    sh(
        &d,
        "mkdir x; for n in 1 2 3 4 5 6 7 8; do head -c 3M /dev/urandom > x/$n; done
        tar --sort=name -C x -cf x.tar .; mkdir many; (cd many; seq 3000 | xargs touch)",
    );
    for (what, options) in
        [("x", "--size 16m"), ("x.tar", "--size 16m"), ("many", "-N 200 --size 32m")]
    {
        let said = d.bad(&format!("mkfs -d {what} a.img {options}"));
        for part in
            ["a.img is not made", "the image is full", "the last of ", " objects that were written"]
        {
            assert!(said.err.contains(part), "{what}: {}", said.err);
        }
        assert!(!d.path("a.img").exists());
    }
    d.good("mkfs -q a.img --size 16m");
    let said = d.bad("put --tar x.tar a.img");
    assert!(said.err.contains("the last of ") && said.err.contains("no space"), "{}", said.err);
    d.e2fsck_is_clean("a.img");
    assert!(d.good("ls a.img").out.contains(" 1\n"));
}

/// Layers of a container's image, one over the other.
#[test]
fn whiteouts_take_away_what_lower_layers_have() {
    let d = Desk::new();
    sh(
        &d,
        "mkdir -p 1/opaque/lower 1/kept 1/gone/deep 1/file-becomes 2/opaque/both 2/new
        echo 1 > 1/opaque/lower/f; mkdir 1/opaque/both; echo 1 > 1/opaque/both/old
        echo 1 > 1/kept/f; echo 1 > 1/gone/deep/f; echo 1 > 1/single; echo 1 > 1/file-becomes/f
        echo 2 > 2/opaque/both/fresh; : > 2/opaque/.wh..wh..opq; : > 2/.wh.gone; : > 2/.wh.single
        : > 2/new/.wh.nothing; : > 2/.wh..wh.plnk; echo 2 > 2/file-becomes; echo 2 > 2/kept-file
        tar -C 1 -cf 1.tar .; tar --sort=name -C 2 -cf 2.tar .
        tar -C 2 -cf 2-late.tar kept-file file-becomes new .wh.gone .wh.single .wh..wh.plnk \
            opaque/both opaque/.wh..wh..opq",
    );
    for top in ["2.tar", "2-late.tar"] {
        sh(&d, "rm -f a.img");
        d.good(&format!("mkfs -q -d 1.tar -d {top} --whiteouts apply a.img --size 16m"));
        d.e2fsck_is_clean("a.img");
        let listed = sh(&d, "\"$STEADFAST\" get --tar - a.img | tar -t");
        let names: Vec<&str> = listed.lines().collect();
        let expected = [
            "./",
            "./file-becomes",
            "./kept/",
            "./kept/f",
            "./kept-file",
            "./new/",
            "./opaque/",
            "./opaque/both/",
            "./opaque/both/fresh",
        ];
        let mut sorted = names.clone();
        sorted.sort_unstable();
        let mut wanted = expected.to_vec();
        wanted.sort_unstable();
        assert_eq!(sorted, wanted, "{top}");
    }
    sh(&d, "rm a.img");
    d.good("mkfs -q -d 2.tar --whiteouts overlay a.img --size 16m");
    let listed = d.good("ls a.img").out;
    assert!(listed.contains("c---------") && listed.contains(" gone\n"), "{listed}");
    let records = sh(&d, "\"$STEADFAST\" get --tar - a.img /opaque | strings");
    assert!(records.contains("trusted.overlay.opaque=y"), "{records}");
    sh(&d, "rm a.img");
    d.good("mkfs -q -d 2.tar a.img --size 16m");
    assert!(d.good("ls a.img").out.contains(" .wh.gone\n"));
}

#[test]
fn owners_are_mapped() {
    let d = Desk::new();
    sh(
        &d,
        "mkdir x; echo 1 > x/a; echo 2 > x/b
        tar --owner=:1000 --group=:1001 --numeric-owner --format=posix -C x -cf x.tar a b",
    );
    let owner = |image: &str| -> String {
        let line = d.good(&format!("ls {image}")).out;
        let line = line.lines().find(|line| line.ends_with(" a")).unwrap().to_owned();
        line.split_whitespace().skip(2).take(2).collect::<Vec<_>>().join(":")
    };
    let made = |options: &str| {
        sh(&d, "rm -f a.img");
        d.good(&format!("mkfs -q {options} a.img --size 8m"));
        owner("a.img")
    };
    assert_eq!(made("-d x.tar"), "1000:1001");
    assert_eq!(made("-d x.tar --owner 0:0"), "0:0");
    assert_eq!(made("-d x --owner 7:8"), "7:8");
    assert_eq!(made("-d x.tar --map-users 0:100000:65536 --map-groups 1001:5"), "101000:5");
    let listed = sh(&d, "\"$STEADFAST\" get --tar - --owner 3:4 a.img | tar --numeric-owner -tv");
    assert!(listed.contains(" 3/4 "), "{listed}");
    let said = d.run("mkfs -d x.tar --owner root a.img --size 8m");
    assert!(said.status == Some(2) && said.err.contains("0:0"), "{}", said.err);
}

#[test]
fn wrong_uses_are_named() {
    let d = Desk::new();
    sh(&d, "mkdir x; echo 1 > x/a; tar -C x -cf x.tar a");
    d.good("mkfs -q a.img --size 8m");
    for (line, text) in [
        ("put --tar x.tar a.img /a /b", "only the image and a path"),
        ("put a.img /b", "IMAGE HOST_PATH PATH"),
        ("put --tar x a.img", "put -r"),
        ("put --tar none a.img", "no such file"),
        ("get a.img /b", "IMAGE PATH HOST_PATH"),
        ("get --tar x.tar -r a.img", "cannot be used with"),
        ("put --whiteouts apply a.img x /x", "--tar"),
        ("mkfs -d x a.img", "-F overwrites"),
        ("mkfs -d x -O journal_dev b.img --size 8m", "journal device"),
    ] {
        let said = d.run(line);
        assert!(said.status == Some(2) && said.err.contains(text), "{line}: {}", said.err);
    }
    assert!(!d.path("b.img").exists());
    // An archive that cannot be finished leaves the one that is there.
    let said = d.run("get --tar x.tar a.img /none");
    assert!(said.status == Some(1), "{}", said.err);
    assert_eq!(sh(&d, "tar -tf x.tar; ls -A"), "a\na.img\nx\nx.tar\n");
}
