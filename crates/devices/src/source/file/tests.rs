use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;
use std::process::Command;

use steadfast_block::{Payload, Persistence, conformance, pattern};
use steadfast_runtime::Sim;
use tempfile::TempDir;

use super::*;

fn buffered() -> FileOptions {
    FileOptions { direct: Direct::Never, ..FileOptions::default() }
}

/// Makes devices over new images in one folder.
fn maker(folder: &TempDir, options: FileOptions) -> impl Fn() -> Arc<dyn BlockDevice> + use<> {
    let folder = folder.path().to_owned();
    let next = std::cell::Cell::new(0);
    move || {
        next.set(next.get() + 1);
        let path = folder.join(format!("image{}", next.get()));
        Arc::new(FileDevice::create(path, 8 << 20, &options).unwrap())
    }
}

fn image(folder: &TempDir, size: u64) -> PathBuf {
    let path = folder.path().join("image");
    File::create(&path).unwrap().set_len(size).unwrap();
    path
}

#[test]
fn conforms_in_both_worlds() {
    for options in [FileOptions::default(), buffered()] {
        let folder = tempfile::tempdir().unwrap();
        let make = maker(&folder, options);
        conformance::run(&make);
        Sim::new(1).run(move || conformance::run(&make)).unwrap();
    }
}

#[test]
fn a_file_in_memory_conforms_and_small_requests_are_not_handed_over() {
    let memory = Path::new("/dev/shm");
    let folder = tempfile::tempdir_in(memory).unwrap();
    conformance::run(&maker(&folder, FileOptions::default()));
    let device = FileDevice::create(folder.path().join("y"), 1 << 20, &FileOptions::default());
    let device = device.unwrap();
    assert!(!device.direct() && device.notes().is_empty(), "there is nothing to bypass");
    let device = FileDevice::create(folder.path().join("x"), 1 << 20, &buffered()).unwrap();
    assert!(device.submit(Request::Read { offset: 0, len: AT_ONCE_MAX }).is_done());
    assert!(device.submit(Request::Flush).is_done());
    let data = pattern::bytes(1, 0, 4096);
    let write = Request::Write { offset: 4096, data: data.clone().into(), fua: true };
    assert!(device.submit(write).is_done());
    let long = device.submit(Request::Read { offset: 0, len: 1 << 20 }).wait().unwrap();
    assert_eq!(long.slice(4096..8192), data);
}

#[test]
fn a_read_only_image_conforms_and_is_shared_by_readers() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(&folder, 1 << 20);
    File::options().write(true).open(&path).unwrap().write_all_at(b"kept", 512).unwrap();
    let open = || FileDevice::open(&path, &FileOptions::reading());
    conformance::run(&|| Arc::new(open().unwrap()));
    let (a, b) = (open().unwrap(), open().unwrap());
    assert_eq!(&a.read(512, 512).unwrap()[..4], b"kept");
    a.flush().unwrap();
    let writer = FileDevice::open(&path, &FileOptions::default());
    assert!(matches!(writer, Err(OpenError::Busy { .. })), "{writer:?}");
    drop((a, b));
    assert!(FileDevice::open(&path, &FileOptions::default()).is_ok());
}

#[test]
fn an_image_has_one_writer_and_is_free_once_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(&folder, 1 << 20);
    for round in 0..5 {
        let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
        let second = FileDevice::open(&path, &FileOptions::default());
        let text = second.unwrap_err().to_string();
        assert!(text.ends_with("image: is in use: this process has locked it"), "{text}");
        let data = pattern::bytes(round + 1, 0, 4096);
        let write = Request::Write { offset: 0, data: data.clone().into(), fua: false };
        device.submit(write).wait().unwrap();
        drop(device);
    }
}

#[test]
fn what_is_no_disk_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = FileOptions::default();
    let text = |path: &Path| FileDevice::open(path, &options).unwrap_err().to_string();
    let dir = text(folder.path());
    assert!(dir.ends_with("is a directory, not an image file or a block device"), "{dir}");
    assert!(text(Path::new("/dev/null")).contains("is a character device"));
    let none = text(&folder.path().join("none"));
    assert!(
        none.ends_with("none: cannot open it: No such file or directory (os error 2)"),
        "{none}"
    );
    let small = text(&image(&folder, 511));
    assert!(small.ends_with("is too small for a device: 511 bytes, one block is 512"), "{small}");
}

