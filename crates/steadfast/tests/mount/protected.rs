//! Files that become immutable or append-only while they are open for writing: as with the kernel's
//! ext4, also where the kernel keeps what is written (`-o writeback_cache`, memory maps).

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{IFlags, ioctl_getflags, ioctl_setflags};
use rustix::io::Errno;

use super::bench::{Bench, text, until};

const OPTIONS: [&str; 4] =
    ["threads=1", "threads=1,writeback_cache", "data=journal,writeback_cache", "data=transact"];

/// With each options, a mount of a new image. Afterwards e2fsck has nothing to say.
fn each_mount(work: impl Fn(&Bench, &str)) {
    for options in OPTIONS {
        let Some(b) = Bench::with_image("32m") else { return };
        b.good(&format!("mount disk.img m -o {options}"));
        work(&b, options);
        b.good("umount m");
        b.e2fsck_is_clean("disk.img");
    }
}

/// A file of ten bytes, open for reading and writing, with a write that was not synced.
fn written(b: &Bench, name: &str) -> File {
    let path = b.at().join(name);
    let file = File::create_new(path).unwrap();
    file.write_all_at(b"0123456789", 0).unwrap();
    file.sync_all().unwrap();
    file.write_all_at(b"A", 0).unwrap();
    file
}

fn change_flags(path: &Path, change: impl Fn(IFlags) -> IFlags) {
    let file = File::open(path).unwrap();
    ioctl_setflags(&file, change(ioctl_getflags(&file).unwrap())).unwrap();
}

fn is_refused<T: std::fmt::Debug>(done: std::io::Result<T>) -> bool {
    done.is_err_and(|e| e.raw_os_error() == Some(Errno::PERM.raw_os_error()))
}

/// What a new mount finds.
fn contents_after_a_remount(b: &Bench, options: &str, name: &str) -> String {
    b.good("umount m");
    b.good(&format!("mount disk.img m -o {options}"));
    fs::read_to_string(b.at().join(name)).unwrap()
}

#[test]
fn who_had_it_open_before_writes_to_no_immutable_file() {
    each_mount(|b, options| {
        let path = b.at().join("file");
        let mut file = written(b, "file");
        change_flags(&path, |flags| flags | IFlags::IMMUTABLE);
        // What makes the kernel ask for attributes must not make it forget to ask.
        let looks: [(&str, &dyn Fn()); 4] = [
            ("nothing", &|| {}),
            ("stat", &|| assert_eq!(fs::metadata(&path).unwrap().len(), 10)),
            ("fstat", &|| assert_eq!(file.metadata().unwrap().len(), 10)),
            ("ls", &|| assert!(b.command("ls", &["-l", "m"]).status.success())),
        ];
        for (before, look) in looks {
            for at in [1, 10, 5000] {
                look();
                assert!(is_refused(file.write_at(b"X", at)), "{options}: at {at} after {before}");
            }
        }
        assert!(is_refused(rustix::fs::fchown(&file, None, None).map_err(Into::into)), "{options}");
        assert!(is_refused(file.write_at(b"X", 1)), "{options}: after fchown");
        assert!(is_refused(file.set_len(5)), "{options}");
        // Reading through it goes on, up to the end.
        assert_eq!(file.seek(SeekFrom::End(0)).unwrap(), 10, "{options}");
        let mut read = [0; 20];
        assert_eq!(file.read_at(&mut read, 0).unwrap(), 10, "{options}");
        assert_eq!(file.read_at(&mut read, 10).unwrap(), 0, "{options}");
        // All that was written was allowed.
        file.sync_all().unwrap();
        drop(file);
        assert_eq!(contents_after_a_remount(b, options, "file"), "A123456789", "{options}");

        change_flags(&path, |flags| flags - IFlags::IMMUTABLE);
        let file = OpenOptions::new().write(true).open(&path).unwrap();
        change_flags(&path, |flags| flags | IFlags::IMMUTABLE);
        assert!(is_refused(file.write_at(b"X", 1)), "{options}");
        change_flags(&path, |flags| flags - IFlags::IMMUTABLE);
        file.write_all_at(b"B", 1).unwrap();
        file.sync_all().unwrap();
        drop(file);
        assert_eq!(contents_after_a_remount(b, options, "file"), "AB23456789", "{options}");
    });
}

