//! What is refused, and that it says the way out and changes nothing.

use std::sync::Arc;

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_ext4::{DataMode, Ext4, MountOptions};
use steadfast_ext4_mkfs::{JournalChoice, JournalDeviceOptions, Options};
use steadfast_ext4_mkfs::{make, make_journal_device};
use steadfast_vfs::{FileSystem, FileType, FsError, Ino, NewNode, RenameFlags, SetAttr};

use crate::image::Image;
use crate::open;

const TIME: u64 = 1_700_000_000;

fn card() -> Arc<dyn BlockDevice> {
    let card: Arc<dyn BlockDevice> = Arc::new(Ram::new("card", 8 << 20).persistent());
    make_journal_device(&card, &JournalDeviceOptions::random(TIME)).unwrap();
    card
}

fn fs_on(card: &Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 32 << 20).persistent());
    let mut options = Options::random(TIME);
    options.block_size = Some(4096);
    options.journal = JournalChoice::External { device: card.clone(), accept_volatile: true };
    make(&disk, &options).unwrap();
    disk
}

fn refusal(disk: &Arc<dyn BlockDevice>, options: MountOptions) -> String {
    let before = disk.read(0, disk.info().size).unwrap();
    let error = Ext4::mount(disk.clone(), options).map(drop).unwrap_err();
    assert!(before == disk.read(0, disk.info().size).unwrap(), "something was written");
    error.to_string()
}

fn with_journal(journal: Arc<dyn BlockDevice>) -> MountOptions {
    MountOptions { journal_device: Some(journal), ..MountOptions::default() }
}

fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }
}

#[test]
fn journals_that_are_missing_wrong_or_unfit() {
    let (right, wrong) = (card(), card());
    let disk = fs_on(&right);
    let text = refusal(&disk, MountOptions::default());
    assert_says(&text, &["on another device", "noload"]);
    let text = refusal(&disk, with_journal(wrong.clone()));
    assert_says(&text, &["UUID"]);
    let _other = fs_on(&wrong);
    let text = refusal(&disk, with_journal(wrong));
    assert_says(&text, &["UUID"]);
    let contents = right.read(0, right.info().size).unwrap();
    let volatile: Arc<dyn BlockDevice> = Arc::new(Ram::new("ramdisk", 8 << 20));
    volatile.write(0, contents.into()).unwrap();
    let text = refusal(&disk, with_journal(volatile.clone()));
    assert_says(&text, &["ramdisk", "loses its contents", "accept-volatile"]);
    let mut options = with_journal(volatile);
    options.journal.accept_volatile = true;
    Ext4::mount(disk, options).unwrap().unmount().unwrap();
}

#[test]
fn options_that_contradict() {
    let disk = fs_on(&card());
    let mut options = MountOptions::default();
    options.journal.async_commit = true;
    let text = refusal(&disk, options.clone());
    assert_says(&text, &["data=ordered", "data=writeback"]);
    options = MountOptions { no_load: true, ..MountOptions::default() };
    assert_says(&refusal(&disk, options), &["noload", "ro"]);
    let image = Image::mke2fs(16 << 20, &[]);
    let text = refusal(&open(&image), with_journal(card()));
    assert_says(&text, &["inside", "do not give a journal device"]);
}

/// As the kernel does: what is about the journal is refused where none is used, `noload` is not.
#[test]
fn options_about_a_journal_that_is_not_used() {
    let none = Image::mke2fs(16 << 20, &["-O", "^has_journal"]);
    let no_load = MountOptions { no_load: true, ..MountOptions::default() };
    let fs = Ext4::mount(open(&none), no_load.clone()).unwrap();
    crate::create(&*fs, "file", crate::RW);
    fs.unmount().unwrap();
    drop(fs);
    none.assert_clean();
    let given = |text: &str| MountOptions { data_given: Some(text.into()), ..no_load.clone() };
    let text = refusal(&open(&none), given("data=ordered"));
    assert_says(&text, &["data=ordered", "this one has none"]);
    let image = Image::mke2fs(16 << 20, &[]);
    let read_only = MountOptions { read_only: true, ..given("data=ordered") };
    assert_says(&refusal(&open(&image), read_only), &["data=ordered", "noload"]);
}