#[test]
fn a_rest_that_is_no_block_is_not_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(&folder, 65536 + 100);
    let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
    assert_eq!(device.info().size, 65536);
    assert!(!device.direct());
    let notes = device.notes().join("; ");
    assert!(notes.contains("the last 100 bytes are no whole block"), "{notes}");
    assert!(notes.contains("no direct I/O: its size is not a multiple"), "{notes}");
    drop(device);
    let required = FileOptions { direct: Direct::Required, ..FileOptions::default() };
    let refused = FileDevice::open(&path, &required);
    assert!(matches!(refused, Err(OpenError::NoDirect { .. })), "{refused:?}");
}

/// How large a file can be is up to the file system that holds it: some take all that can be asked.
#[test]
fn an_image_too_large_for_its_file_system_is_refused_with_the_limit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    let asked = i64::MAX as u64 / 512 * 512;
    let refused = match FileDevice::create(&path, asked, &FileOptions::default()) {
        Err(OpenError::TooLarge { size, most, .. }) => {
            assert!(size == asked && most < asked);
            most
        }
        other => {
            other.unwrap();
            return;
        }
    };
    assert!(!path.exists());
    let file = std::fs::File::create(&path).unwrap();
    file.set_len(refused).unwrap();
    file.set_len(refused + 512).unwrap_err();
}

#[test]
fn creating_makes_a_sparse_image_and_never_replaces_one() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    let options = FileOptions::default();
    let bad = FileDevice::create(&path, 1000, &options).unwrap_err();
    assert!(matches!(bad, OpenError::BadSize { size: 1000, .. }));
    let device = FileDevice::create(&path, 1 << 40, &options).unwrap();
    assert_eq!(device.info().size, 1 << 40);
    assert!(std::fs::metadata(&path).unwrap().blocks() < 64);
    device.write((1 << 40) - 512, pattern::bytes(1, 0, 512).into()).unwrap();
    drop(device);
    let again = FileDevice::create(&path, 1 << 20, &options).unwrap_err();
    assert!(again.to_string().contains("cannot create it: File exists"), "{again}");
    assert_eq!(std::fs::metadata(&path).unwrap().len(), 1 << 40);
}

#[test]
fn data_is_found_wherever_it_is_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new");
    for options in [FileOptions::default(), buffered()] {
        let device = FileDevice::create(&path, 8 << 40, &options).unwrap();
        assert_eq!(device.first_data().unwrap(), None);
        // Space that holds zeros is as blank as a hole.
        device.write(1 << 30, vec![0; 1 << 20].into()).unwrap();
        assert_eq!(device.first_data().unwrap(), None);
        let mut block = vec![0; 4096];
        block[4095] = 1;
        device.write(5 << 40, block.into()).unwrap();
        assert_eq!(device.first_data().unwrap(), Some((5 << 40) + 4095));
        drop(device);
        std::fs::remove_file(&path).unwrap();
    }
}

#[test]
fn a_discard_gives_space_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(&folder, 8 << 20);
    let device = FileDevice::open(&path, &FileOptions::default()).unwrap();
    device.write(0, pattern::bytes(1, 0, 8 << 20).into()).unwrap();
    device.flush().unwrap();
    let before = std::fs::metadata(&path).unwrap().blocks();
    device.discard(1 << 20, 6 << 20).unwrap();
    assert_eq!(device.read(2 << 20, 4096).unwrap(), vec![0; 4096]);
    assert!(std::fs::metadata(&path).unwrap().blocks() <= before - (5 << 20) / 512);
    assert_eq!(device.read(0, 512).unwrap(), pattern::bytes(1, 0, 512));
}