/// With the kernel's ext4 a store to such a map kills the process; here msync says it.
#[test]
fn a_map_from_before_changes_no_immutable_file() {
    each_mount(|b, options| {
        drop(written(b, "file"));
        let xfs_io = |steps: &[&str]| {
            let words: Vec<&str> = steps.iter().flat_map(|step| ["-c", *step]).collect();
            b.command("xfs_io", &[&words[..], &["m/file"]].concat())
        };
        let out = xfs_io(&[
            "mmap -rw 0 10",
            "mwrite -S 0x4d 5 1",
            "pwrite -q -S 0x57 1 1",
            // By FS_IOC_FSSETXATTR.
            "chattr +i",
            "pwrite -q -S 0x58 2 1",
            "fsync",
            "mwrite -S 0x59 3 1",
            "msync -s",
        ]);
        let said = text(&out.stderr);
        let refused =
            |call: &str| said.matches(&format!("{call}: Operation not permitted")).count();
        assert_eq!((refused("pwrite"), refused("fsync"), refused("msync")), (1, 0, 1), "{said}");
        // What the kernel shows of it, and what is there.
        let wanted = "AW234M6789";
        until("the kernel forgets the page", || {
            fs::read_to_string(b.at().join("file")).unwrap() == wanted
        });
        assert_eq!(contents_after_a_remount(b, options, "file"), wanted, "{options}");
        assert!(b.command("chattr", &["-i", "m/file"]).status.success());
    });
}

/// Append-only is looked at when a file is opened: who has it open already writes anywhere. Who
/// opens it now appends, and a map of his changes nothing that is there.
#[test]
fn who_had_it_open_before_overwrites_an_append_only_file() {
    each_mount(|b, options| {
        let path = b.at().join("file");
        let file = written(b, "file");
        change_flags(&path, |flags| flags | IFlags::APPEND);
        assert!(is_refused(OpenOptions::new().write(true).open(&path)), "{options}");
        file.write_all_at(b"B", 1).unwrap();
        // Through whichever handle the kernel sends a page.
        let mut log = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all_at(b"C", 2).unwrap();
        log.write_all(b"end").unwrap();
        file.write_all_at(b"D", 3).unwrap();
        log.sync_all().unwrap();
        file.sync_all().unwrap();
        drop(file);
        log.write_all(b"!").unwrap();
        log.sync_all().unwrap();
        drop(log);
        let wanted = "ABCD456789end!";
        assert_eq!(contents_after_a_remount(b, options, "file"), wanted, "{options}");
        change_flags(&path, |flags| flags - IFlags::APPEND);
    });
}

/// The power goes after the flag was set and the file was synced, and after something more was
/// refused: what was written before is there, and nothing else.
#[test]
fn what_was_refused_is_not_there_after_a_power_cut() {
    for options in OPTIONS {
        let Some(b) = Bench::with_image("32m") else { return };
        b.good(&format!("mount disk.img m -o {options}"));
        let path = b.at().join("file");
        let file = written(&b, "file");
        change_flags(&path, |flags| flags | IFlags::IMMUTABLE);
        assert!(is_refused(file.write_at(b"X", 1)), "{options}");
        file.sync_all().unwrap();
        assert!(is_refused(file.write_at(b"X", 20)), "{options}");
        // What has not been written out stays where it is.
        b.shut_down(2);
        drop(file);
        b.run("umount m");
        b.good(&format!("mount disk.img m -o {options}"));
        assert_eq!(fs::read_to_string(&path).unwrap(), "A123456789", "{options}");
        assert!(is_refused(OpenOptions::new().write(true).open(&path)), "{options}");
        change_flags(&path, |flags| flags - IFlags::IMMUTABLE);
        b.good("umount m");
        b.e2fsck_is_clean("disk.img");
    }
}

/// Writes to a file, and shuts the mount down while it has it open: a close(2), also of a process
/// that is started meanwhile, would have the kernel write out what it has kept.
const WRITE_AND_CUT: &str = "sysopen(F, 'm/file', 2) or die; \
                             sysseek(F, 1, 0); syswrite(F, 'B') or die; \
                             sysseek(F, 0, 2); syswrite(F, 'end') or die; \
                             my $a = pack('L', 2); sysopen(D, 'm', 0) or die; \
                             defined(ioctl(D, 0x4004587d, $a)) or die";

/// chattr +S: what a write(2) wrote is there after a power cut, also where the kernel keeps writes.
#[test]
fn every_write_to_a_synchronous_file_is_durable() {
    for options in OPTIONS.into_iter().filter(|options| !options.contains("transact")) {
        for is_sync in [true, false] {
            let Some(b) = Bench::with_image("32m") else { return };
            b.good(&format!("mount disk.img m -o {options},commit=300"));
            let path = b.at().join("file");
            written(&b, "file").sync_all().unwrap();
            if is_sync {
                change_flags(&path, |flags| flags | IFlags::SYNC);
            }
            let out = b.command("perl", &["-e", WRITE_AND_CUT]);
            assert!(out.status.success(), "{options}: {}", text(&out.stderr));
            b.run("umount m");
            b.good(&format!("mount disk.img m -o {options}"));
            let wanted = if is_sync { "AB23456789end" } else { "A123456789" };
            assert_eq!(fs::read_to_string(&path).unwrap(), wanted, "{options} {is_sync}");
            b.good("umount m");
            b.e2fsck_is_clean("disk.img");
        }
    }
}
