//! Nothing waits for a device that it does not need: on a slow device, in virtual time, which
//! proves what overlaps; and with real threads.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, Request};
use steadfast_devices::source::Ram;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_ext4_mkfs::{Options, make};
use steadfast_runtime::{Sim, now, sleep, spawn};
use steadfast_vfs::{FileSystem, Ino, NewNode, OpenFlags, RenameFlags};

const RW: OpenFlags = OpenFlags::READ.union(OpenFlags::WRITE);
/// How long the device takes for a read.
const READ: Duration = Duration::from_millis(20);

/// How long it takes for a write where commits are to take their time.
const WRITE: Duration = Duration::from_millis(2);

/// A device of which every read takes its time, and every write if there is one for it: any number
/// of them at once.
struct Slow(Ram, Option<Duration>);

impl BlockDevice for Slow {
    fn info(&self) -> DeviceInfo {
        self.0.info()
    }

    fn submit(&self, request: Request) -> Completion {
        let takes = match request {
            Request::Read { .. } => Some(READ),
            Request::Write { .. } => self.1,
            Request::Flush | Request::Discard { .. } => None,
        };
        let Some(takes) = takes else { return self.0.submit(request) };
        let (completer, completion) = Completion::pending();
        let ram = self.0.clone();
        spawn("slow request", move || {
            sleep(takes);
            completer.complete(ram.submit(request).wait());
        });
        completion
    }
}

const FILES: u64 = 4;

/// Files that have contents, in folders of their own, with nothing in memory.
fn mounted_cold() -> Arc<Ext4> {
    mounted_cold_with(None)
}

/// The same on a device whose writes take so long.
fn mounted_cold_with(write: Option<Duration>) -> Arc<Ext4> {
    let ram = Ram::new("disk", 64 << 20).persistent();
    let device: Arc<dyn BlockDevice> = Arc::new(ram.clone());
    make(&device, &Options::random(1_700_000_000)).unwrap();
    let fs = Ext4::mount(device, MountOptions::default()).unwrap();
    for i in 0..FILES {
        let name = format!("folder{i}");
        let dir = fs.mkdir(fs.root(), name.as_bytes(), NewNode::default()).unwrap().ino;
        let (_, fh) = fs.create(dir, b"file", NewNode::default(), RW).unwrap();
        fs.write(fh, 0, Bytes::from(vec![i as u8; 40_000])).unwrap();
        fs.release(fh).unwrap();
    }
    fs.unmount().unwrap();
    drop(fs);
    Ext4::mount(Arc::new(Slow(ram, write)), MountOptions::default()).unwrap()
}

fn folder(fs: &Ext4, i: u64) -> Ino {
    fs.lookup(fs.root(), format!("folder{i}").as_bytes()).unwrap().ino
}

/// Runs the tasks and returns how long each took.
fn race(tasks: Vec<Box<dyn FnOnce() + Send>>) -> Vec<Duration> {
    let begun = now();
    let running: Vec<_> = tasks
        .into_iter()
        .map(|task| {
            spawn("racer", move || {
                task();
                now().since(begun)
            })
        })
        .collect();
    running.into_iter().map(|t| t.join().unwrap_or_else(|p| p.resume())).collect()
}

#[test]
fn readers_of_different_files_wait_for_the_device_together() {
    Sim::new(1)
        .run(|| {
            let fs = mounted_cold();
            let handles: Vec<_> = (0..FILES)
                .map(|i| {
                    let file = fs.lookup(folder(&fs, i), b"file").unwrap();
                    fs.open(file.ino, OpenFlags::READ).unwrap()
                })
                .collect();
            let tasks = handles.into_iter().map(|fh| {
                let fs = Arc::clone(&fs);
                Box::new(move || drop(fs.read(fh, 0, 4096).unwrap())) as Box<dyn FnOnce() + Send>
            });
            let took = race(tasks.collect());
            assert!(took.iter().all(|t| *t < READ * 3 / 2), "{took:?}");
        })
        .unwrap();
}