#[test]
fn an_image_that_is_cut_short_meanwhile_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(&folder, 1 << 20);
    for options in [FileOptions::default(), buffered()] {
        File::options().write(true).open(&path).unwrap().set_len(1 << 20).unwrap();
        let device = FileDevice::open(&path, &options).unwrap();
        File::options().write(true).open(&path).unwrap().set_len(4096).unwrap();
        let error = device.read(0, 8192).unwrap_err();
        assert!(matches!(&error, BlockError::Io { reason, .. } if reason.contains("byte 4096")));
        assert!(device.read(0, 4096).is_ok());
        for fua in [false, true] {
            // It would be as long as before, with zeros in it.
            let data = vec![7; 4096].into();
            let write = Request::Write { offset: (1 << 20) - 4096, data, fua };
            let error = device.execute(write).unwrap_err().to_string();
            assert!(error.contains("its file was cut short: 4096 of 1048576"), "{error}");
        }
        assert_eq!(std::fs::metadata(&path).unwrap().len(), 4096);
        device.flush().unwrap_err();
    }
}

#[test]
fn memory_does_not_claim_to_persist() {
    let folder = tempfile::tempdir_in("/dev/shm").unwrap();
    let device = FileDevice::open(image(&folder, 1 << 20), &FileOptions::default()).unwrap();
    let info = device.info();
    assert!(matches!(info.persistence, Persistence::Volatile { .. }), "{info:?}");
    assert!(info.volatile_cache);
}

/// A loop device; detached when dropped.
struct Loop(PathBuf);

impl Loop {
    /// `None` where loop devices cannot be made: not root, or no loop driver.
    fn attach(image: &Path, options: &[&str]) -> Option<Loop> {
        let out = Command::new("losetup").args(["-f", "--show"]).args(options).arg(image).output();
        let out = out.ok().filter(|out| out.status.success())?;
        Some(Loop(PathBuf::from(String::from_utf8(out.stdout).unwrap().trim())))
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

#[test]
fn a_block_device_that_takes_no_writes_is_not_opened_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let Some(device) = Loop::attach(&image(&folder, 1 << 20), &["-r"]) else { return };
    let error = FileDevice::open(&device.0, &FileOptions::default()).unwrap_err().to_string();
    assert!(error.contains("writing: Read-only file system"), "{error}");
    FileDevice::open(&device.0, &FileOptions::reading()).unwrap().read(0, 512).unwrap();
}

#[test]
fn a_block_device_conforms_and_is_exclusive() {
    let folder = tempfile::tempdir().unwrap();
    for (sector, block) in [("512", 512), ("4096", 4096)] {
        let path = image(&folder, 8 << 20);
        let Some(device) = Loop::attach(&path, &["-b", sector]) else { return };
        for options in [FileOptions::default(), buffered()] {
            conformance::run(&|| Arc::new(FileDevice::open(&device.0, &options).unwrap()));
        }
        let open = FileDevice::open(&device.0, &FileOptions::default()).unwrap();
        let info = open.info();
        assert_eq!((info.size, info.logical_block, open.direct()), (8 << 20, block, true));
        let again = FileDevice::open(&device.0, &FileOptions::default());
        assert!(matches!(again, Err(OpenError::Busy { .. })), "{again:?}");
        // The image under it is in use as well.
        let under = || FileDevice::open(&path, &FileOptions::default()).unwrap_err().to_string();
        assert!(under().contains("has locked it"), "{}", under());
        drop(open);
        assert!(under().contains("is attached to /dev/loop"), "{}", under());
        let reader = FileDevice::open(&path, &FileOptions::reading()).unwrap();
        assert!(reader.notes().concat().contains("is attached to"), "{:?}", reader.notes());
    }
}

/// Mounts a folder; unmounts when dropped.
struct Mounted(TempDir);

impl Mounted {
    fn new(kind: &[&str], what: &Path) -> Option<Mounted> {
        let at = tempfile::tempdir().unwrap();
        let done = Command::new("mount").args(kind).arg(what).arg(at.path()).output().ok()?;
        done.status.success().then_some(Mounted(at))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.path()).status();
    }
}

