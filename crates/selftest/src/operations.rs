//! How long the operations of a file system take, one after the other by one task: names,
//! attributes, small durable writes.
//!
//! The same calls on every [`FileSystem`]: on the host's (`HostFs`, each a system call) and on one
//! in this process. Rows come in a fixed order, and each is timed as a whole.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use bytes::Bytes;
use steadfast_bench::cpu_used;
use steadfast_runtime::now;
use steadfast_vfs::{FileSystem, Ino, NewNode, OpenFlags, RenameFlags, Result};

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amounts {
    /// Files that are made, looked at, renamed and removed.
    pub files: u32,
    /// Small writes, each made durable.
    pub durable_writes: u32,
}

/// One kind of operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What was done.
    pub name: &'static str,
    /// How many times.
    pub count: u32,
    /// In all this time.
    pub took: Duration,
    /// Processor time of this process meanwhile, the kernel's on its behalf with it: less than the
    /// time if something was waited for, and what counts on a busy machine. What other processes
    /// and the kernel's own threads did is not in it. `None` where the host does not say, and where
    /// it is less than a step of its clock.
    pub cpu: Option<Duration>,
}

impl Row {
    /// Nanoseconds an operation.
    pub fn nanos_each(&self) -> u64 {
        self.each(self.took)
    }

    /// Nanoseconds of processor time an operation.
    pub fn cpu_nanos_each(&self) -> Option<u64> {
        self.cpu.map(|cpu| self.each(cpu))
    }

    fn each(&self, all: Duration) -> u64 {
        u64::try_from(all.as_nanos() / u128::from(self.count.max(1))).unwrap_or(u64::MAX)
    }
}

/// The least by which [`cpu_used`] grows at a time; what is not more is not measured. Some hosts
/// count in ticks of milliseconds, and still say that they count nanoseconds.
pub(crate) fn cpu_step() -> Duration {
    static STEP: OnceLock<Duration> = OnceLock::new();
    *STEP.get_or_init(|| {
        let begun = Instant::now();
        let (mut least, mut before) = (LOOK_FOR, cpu_used());
        for _ in 0..STEPS {
            while cpu_used() == before && begun.elapsed() < LOOK_FOR {}
            let after = cpu_used();
            let step = after.zip(before).map(|(after, before)| after.saturating_sub(before));
            least = step.filter(|step| !step.is_zero()).map_or(least, |step| step.min(least));
            before = after;
        }
        least
    })
}

/// Steps of the clock that are looked at, and for how long at most.
const STEPS: u32 = 20;
const LOOK_FOR: Duration = Duration::from_millis(50);

/// Processor time between two looks, if it is more than a step of the clock.
pub(crate) fn cpu_between(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    let used = after.zip(before).map(|(after, before)| after.saturating_sub(before));
    used.filter(|used| *used >= cpu_step())
}

fn timed(
    rows: &mut Vec<Row>,
    name: &'static str,
    count: u32,
    work: impl FnOnce() -> Result<()>,
) -> Result<()> {
    let (begun, cpu_before) = (now(), cpu_used());
    work()?;
    let took = now().since(begun);
    let cpu = cpu_between(cpu_before, cpu_used());
    rows.push(Row { name, count, took, cpu });
    Ok(())
}

fn name(i: u32) -> Vec<u8> {
    format!("file-{i:07}").into_bytes()
}

/// Runs all operations in a new directory `folder` of the root, which is removed at the end.
///
/// # Errors
/// The first error of the file system.
pub fn run(fs: &dyn FileSystem, folder: &[u8], amounts: Amounts) -> Result<Vec<Row>> {
    let root = fs.root();
    let dir = fs.mkdir(root, folder, NewNode { mode: 0o755, ..NewNode::default() })?.ino;
    let mut rows = Vec::new();
    names(fs, dir, amounts.files, &mut rows)?;
    durable(fs, dir, amounts.durable_writes, &mut rows)?;
    fs.rmdir(root, folder)?;
    Ok(rows)
}