#[test]
fn features_by_name() {
    let image = Image::mke2fs(16 << 20, &["-O", "casefold,encrypt"]);
    let text = refusal(&open(&image), MountOptions::default());
    assert_says(&text, &["casefold together with encrypt"]);
}

#[test]
fn what_is_no_file_system() {
    let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 1 << 20));
    assert_says(&refusal(&disk, MountOptions::default()), &["no ext2/3/4", "zeros"]);
    let tiny: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 1024));
    assert_says(&refusal(&tiny, MountOptions::default()), &["only 1024 bytes"]);
    let journal = card();
    assert_says(&refusal(&journal, MountOptions::default()), &["journal device"]);
    let image = Image::mke2fs(16 << 20, &[]);
    std::fs::File::options().write(true).open(image.path()).unwrap().set_len(8 << 20).unwrap();
    assert!(!refusal(&open(&image), MountOptions::default()).is_empty());
}

#[test]
fn a_lost_journal_can_be_done_without_for_reading() {
    let card = card();
    let disk = fs_on(&card);
    let options = MountOptions { data: DataMode::Ordered, ..with_journal(card) };
    let fs = Ext4::mount(disk.clone(), options).unwrap();
    drop(fs);
    let options = MountOptions { read_only: true, no_load: true, ..MountOptions::default() };
    Ext4::mount(disk, options).unwrap();
}

fn names_below_it_are_no_damage(fs: &Ext4, dir: Ino) {
    let file = crate::create(fs, "file", crate::RW).0.ino;
    let (root, node) = (fs.root(), NewNode::default());
    let none = RenameFlags::empty();
    for (what, done) in [
        ("lookup", fs.lookup(dir, b"name").map(drop)),
        ("readdir", fs.readdir(dir, 0).map(drop)),
        ("readdir_block", fs.readdir_block(dir, 0).map(drop)),
        ("create", fs.create(dir, b"name", node, crate::RW).map(drop)),
        ("tmpfile", fs.tmpfile(dir, node, crate::RW).map(drop)),
        ("mkdir", fs.mkdir(dir, b"name", node).map(drop)),
        ("mknod", fs.mknod(dir, b"name", (FileType::Fifo, 0), node).map(drop)),
        ("symlink", fs.symlink(dir, b"name", b"target", node).map(drop)),
        ("readlink", fs.readlink(dir).map(drop)),
        ("link there", fs.link(file, dir, b"name").map(drop)),
        ("link of it", fs.link(dir, root, b"name").map(drop)),
        ("unlink", fs.unlink(dir, b"name")),
        ("rmdir", fs.rmdir(dir, b"name")),
        ("rename from", fs.rename((dir, b"name"), (root, b"name"), none)),
        ("rename to", fs.rename((root, b"file"), (dir, b"name"), none)),
        ("setattr", fs.setattr(dir, SetAttr { mode: Some(0), ..SetAttr::default() }).map(drop)),
    ] {
        assert_eq!(done, Err(FsError::NotFound), "{what}");
    }
    assert_eq!(fs.read_only_because(), None);
}

#[test]
fn a_number_that_was_never_used_is_no_damage() {
    let disk: Arc<dyn BlockDevice> = Arc::new(Ram::new("disk", 32 << 20));
    make(&disk, &Options::random(TIME)).unwrap();
    let fs = Ext4::mount(disk, MountOptions::default()).unwrap();
    for number in [500, 4000] {
        assert_eq!(fs.getattr(Ino(number)), Err(FsError::NotFound));
    }
    names_below_it_are_no_damage(&fs, Ino(500));
    assert_eq!(fs.read_only_because(), None);
    fs.unmount().unwrap();
}