#[test]
fn a_mounted_device_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(&folder, 8 << 20);
    let Some(device) = Loop::attach(&path, &[]) else { return };
    assert!(Command::new("mke2fs").args(["-q", "-F"]).arg(&device.0).status().unwrap().success());
    let Some(mounted) = Mounted::new(&["-t", "ext4"], &device.0) else { return };
    let text = FileDevice::open(&device.0, &FileOptions::default()).unwrap_err().to_string();
    let at = mounted.0.path().display();
    assert!(text.ends_with(&format!("is in use: it is mounted at {at}")), "{text}");
    let shared = FileOptions { exclusive: false, ..FileOptions::reading() };
    assert!(FileDevice::open(&device.0, &shared).is_ok());
}

/// Two writers of one file, each by a way of his own, would take each other's data away.
#[test]
fn a_loop_device_over_a_file_in_use_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(&folder, 8 << 20);
    let file = FileDevice::open(&path, &FileOptions::default()).unwrap();
    let Some(first) = Loop::attach(&path, &[]) else { return };
    let Some(second) = Loop::attach(&path, &[]) else { return };
    let refused = |device: &Loop, options: &FileOptions| {
        let text = FileDevice::open(&device.0, options).unwrap_err().to_string();
        assert!(text.contains("has locked it"), "{text}");
    };
    refused(&first, &FileOptions::default());
    refused(&first, &FileOptions::reading());
    drop(file);
    let open = FileDevice::open(&first.0, &FileOptions::default()).unwrap();
    refused(&second, &FileOptions::default());
    drop(open);
    let _reader = FileDevice::open(&first.0, &FileOptions::reading()).unwrap();
    FileDevice::open(&second.0, &FileOptions::reading()).unwrap();
    refused(&second, &FileOptions::default());
}

/// The kernel does not claim what is below a loop device.
#[test]
fn a_device_below_a_loop_device_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let Some(below) = Loop::attach(&image(&folder, 8 << 20), &[]) else { return };
    let Some(above) = Loop::attach(&below.0, &[]) else { return };
    let text = FileDevice::open(&below.0, &FileOptions::default()).unwrap_err().to_string();
    assert!(text.contains(&format!("attached to {}", above.0.display())), "{text}");
    let reader = FileDevice::open(&below.0, &FileOptions::reading()).unwrap();
    assert!(reader.notes().concat().contains("is attached to"), "{:?}", reader.notes());
    drop((reader, above));
    FileDevice::open(&below.0, &FileOptions::default()).unwrap();
}

#[test]
fn a_failed_flush_is_final() {
    // A loop device over a sparse image in a tmpfs that is too small: writes fit into the page
    // cache and fail when they are written back.
    let Some(full) = Mounted::new(&["-t", "tmpfs", "-o", "size=1m"], Path::new("none")) else {
        return;
    };
    let path = full.0.path().join("image");
    File::create(&path).unwrap().set_len(8 << 20).unwrap();
    let Some(device) = Loop::attach(&path, &[]) else { return };
    let open = FileDevice::open(&device.0, &buffered()).unwrap();
    open.write(0, pattern::bytes(1, 0, 64 * 1024).into()).unwrap();
    open.flush().unwrap();
    open.write(0, pattern::bytes(2, 0, 4 << 20).into()).unwrap();
    let first = open.flush().unwrap_err();
    assert!(matches!(first, BlockError::Io { op: "flush", .. }), "{first}");
    // The kernel would say yes from now on.
    assert_eq!(open.flush(), Err(first.clone()));
    assert_eq!(open.submit(Request::Flush).wait().unwrap_err(), first);
    assert_eq!(open.write_fua(0, pattern::bytes(3, 0, 512).into()), Err(first));
}

/// Flushes that a block device has been asked for: the 16th number of its `stat`, since Linux 5.5.
fn flushes(device: &Loop) -> u64 {
    let name = device.0.file_name().unwrap().to_str().unwrap();
    let stat = std::fs::read_to_string(format!("/sys/block/{name}/stat")).unwrap();
    stat.split_whitespace().nth(15).unwrap().parse().unwrap()
}

