//! Names that are replaced and removed while others use the files: nobody finds a name missing that
//! is always there, and what somebody has stays usable, as on the kernel's ext4.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use steadfast_devices::source::{FileDevice, FileOptions};
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_fuse::{FuseMount, MountError, Options, Unmounter};
use steadfast_vfs::FileSystem;

/// How images are made and mounted: mke2fs -t, data mode, threads, writeback_cache.
const SETUPS: [(&str, DataMode, usize, bool); 6] = [
    ("ext4", DataMode::Ordered, 16, false),
    ("ext4", DataMode::Writeback, 8, true),
    ("ext4", DataMode::Journal, 4, false),
    ("ext4", DataMode::Transact, 4, false),
    ("ext3", DataMode::Ordered, 2, true),
    ("ext2", DataMode::Ordered, 1, false),
];

/// A program that takes this long never ends.
const LIMIT: Duration = Duration::from_secs(60);

/// A mounted image.
struct Mount {
    folder: tempfile::TempDir,
    fs: Arc<Ext4>,
    unmounter: Unmounter,
    thread: Option<JoinHandle<bool>>,
}

impl Mount {
    fn new((kind, data, threads, writeback_cache): (&str, DataMode, usize, bool)) -> Mount {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("m")).unwrap();
        let image = folder.path().join("image");
        let path = image.to_str().unwrap();
        run("mke2fs", &["-q", "-t", kind, path, "64m"]);
        let device = FileDevice::open(&image, &FileOptions::default()).unwrap();
        let options = MountOptions { data, ..MountOptions::default() };
        let fs = Ext4::mount(Arc::new(device), options).unwrap();
        let options = Options { threads, writeback_cache, ..Options::default() };
        let shared = Arc::clone(&fs) as Arc<dyn FileSystem>;
        let mounted = FuseMount::new(shared, &folder.path().join("m"), &options).unwrap();
        let unmounter = mounted.unmounter();
        let thread = Some(std::thread::spawn(move || mounted.serve().unwrap()));
        Mount { folder, fs, unmounter, thread }
    }

    fn at(&self) -> PathBuf {
        self.folder.path().join("m")
    }

    /// Unmounts; e2fsck has nothing to say.
    fn end(mut self) {
        // A program that another test starts has for a moment what this process has open.
        until("it can be unmounted", || match self.unmounter.unmount() {
            Err(MountError::Busy { .. }) => false,
            done => {
                done.unwrap();
                true
            }
        });
        let thread = self.thread.take().unwrap();
        until("serving has ended", || thread.is_finished());
        assert!(thread.join().unwrap());
        assert_eq!(self.fs.read_only_because(), None);
        self.fs.unmount().unwrap();
        run("e2fsck", &["-fn", self.folder.path().join("image").to_str().unwrap()]);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.unmounter.unmount_lazily();
        }
    }
}

fn run(program: &str, arguments: &[&str]) {
    let ran = steadfast_suite::run(LIMIT, Command::new(program).args(arguments));
    let (status, said) = ran.unwrap();
    assert!(status.success(), "{program} {arguments:?}: {status}: {said}");
}

fn until(what: &str, done: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < end, "{} s, and not yet: {what}", LIMIT.as_secs());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn each_setup(work: impl Fn(&Path, &str)) {
    if !rustix::process::geteuid().is_root() || File::open("/dev/fuse").is_err() {
        println!("SKIPPED: needs root and /dev/fuse");
        return;
    }
    for setup in SETUPS {
        let mount = Mount::new(setup);
        work(&mount.at(), &format!("{setup:?}"));
        mount.end();
    }
}

const REPLACEMENTS: u32 = 150;

fn put(path: &Path, text: &str, mode: u32) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// Replaces a file, a program and a symbolic link, again and again.
fn replace_all(at: &Path) {
    for i in 0..REPLACEMENTS {
        put(&at.join("new"), &format!("version {i}"), 0o644);
        fs::rename(at.join("new"), at.join("file")).unwrap();
        put(&at.join("new"), "#!/bin/sh\nexit 0\n", 0o755);
        fs::rename(at.join("new"), at.join("program")).unwrap();
        symlink(if i % 2 == 0 { "one" } else { "two" }, at.join("new")).unwrap();
        fs::rename(at.join("new"), at.join("link")).unwrap();
    }
}

/// What everybody may do with names that are always there.
fn use_all(at: &Path) {
    let path = at.join("file");
    let mut read = String::new();
    File::open(&path).unwrap().read_to_string(&mut read).unwrap();
    // The test itself may have cut the file, and made it longer.
    let text = read.trim_start_matches('\0');
    assert!(text.is_empty() || text.starts_with("version"), "{read:?}");
    fs::metadata(&path).unwrap();
    fs::set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
    let times = Timestamps { last_access: now, last_modification: now };
    rustix::fs::utimensat(CWD, &path, &times, AtFlags::empty()).unwrap();
    rustix::fs::access(&path, rustix::fs::Access::READ_OK).unwrap();
    let mut names = [0; 256];
    rustix::fs::listxattr(&path, &mut names[..]).unwrap();
    rustix::fs::setxattr(&path, "user.a", b"value", rustix::fs::XattrFlags::empty()).unwrap();
    // It may have been replaced between the two.
    let got = rustix::fs::getxattr(&path, "user.a", &mut names[..]);
    assert!(matches!(got, Ok(5) | Err(Errno::NODATA)), "{got:?}");
    drop(OpenOptions::new().write(true).truncate(true).open(&path).unwrap());
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    file.set_len(100).unwrap();
    file.sync_all().unwrap();
    let to = fs::read_link(at.join("link")).unwrap();
    assert!(to == Path::new("one") || to == Path::new("two"), "{to:?}");
    File::open(at.join("link/inside")).unwrap();
    match Command::new(at.join("program")).status() {
        Ok(status) => assert!(status.success(), "{status}"),
        // A process that was started meanwhile has, for a moment, what the other thread writes to.
        Err(e) => assert_eq!(e.kind(), std::io::ErrorKind::ExecutableFileBusy, "{e}"),
    }
}

