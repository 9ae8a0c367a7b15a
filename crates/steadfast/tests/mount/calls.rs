//! Calls that a mount over FUSE carries, and those that it does not: README names these, with the
//! reason, and here is the proof.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt, PermissionsExt};
use std::process::Command;
use std::time::Duration;

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, SeekFrom, StatxFlags};
use rustix::io::Errno;

use super::bench::{Bench, text};

/// sync(2) concerns every file system of the machine: one that hangs must not hang the test too.
/// The call cannot be ended by any signal then, so a process of its own makes it.
fn sync_everything() {
    const LIMIT: Duration = Duration::from_secs(60);
    let mut sync = Command::new("sync").spawn().unwrap();
    let ended = steadfast_suite::ended(&mut sync, LIMIT).unwrap();
    let Some(status) = ended else {
        panic!(
            "sync(2) has not returned for {} s: the kernel of this machine hangs in it (process \
             {}, see /proc/{}/stack), in a file system that need not be ours",
            LIMIT.as_secs(),
            sync.id(),
            sync.id()
        );
    };
    assert!(status.success(), "sync: {status}");
}

/// Takes (`save PATH`) or opens (`open HANDLE`) a file handle, in hexadecimal digits.
const HANDLES: &str = r#"
    my ($what, $it) = @ARGV;
    if ($what eq "save") {
        my ($h, $id) = (pack("Lla128", 128, 0, ""), pack("l", 0));
        syscall(303, -100, $it, $h, $id, 0) == 0 or die "$!\n";
        print unpack("H*", substr($h, 0, 8 + unpack("L", $h)));
    } else {
        my $h = pack("H*", $it);
        sysopen(M, "m", 0) or die "m: $!\n";
        my $fd = syscall(304, fileno(M), $h, 0);
        die "$!\n" if $fd < 0;
        open(F, "<&=", $fd) or die "$!\n";
        if (-d F) { print "folder" } else { print <F> }
    }
"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn file_handles_outlive_what_the_kernel_remembers() {
    let Some(b) = Bench::with_image("32m") else { return };
    let handles = |what: &str, it: &str| {
        let out = b.command("perl", &["-e", HANDLES, what, it]);
        if out.status.success() { Ok(text(&out.stdout)) } else { Err(text(&out.stderr)) }
    };
    b.good("mount disk.img m");
    fs::create_dir_all(b.at().join("a/b")).unwrap();
    fs::write(b.at().join("a/b/file"), "by its handle").unwrap();
    let file = handles("save", "m/a/b/file").unwrap();
    let folder = handles("save", "m/a/b").unwrap();
    b.good("umount m");
    b.good("mount disk.img m");
    assert_eq!(handles("open", &folder).unwrap(), "folder");
    assert_eq!(handles("open", &file).unwrap(), "by its handle");
    // A new file with the same number is another one.
    let number = fs::metadata(b.at().join("a/b/file")).unwrap().ino();
    fs::remove_file(b.at().join("a/b/file")).unwrap();
    assert!(handles("open", &file).unwrap_err().contains("Stale"));
    // What was removed has been deleted when this is answered, and its number is free.
    rustix::fs::statvfs(b.at()).unwrap();
    fs::write(b.at().join("a/b/other"), "not by that handle").unwrap();
    assert_eq!(fs::metadata(b.at().join("a/b/other")).unwrap().ino(), number);
    b.good("umount m");
    b.good("mount disk.img m");
    assert!(handles("open", &file).unwrap_err().contains("Stale"));
    // Numbers that nobody gave out: of no inode, of the journal's, of free ones.
    for number in [0u32, 1 << 31, 2, 7, 8, 200, 4000] {
        // struct file_handle: length, type; then FUSE's own: number (two words), generation.
        let forged = format!("{}{:08x}{}", &file[..24], number.swap_bytes(), "00000000");
        let said = handles("open", &forged).unwrap_err();
        assert!(said.contains("Stale"), "{number}: {said}");
    }
    assert_eq!(b.status()["state"], "writable");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn a_whiteout_takes_the_place_of_a_name() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    for name in ["one", "two", "over"] {
        fs::write(b.at().join(name), name).unwrap();
    }
    fs::create_dir(b.at().join("d")).unwrap();
    let dir = File::open(b.at()).unwrap();
    let rename =
        |from: &str, to: &str, flags| rustix::fs::renameat_with(&dir, from, &dir, to, flags);
    rename("one", "d/one", RenameFlags::WHITEOUT).unwrap();
    rename("two", "over", RenameFlags::WHITEOUT).unwrap();
    rename("d", "e", RenameFlags::WHITEOUT | RenameFlags::NOREPLACE).unwrap();
    for name in ["one", "two", "d"] {
        let meta = fs::symlink_metadata(b.at().join(name)).unwrap();
        assert!(meta.file_type().is_char_device() && meta.rdev() == 0, "{name}");
    }
    let both = RenameFlags::WHITEOUT | RenameFlags::EXCHANGE;
    assert_eq!(rename("e", "over", both), Err(Errno::INVAL));
    drop(dir);
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
    b.good("mount disk.img m");
    assert_eq!(fs::read_to_string(b.at().join("over")).unwrap(), "two");
    assert_eq!(fs::read_to_string(b.at().join("e/one")).unwrap(), "one");
    b.good("umount m");
}