/// What a file keeps at a power cut nobody sees here, but a loop device counts what it is asked.
#[test]
fn a_durable_write_flushes_the_device_whoever_asks() {
    let folder = tempfile::tempdir().unwrap();
    let path = image(&folder, 8 << 20);
    let Some(device) = Loop::attach(&path, &[]) else { return };
    for options in [FileOptions::default(), buffered()] {
        let open = FileDevice::open(&device.0, &options).unwrap();
        let data = || -> Payload { pattern::bytes(1, 0, 4096).into() };
        let asks: [(&str, &dyn Fn()); 4] = [
            ("write_fua", &|| open.write_fua(0, data()).unwrap()),
            ("flush", &|| open.flush().unwrap()),
            ("a submitted write", &|| {
                let write = Request::Write { offset: 4096, data: data(), fua: true };
                open.submit(write).wait().unwrap();
            }),
            ("a submitted flush", &|| drop(open.submit(Request::Flush).wait().unwrap())),
        ];
        for (name, ask) in asks {
            // A write before, so that a flush has something to do.
            open.write(8192, data()).unwrap();
            let before = flushes(&device);
            ask();
            assert!(flushes(&device) > before, "{name}, {options:?}");
        }
    }
}

/// pwritev(2) may write less than it was given, and say why only when it is called again.
#[test]
fn a_write_that_is_cut_short_is_an_error() {
    let Some(full) = Mounted::new(&["-t", "tmpfs", "-o", "size=64k"], Path::new("none")) else {
        return;
    };
    let path = full.0.path().join("image");
    File::create(&path).unwrap().set_len(1 << 20).unwrap();
    let open = FileDevice::open(&path, &FileOptions::default()).unwrap();
    let data = || -> Payload { pattern::bytes(1, 0, 256 << 10).into() };
    let waiting = open.write(0, data()).unwrap_err().to_string();
    assert!(waiting.contains("No space left"), "{waiting}");
    let write = Request::Write { offset: 512 << 10, data: data(), fua: false };
    assert!(open.submit(write).wait().is_err());
    assert!(open.write_fua(512 << 10, data()).is_err());
}

/// Who may rename in the folder puts a link where the new image was, before it is opened; and
/// another folder where the path led, before the image is made.
#[test]
fn a_new_image_is_the_file_that_was_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let inode = |open: &dyn std::os::fd::AsFd| rustix::fs::fstat(open).unwrap().st_ino;
    std::fs::create_dir(at("dir")).unwrap();
    std::fs::create_dir(at("roots")).unwrap();
    std::fs::write(at("secret"), vec![7; 1 << 20]).unwrap();
    let found = open::folder_of(&at("dir/image")).unwrap();
    std::fs::rename(at("dir"), at("moved")).unwrap();
    std::os::unix::fs::symlink("roots", at("dir")).unwrap();
    let made = open::create(found, &at("dir/image"), 1 << 20).unwrap();
    std::fs::remove_file(at("moved/image")).unwrap();
    std::os::unix::fs::symlink("../secret", at("moved/image")).unwrap();
    for options in [FileOptions::default(), buffered()] {
        let device = FileDevice::over(&made, &at("dir/image"), &options).unwrap();
        assert_eq!(inode(device.as_file()), inode(&made.file));
        device.write(0, pattern::bytes(1, 0, 4096).into()).unwrap();
    }
    made.remove();
    assert!(at("moved/image").is_symlink());
    assert_eq!(std::fs::read_dir(at("roots")).unwrap().count(), 0);
    assert_eq!(std::fs::read(at("secret")).unwrap(), vec![7; 1 << 20]);
}

/// As it is opened by its path, direct I/O included.
#[test]
fn a_new_image_is_opened_as_an_old_one() {
    // Not in memory.
    let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    let path = folder.path().join("image");
    for direct in [Direct::IfPossible, Direct::Required, Direct::Never] {
        let options = FileOptions { direct, ..FileOptions::default() };
        let new = FileDevice::create(&path, 1 << 20, &options).map(|device| {
            device.write(0, pattern::bytes(1, 0, 8192).into()).unwrap();
            (device.info(), device.direct(), device.notes().to_vec())
        });
        let old = FileDevice::open(&path, &options)
            .map(|device| (device.info(), device.direct(), device.notes().to_vec()));
        match (new, old) {
            (Ok(new), Ok(old)) => assert_eq!(new, old),
            (new, _) => assert!(new.is_err_and(|e| e.to_string().contains("direct"))),
        }
        let _ = std::fs::remove_file(&path);
    }
}