#[test]
fn a_name_that_is_replaced_is_never_missing() {
    each_setup(|at, options| {
        for dir in ["one", "two"] {
            fs::create_dir(at.join(dir)).unwrap();
            fs::write(at.join(dir).join("inside"), dir).unwrap();
        }
        put(&at.join("file"), "version", 0o644);
        put(&at.join("program"), "#!/bin/sh\nexit 0\n", 0o755);
        symlink("one", at.join("link")).unwrap();
        let done = AtomicBool::new(false);
        let used = std::thread::scope(|scope| {
            scope.spawn(|| {
                replace_all(at);
                done.store(true, Ordering::Release);
            });
            let mut used = 0;
            while !done.load(Ordering::Acquire) {
                use_all(at);
                used += 1;
            }
            used
        });
        assert!(used > 3, "{options}: {used}");
    });
}

/// Opens what a descriptor leads to once more.
fn again(of: &impl AsRawFd) -> std::io::Result<String> {
    fs::read_to_string(format!("/proc/self/fd/{}", of.as_raw_fd()))
}

fn place(path: &Path) -> OwnedFd {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::open(path, flags, Mode::empty()).unwrap()
}

#[test]
fn a_place_leads_to_its_file_after_the_name_has_gone() {
    each_setup(|at, options| {
        for name in ["unlinked", "replaced", "open", "program"] {
            put(&at.join(name), "#!/bin/sh\necho ran\n", 0o755);
        }
        let places = ["unlinked", "replaced", "open"].map(|name| place(&at.join(name)));
        let program = place(&at.join("program"));
        let open = File::open(at.join("open")).unwrap();
        symlink("where it leads", at.join("link")).unwrap();
        let link = place(&at.join("link"));
        for name in ["unlinked", "open", "program", "link"] {
            fs::remove_file(at.join(name)).unwrap();
        }
        put(&at.join("over"), "another file", 0o644);
        fs::rename(at.join("over"), at.join("replaced")).unwrap();
        for i in 0..50 {
            fs::write(at.join(format!("other{i}")), "other").unwrap();
        }
        for of in places.iter().chain([&program]) {
            assert_eq!(again(of).unwrap(), "#!/bin/sh\necho ran\n", "{options}");
            let stat = rustix::fs::fstat(of).unwrap();
            assert_eq!((stat.st_nlink, stat.st_size), (0, 19), "{options}");
        }
        drop(open);
        assert_eq!(again(&places[2]).unwrap(), "#!/bin/sh\necho ran\n", "{options}");
        let linked = rustix::fs::linkat(&places[0], "", CWD, at.join("back"), AtFlags::EMPTY_PATH);
        assert_eq!(linked, Err(Errno::NOENT), "{options}");
        let to = rustix::fs::readlinkat(&link, "", Vec::new()).unwrap();
        assert_eq!(to.to_bytes(), b"where it leads", "{options}");
        let number = program.as_raw_fd();
        let mut run = Command::new("/bin/sh");
        run.arg(format!("/proc/{}/fd/{number}", std::process::id()));
        let ran = run.output().unwrap();
        assert_eq!(ran.stdout, b"ran\n", "{options}: {ran:?}");
    });
}

#[test]
fn what_was_removed_is_free_as_soon_as_nobody_has_it() {
    each_setup(|at, options| {
        fs::create_dir(at.join("dir")).unwrap();
        let free = || {
            let file = File::open(at).unwrap();
            rustix::fs::syncfs(&file).unwrap();
            let space = rustix::fs::statvfs(at).unwrap();
            (space.f_bfree, space.f_ffree)
        };
        let before = free();
        // A process stands in a folder that goes.
        fs::create_dir(at.join("folder")).unwrap();
        let mut inside = Command::new("cat");
        inside.current_dir(at.join("folder"));
        let mut inside = inside.stdin(Stdio::piped()).spawn().unwrap();
        fs::remove_dir(at.join("folder")).unwrap();
        for round in 0..3 {
            for i in 0..40 {
                fs::write(at.join(format!("dir/{i}")), vec![round; 5000]).unwrap();
            }
            for i in 0..40 {
                fs::remove_file(at.join(format!("dir/{i}"))).unwrap();
            }
            // Also with writeback_cache: of files that are gone the kernel keeps nothing to write.
            // The kernel forgets them when it comes to it.
            until(&format!("{options}: inodes are free"), || free().1 == before.1 - 1);
        }
        drop(inside.stdin.take());
        assert!(inside.wait().unwrap().success());
        until("the folder is free", || free() == before);
    });
}