fn names(fs: &dyn FileSystem, dir: Ino, files: u32, rows: &mut Vec<Row>) -> Result<()> {
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let mut inodes = Vec::with_capacity(files as usize);
    timed(rows, "create", files, || {
        for i in 0..files {
            let (attr, fh) = fs.create(dir, &name(i), NewNode::default(), flags)?;
            fs.release(fh)?;
            inodes.push(attr.ino);
        }
        Ok(())
    })?;
    timed(rows, "lookup", files, || {
        (0..files).try_for_each(|i| fs.lookup(dir, &name(i)).map(drop))
    })?;
    timed(rows, "stat", files, || inodes.iter().try_for_each(|ino| fs.getattr(*ino).map(drop)))?;
    timed(rows, "readdir entry", files, || {
        let mut at = 0;
        while let Some(last) = fs.readdir(dir, at)?.last() {
            at = last.next;
        }
        Ok(())
    })?;
    timed(rows, "rename", files, || {
        (0..files).try_for_each(|i| {
            let to = format!("moved-{i:07}").into_bytes();
            fs.rename((dir, &name(i)), (dir, &to), RenameFlags::empty())
        })
    })?;
    timed(rows, "unlink", files, || {
        (0..files).try_for_each(|i| fs.unlink(dir, format!("moved-{i:07}").as_bytes()))
    })
}

fn durable(fs: &dyn FileSystem, dir: Ino, writes: u32, rows: &mut Vec<Row>) -> Result<()> {
    let flags = OpenFlags::READ | OpenFlags::WRITE;
    let (_, fh) = fs.create(dir, b"durable", NewNode::default(), flags)?;
    let page = Bytes::from(vec![0x5a; 4096]);
    let write = |at: u64| {
        fs.write(fh, at, page.clone())?;
        fs.fsync(fh, false)
    };
    timed(rows, "append 4 KiB + fsync", writes, || {
        (0..u64::from(writes)).try_for_each(|i| write(i * 4096))
    })?;
    timed(rows, "overwrite 4 KiB + fsync", writes, || {
        (0..u64::from(writes)).try_for_each(|i| write(i * 4096))
    })?;
    let pages = writes.max(1);
    timed(rows, "read 4 KiB, cached", pages, || {
        (0..u64::from(pages)).try_for_each(|i| fs.read(fh, i * 4096, 4096).map(drop))
    })?;
    timed(rows, "write 4 KiB, cached", pages, || {
        (0..u64::from(pages)).try_for_each(|i| fs.write(fh, i * 4096, page.clone()).map(drop))
    })?;
    fs.release(fh)?;
    fs.unlink(dir, b"durable")
}

#[cfg(test)]
mod tests {
    use super::*;
    use steadfast_vfs::HostFs;

    #[test]
    fn all_rows_come_and_nothing_stays() {
        let folder = tempfile::tempdir().unwrap();
        let fs = HostFs::open(folder.path()).unwrap();
        let rows = run(&fs, b"run", Amounts { files: 20, durable_writes: 3 }).unwrap();
        let names: Vec<_> = rows.iter().map(|r| (r.name, r.count)).collect();
        assert_eq!(names[0], ("create", 20));
        assert_eq!(names.len(), 10);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn less_than_a_step_of_the_clock_is_not_measured() {
        let step = cpu_step();
        assert!(!step.is_zero() && step <= LOOK_FOR, "{step:?}");
        let at = |cpu| Some(Duration::from_secs(1) + cpu);
        assert_eq!(cpu_between(at(Duration::ZERO), at(Duration::ZERO)), None);
        assert_eq!(cpu_between(at(Duration::ZERO), at(step / 2)), None);
        assert_eq!(cpu_between(at(Duration::ZERO), at(step * 3)), Some(step * 3));
        assert_eq!(cpu_between(None, at(step)), None);
        let row = |cpu| Row { name: "stat", count: 1000, took: Duration::from_millis(1), cpu };
        assert_eq!(row(None).cpu_nanos_each(), None);
        assert_eq!(row(Some(Duration::from_micros(500))).cpu_nanos_each(), Some(500));
    }
}