/// Also of what the kernel has kept from an earlier answer.
#[test]
fn who_looks_again_sees_that_there_was_a_change() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let times = |file: &File| {
        let meta = file.metadata().unwrap();
        [(meta.mtime(), meta.mtime_nsec()), (meta.ctime(), meta.ctime_nsec())]
    };
    for n in 0..100u32 {
        let mut file = File::create_new(b.at().join(format!("{n}"))).unwrap();
        let made = times(&file);
        file.write_all(b"x").unwrap();
        let written = times(&file);
        assert!(written[0] > made[0] && written[1] > made[1], "{n}: {made:?}, {written:?}");
        for mode in [0o600, 0o640, 0o600] {
            let before = times(&file)[1];
            file.set_permissions(fs::Permissions::from_mode(mode)).unwrap();
            assert!(times(&file)[1] > before, "{n}: {before:?}");
        }
    }
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn labels_flags_and_projects() {
    let Some(b) = Bench::new() else { return };
    let made = b.command("mke2fs", &["-q", "-t", "ext4", "-O", "project,quota", "disk.img", "32m"]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    b.good("mount disk.img m");
    // FS_IOC_SETFSLABEL, FS_IOC_GETFSLABEL.
    b.ioctl("m", 0x4100_9432, "'a256', 'photographs'").unwrap();
    let label = b.ioctl("m", 0x8100_9431, "'a256', ''").unwrap();
    assert!(label.starts_with("70686f746f67726170687300"), "{label}");
    let said = b.ioctl("m", 0x4100_9432, "'a256', 'more than sixteen'").unwrap_err();
    assert!(said.contains("Invalid argument"), "{said}");
    // FS_IOC_FSSETXATTR: append-only, no times of access, project 77; FS_IOC_FSGETXATTR.
    fs::write(b.at().join("f"), "x").unwrap();
    b.ioctl("m/f", 0x401c_5820, "'L4a12', 0x50, 0, 0, 77, ''").unwrap();
    let shown = b.ioctl("m/f", 0x801c_581f, "'a28', ''").unwrap();
    assert_eq!((&shown[..8], &shown[24..32]), ("50000000", "4d000000"), "{shown}");
    let listed = text(&b.command("lsattr", &["-p", "m/f"]).stdout);
    assert!(listed.contains("77") && listed.contains('a') && listed.contains('A'), "{listed}");
    b.ioctl("m/f", 0x401c_5820, "'L4a12', 0, 0, 0, 77, ''").unwrap();
    // A flag that ext4 has no place for (FS_XFLAG_REALTIME).
    let said = b.ioctl("m/f", 0x401c_5820, "'L4a12', 1, 0, 0, 77, ''").unwrap_err();
    assert!(said.contains("not supported") || said.contains("Invalid"), "{said}");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
    let label = text(&b.command("e2label", &["disk.img"]).stdout);
    assert_eq!(label, "photographs\n");
    assert!(b.debugfs("stat f").contains("Project:    77"), "{}", b.debugfs("stat f"));
}

#[test]
fn copies_within_and_holes() {
    let Some(b) = Bench::with_image("64m") else { return };
    b.good("mount disk.img m");
    let data: Vec<u8> = (0..5_000_000u32).map(|i| (i % 253) as u8).collect();
    fs::write(b.at().join("from"), &data).unwrap();
    let from = File::open(b.at().join("from")).unwrap();
    let to = OpenOptions::new();
    let to = to.clone().read(true).write(true).create_new(true).open(b.at().join("to")).unwrap();
    let (mut at, mut into) = (1, 10_000_000);
    while at < data.len() as u64 {
        let left = data.len() - at as usize;
        let n = rustix::fs::copy_file_range(&from, Some(&mut at), &to, Some(&mut into), left);
        assert!(n.unwrap() > 0, "before the end");
    }
    let mut seen = vec![0; data.len() - 1];
    to.read_exact_at(&mut seen, 10_000_000).unwrap();
    assert!(seen == data[1..]);
    // The hole before it: whole blocks of 1 KiB.
    let find = |from| rustix::fs::seek(&to, from).unwrap();
    assert_eq!(find(SeekFrom::Data(0)), 10_000_000 / 1024 * 1024);
    assert_eq!(find(SeekFrom::Hole(0)), 0);
    assert_eq!(find(SeekFrom::Hole(10_000_000)), 10_000_000 + data.len() as u64 - 1);
    // Within one file; ranges that overlap are refused.
    let copy = |mut at: u64, mut into: u64, len| {
        rustix::fs::copy_file_range(&to, Some(&mut at), &to, Some(&mut into), len)
    };
    assert_eq!(copy(10_000_000, 0, 100), Ok(100));
    assert_eq!(copy(10_000_000, 10_000_050, 100), Err(Errno::INVAL));
    drop((from, to));
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

/// Journalling a file's data takes CAP_SYS_RESOURCE, in the kernel's ext4 and here.
#[test]
fn not_everybody_has_a_files_data_journalled() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    fs::write(b.at().join("f"), "text").unwrap();
    let without = ["--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "chattr", "+j"];
    let refused = b.command("setpriv", &[&without[..], &["m/f"]].concat());
    assert!(!refused.status.success(), "{refused:?}");
    assert!(text(&refused.stderr).contains("not permitted"), "{refused:?}");
    // What he may change, he may go on changing.
    let other = ["--bounding-set=-sys_resource", "--inh-caps=-sys_resource", "chattr", "+d"];
    let done = b.command("setpriv", &[&other[..], &["m/f"]].concat());
    assert!(done.status.success(), "{done:?}");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

/// With writeback_cache the kernel keeps what was written: it reads through files that are open
/// for writing only, and finds data where we have seen none yet.
#[test]
fn write_back_caching_appends_and_seeks() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m -o writeback_cache");
    for line in ["one", "two"] {
        let said = b.command("sh", &["-c", &format!("echo {line} >> m/log")]);
        assert!(said.status.success(), "{said:?}");
    }
    // Past the page that is there: it is read first.
    let mut log = OpenOptions::new().append(true).open(b.at().join("log")).unwrap();
    log.write_all(b"three\n").unwrap();
    log.sync_all().unwrap();
    drop(log);
    b.good("umount m");
    b.good("mount disk.img m -o writeback_cache,strictatime");
    // What the kernel reads of a page that is written in part is nobody's access.
    let before = fs::metadata(b.at().join("log")).unwrap().accessed().unwrap();
    let log = OpenOptions::new().write(true).open(b.at().join("log")).unwrap();
    log.write_all_at(b"O", 0).unwrap();
    log.sync_all().unwrap();
    assert_eq!(fs::metadata(b.at().join("log")).unwrap().accessed().unwrap(), before);
    log.write_all_at(b"o", 0).unwrap();
    drop(log);
    b.good("umount m");
    b.good("mount disk.img m -o writeback_cache");
    let mut log = OpenOptions::new().append(true).open(b.at().join("log")).unwrap();
    log.write_all(b"four\n").unwrap();
    assert_eq!(fs::read_to_string(b.at().join("log")).unwrap(), "one\ntwo\nthree\nfour\n");
    let mut dirty = File::create(b.at().join("dirty")).unwrap();
    dirty.write_all(&[7; 9000]).unwrap();
    assert_eq!(rustix::fs::seek(&dirty, SeekFrom::Data(0)).unwrap(), 0);
    assert_eq!(rustix::fs::seek(&dirty, SeekFrom::Hole(0)).unwrap(), 9000);
    drop((log, dirty));
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

/// The kernel sends the times of what it has kept before an fsync and a close, which is not
/// utimensat(2).
#[test]
fn write_back_caching_of_a_file_that_may_only_be_appended_to() {
    use rustix::fs::{IFlags, Timespec, Timestamps, futimens, ioctl_getflags, ioctl_setflags};
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m -o writeback_cache,commit=300");
    let path = b.at().join("log");
    fs::write(&path, "first\n").unwrap();
    let flags = ioctl_getflags(File::open(&path).unwrap()).unwrap();
    ioctl_setflags(File::open(&path).unwrap(), flags | IFlags::APPEND).unwrap();
    for _ in 0..2 {
        let mut log = OpenOptions::new().append(true).open(&path).unwrap();
        log.write_all(b"more\n").unwrap();
        log.sync_all().unwrap();
        // It says what close(2) says.
        let dd = "dd if=/dev/zero of=m/log oflag=append conv=notrunc bs=10 count=1";
        let said = b.command("sh", &["-c", dd]);
        assert!(said.status.success(), "{said:?}");
        let old = Timespec { tv_sec: 1, tv_nsec: 0 };
        let omit = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
        let set = futimens(&log, &Timestamps { last_access: omit, last_modification: old });
        assert_eq!(set, Err(rustix::io::Errno::PERM));
        // touch(1)
        let now = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        futimens(&log, &Timestamps { last_access: now, last_modification: now }).unwrap();
    }
    ioctl_setflags(File::open(&path).unwrap(), flags | IFlags::IMMUTABLE).unwrap();
    assert!(!b.command("touch", &["m/log"]).status.success());
    ioctl_setflags(File::open(&path).unwrap(), flags).unwrap();
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

/// As with the kernel's ext4: what is said of a journal is refused where there is none.
#[test]
fn options_of_a_journal_need_one() {
    let Some(b) = Bench::new() else { return };
    let made = b.command("mke2fs", &["-q", "-t", "ext4", "-O", "^has_journal", "disk.img", "16m"]);
    assert!(made.status.success(), "{made:?}");
    for word in ["data=ordered", "data=journal", "journal_checksum", "data_err=abort"] {
        let said = b.bad(&format!("mount disk.img m -o {word}"), 2);
        assert!(said.contains(word) && said.contains("tune2fs -j"), "{said}");
    }
    b.good("mount disk.img m -o commit=9,data_err=ignore,nojournal_checksum");
    let status = b.status();
    let words = status["options_in_force"].as_array().unwrap();
    assert!(words.contains(&"commit=9".into()), "{status}");
    assert!(!words.iter().any(|word| word.as_str().unwrap().starts_with("data=")), "{status}");
    assert!(status["data"].is_null() && b.good("status m").contains("no journal"), "{status}");
    b.good("mount m -o remount,noatime");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

/// The kernel sends these since 6.1 (FUSE_TMPFILE) and 6.6 (FUSE_STATX).
#[test]
fn files_without_a_name_and_times_of_birth() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let begun = now.as_secs().cast_signed();
    let fd = rustix::fs::open(b.at(), OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR).unwrap();
    rustix::io::write(&fd, b"kept").unwrap();
    assert_eq!(fs::read_dir(b.at()).unwrap().count(), 1, "lost+found alone");
    let gone = rustix::fs::open(b.at(), OFlags::TMPFILE | OFlags::RDWR, Mode::RUSR).unwrap();
    rustix::io::write(&gone, &[7; 100_000]).unwrap();
    drop(gone);
    let by_number = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&fd));
    let file = b.at().join("named");
    rustix::fs::linkat(CWD, by_number, CWD, &file, AtFlags::SYMLINK_FOLLOW).unwrap();
    drop(fd);
    assert_eq!(fs::read(&file).unwrap(), b"kept");
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    let shown = rustix::fs::statx(CWD, &file, AtFlags::empty(), wanted).unwrap();
    assert_ne!(shown.stx_mask & StatxFlags::BTIME.bits(), 0);
    assert!((begun - 1..=begun + 60).contains(&shown.stx_btime.tv_sec), "{shown:?}");
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

#[test]
fn what_is_not_carried() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m -o commit=600");
    let file = b.at().join("f");
    fs::write(&file, "x").unwrap();
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    // The kernel's FUSE: attribute bits of statx, FIFREEZE, FIEMAP.
    assert!(b.command("chattr", &["+i", "m/f"]).status.success());
    let shown = rustix::fs::statx(CWD, &file, AtFlags::empty(), wanted).unwrap();
    assert_eq!(shown.stx_attributes.bits() & 0x10, 0, "STATX_ATTR_IMMUTABLE");
    assert!(b.command("chattr", &["-i", "m/f"]).status.success());
    let said = b.ioctl("m", 0xc004_5877, "'l', 0").unwrap_err();
    assert!(said.contains("not supported"), "FIFREEZE: {said}");
    let said = b.ioctl("m/f", 0xc020_660b, "'QQLLLL', 0, 1024, 0, 0, 0, 0").unwrap_err();
    assert!(said.contains("not supported"), "FIEMAP: {said}");
    // Free blocks are not discarded.
    let said = b.ioctl("m", 0xc018_5879, "'QQQ', 0, 1 << 30, 0").unwrap_err();
    assert!(said.contains("ioctl for device"), "FITRIM: {said}");
    // syncfs(2) and sync(2) are answered by the kernel alone.
    let mut dirty = File::create(b.at().join("dirty")).unwrap();
    dirty.write_all(&vec![7; 300_000]).unwrap();
    rustix::fs::syncfs(&dirty).unwrap();
    sync_everything();
    assert!(b.status()["dirty_bytes"].as_u64().unwrap() >= 300_000);
    dirty.sync_all().unwrap();
    assert_eq!(b.status()["dirty_bytes"], 0);
    drop(dirty);
    b.good("umount m");
    b.e2fsck_is_clean("disk.img");
}

/// An idmapped copy of the mount (mount_setattr(2)) with the mapping of a new user namespace.
const IDMAPPED: &str = r#"
    pipe(READ, WRITE);
    my $child = fork() // die;
    if (!$child) {
        syscall(272, 0x10000000) == 0 or die "unshare: $!\n";
        syswrite(WRITE, "x");
        sleep(60);
        exit;
    }
    sysread(READ, my $byte, 1) or die "no user namespace\n";
    open(MAP, ">", "/proc/$child/uid_map") or die "uid_map: $!\n";
    syswrite(MAP, "0 1000 1\n");
    sysopen(NS, "/proc/$child/ns/user", 0) or die "ns: $!\n";
    my ($m, $none) = ("m", "");
    my $tree = syscall(428, -100, $m, 0x80001);
    my $attr = pack("Q4", 0x100000, 0, 0, fileno(NS));
    my $done = syscall(442, $tree, $none, 0x1000, $attr, 32);
    my $error = $! + 0;
    kill("KILL", $child);
    waitpid($child, 0);
    die "tree: $tree\n" if $tree < 0;
    print $done == 0 ? "mapped" : "errno $error";
"#;

#[test]
#[cfg(target_arch = "x86_64")]
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn idmapped_copies_are_refused() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m");
    let out = b.command("perl", &["-e", IDMAPPED]);
    b.good("umount m");
    if !out.status.success() {
        println!("SKIPPED: {}", text(&out.stderr));
        return;
    }
    // EINVAL: it needs FUSE_ALLOW_IDMAP, with which requests would no longer say who asks.
    assert_eq!(text(&out.stdout), format!("errno {}", Errno::INVAL.raw_os_error()));
}

#[test]
fn the_log_has_no_line_about_what_is_not_there() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.good("mount disk.img m --log log -o debug,acl,lazytime");
    fs::write(b.at().join("f"), "x").unwrap();
    let wait = "open(F, '<', 'm/f'); my $r = ''; vec($r, fileno(F), 1) = 1; select($r, undef, \
                undef, 1) == 1 or die; print <F>";
    assert_eq!(text(&b.command("perl", &["-e", wait]).stdout), "x");
    // FIFREEZE.
    assert!(b.ioctl("m", 0xc004_5877, "'l', 0").is_err());
    b.good("umount m");
    let log = fs::read_to_string(b.path("log")).unwrap();
    assert!(!log.contains("Not Implemented"), "{log}");
    let logged = log.matches("mount options that change nothing: acl,lazytime").count();
    assert_eq!(logged, 1, "{log}");
}

/// Of the journal that it leaves alone nothing is in force, and a remount may say it again.
#[test]
fn noload_shows_nothing_of_the_journal() {
    let Some(b) = Bench::with_image("32m") else { return };
    b.bad("mount disk.img m -o ro,noload,data=ordered", 2);
    b.good("mount disk.img m -o ro,noload,commit=9");
    let status = b.status();
    let words = status["options_in_force"].as_array().unwrap();
    assert!(words.contains(&"noload".into()) && words.contains(&"ro".into()), "{status}");
    let of_journal = |word: &str| word.starts_with("data=") || word.starts_with("commit=");
    assert!(!words.iter().any(|word| of_journal(word.as_str().unwrap())), "{status}");
    assert!(status["data"].is_null(), "{status}");
    let shown = b.good("status m");
    assert!(shown.contains("left alone (noload)") && !shown.contains("ordered"), "{shown}");
    b.good("mount m -o remount,ro,noatime,commit=9");
    b.bad("mount m -o remount,ro,commit=5", 2);
    b.good("umount m");
}