#[test]
fn names_that_are_in_memory_do_not_wait_for_those_that_are_not() {
    Sim::new(2)
        .run(|| {
            let fs = mounted_cold();
            let cached = folder(&fs, 0);
            fs.lookup(cached, b"file").unwrap();
            fs.create(cached, b"0", NewNode::default(), RW).unwrap();
            let (a, b, c) = (Arc::clone(&fs), Arc::clone(&fs), Arc::clone(&fs));
            let took = race(vec![
                Box::new(move || assert!(a.lookup(folder(&a, 1), b"file").is_ok())),
                Box::new(move || {
                    sleep(Duration::from_millis(1));
                    for _ in 0..100 {
                        b.lookup(cached, b"file").unwrap();
                    }
                }),
                Box::new(move || {
                    sleep(Duration::from_millis(1));
                    for i in 0..10 {
                        let (from, to) = (i.to_string(), (i + 1).to_string());
                        let (from, to) = (from.as_bytes(), to.as_bytes());
                        c.rename((cached, from), (cached, to), RenameFlags::empty()).unwrap();
                    }
                }),
            ]);
            assert!(took[0] >= READ, "the device was needed: {took:?}");
            assert!(took[1] < READ / 2 && took[2] < READ / 2, "{took:?}");
        })
        .unwrap();
}

#[test]
fn two_that_miss_the_same_block_read_it_once() {
    Sim::new(3)
        .run(|| {
            let fs = mounted_cold();
            let dir = folder(&fs, 2);
            let tasks = (0..8).map(|_| {
                let fs = Arc::clone(&fs);
                Box::new(move || assert!(fs.lookup(dir, b"file").is_ok()))
                    as Box<dyn FnOnce() + Send>
            });
            let took = race(tasks.collect());
            // The folder's block, and perhaps the inode's.
            assert!(took.iter().all(|t| *t < READ * 5 / 2), "{took:?}");
        })
        .unwrap();
}

#[test]
fn a_reader_does_not_wait_for_a_writer_of_another_file() {
    Sim::new(4)
        .run(|| {
            let fs = mounted_cold();
            let open = |i| {
                let file = fs.lookup(folder(&fs, i), b"file").unwrap();
                fs.open(file.ino, RW).unwrap()
            };
            let (reader, writer) = (open(0), open(1));
            fs.read(reader, 0, 4096).unwrap();
            let (a, b) = (Arc::clone(&fs), Arc::clone(&fs));
            let took = race(vec![
                // Part of a page: it must be read first.
                Box::new(move || {
                    a.write(writer, 30_000, Bytes::from_static(b"part")).unwrap();
                    a.fsync(writer, false).unwrap();
                }),
                Box::new(move || {
                    for _ in 0..100 {
                        b.read(reader, 100, 4000).unwrap();
                    }
                }),
            ]);
            assert!(took[0] >= READ && took[1] < READ / 2, "{took:?}");
        })
        .unwrap();
}

fn share_commits(fs: &Arc<Ext4>) {
    const TASKS: u64 = 8;
    const EACH: u64 = 20;
    let before = fs.journal().unwrap().stats().commits;
    let tasks = (0..TASKS).map(|i| {
        let fs = Arc::clone(fs);
        Box::new(move || {
            let name = format!("synced{i}");
            let (_, fh) = fs.create(fs.root(), name.as_bytes(), NewNode::default(), RW).unwrap();
            for n in 0..EACH {
                fs.write(fh, n * 4096, Bytes::from(vec![7; 4096])).unwrap();
                fs.fsync(fh, false).unwrap();
            }
            fs.release(fh).unwrap();
        }) as Box<dyn FnOnce() + Send>
    });
    race(tasks.collect());
    let commits = fs.journal().unwrap().stats().commits - before;
    assert!(commits < TASKS * EACH * 3 / 4, "{commits} commits for {} fsyncs", TASKS * EACH);
}

#[test]
fn fsyncs_of_several_tasks_share_commits() {
    Sim::new(5).run(|| share_commits(&mounted_cold())).unwrap();
}

#[test]
fn threads_overlap_and_share_commits_too() {
    let fs = mounted_cold();
    let cached = folder(&fs, 0);
    fs.lookup(cached, b"file").unwrap();
    let dir = folder(&fs, 1);
    let (a, b) = (Arc::clone(&fs), Arc::clone(&fs));
    let took = race(vec![
        Box::new(move || assert!(a.lookup(dir, b"file").is_ok())),
        Box::new(move || {
            for _ in 0..10 {
                b.lookup(cached, b"file").unwrap();
            }
        }),
    ]);
    assert!(took[1] < took[0], "{took:?}");
    fs.unmount().unwrap();
    // A commit that takes no time leaves nobody the time to join the next one.
    let fs = mounted_cold_with(Some(WRITE));
    share_commits(&fs);
    fs.unmount().unwrap();
}
