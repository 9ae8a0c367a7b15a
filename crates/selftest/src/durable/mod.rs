//! How long small durable calls take: an overwrite, an append, a new file, a new name, each made
//! durable before the next, by one task or several at a time.
//!
//! Each task has a folder and files of its own, and calls of one kind are timed together. What a
//! task does is behind [`DurableClient`]: [`OnFileSystem`] calls a
//! [`FileSystem`](steadfast_vfs::FileSystem) in this process, [`OnHost`] the kernel, with nothing
//! but the system calls between the clocks.

mod client;
mod host;

use std::sync::Barrier;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use steadfast_statistics::Percentile::P99;
use steadfast_vfs::Result;

use crate::operations;

pub use client::OnFileSystem;
pub use host::OnHost;

/// Bytes of a write.
pub const WRITE: usize = 4096;
/// Blocks of the file that is overwritten, of each task: 8 MiB.
const BLOCKS: u64 = 2048;
/// Prime to [`BLOCKS`]: successive overwrites are far from each other.
const STRIDE: u64 = 797;

/// What is made durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Call {
    /// 4 KiB of a file are overwritten, which is open with O_DSYNC.
    Overwrite,
    /// 4 KiB are written at a file's end, then fsync(2).
    Append,
    /// An empty file is made, then fsync(2) of it.
    Create,
    /// A file is made, 4 KiB are written to it, then fsync(2) of it.
    CreateWritten,
    /// A file gets another name, then fsync(2) of the folder.
    Rename,
}

impl Call {
    /// All, in the order of the tables.
    pub const ALL: [Call; 5] =
        [Call::Overwrite, Call::Append, Call::Create, Call::CreateWritten, Call::Rename];

    /// As the tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Call::Overwrite => "overwrite, O_DSYNC",
            Call::Append => "append + fsync",
            Call::Create => "create + fsync",
            Call::CreateWritten => "create, write + fsync",
            Call::Rename => "rename + fsync folder",
        }
    }
}

/// One task's calls, each durable when it returns.
pub trait DurableClient: Send {
    /// Overwrites block `block` of the file that [`prepare`](Self::prepare) has made.
    ///
    /// # Errors
    /// Those of the file system; so with the others.
    fn overwrite(&mut self, block: u64) -> Result<()>;

    /// Writes at the end of another file.
    fn append(&mut self) -> Result<()>;

    /// Makes the file of that number, with 4 KiB in it or none.
    fn create(&mut self, number: u64, written: bool) -> Result<()>;

    /// Renames one file, to and fro.
    fn rename(&mut self) -> Result<()>;

    /// Makes the folder and the files that calls need, the one to be overwritten of so many blocks,
    /// all of them written; all durable.
    fn prepare(&mut self, blocks: u64) -> Result<()>;

    /// Removes files that [`create`](Self::create) made.
    fn remove(&mut self, numbers: std::ops::Range<u64>) -> Result<()>;
}

/// How much to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amounts {
    /// Calls of each kind that are timed, of all tasks together.
    pub calls: u64,
    /// Overwrites before them, not timed: to have the log full.
    pub before: u64,
}

/// Calls of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was done.
    pub call: Call,
    /// So many tasks at a time.
    pub tasks: usize,
    /// Calls of all of them.
    pub calls: u64,
    /// Nanoseconds of the clock a call: the time for all over how many there were.
    pub nanos_each: u64,
    /// Nanoseconds of processor time a call: this process's, that of the daemon that serves a
    /// mount (counted in the kernel's ticks), and the kernel's on behalf of both; not that of the
    /// kernel's own threads. `None`: less than a step of the clock that counts it.
    pub cpu_nanos_each: Option<u64>,
    /// Nanoseconds of the middle call, as the task that made it saw it.
    pub p50_nanos: u64,
    /// The 99th percentile, if there were calls enough to speak of one.
    pub p99_nanos: Option<u64>,
    /// The longest.
    pub most_nanos: u64,
}

/// Runs `calls` with as many tasks as there are clients; before it, what
/// [`Amounts`] wants. `daemon` is the number of the process that serves the file system, if there
/// is one: its processor time counts too.
///
/// # Errors
/// The first error of the file system.
pub fn run(
    clients: &mut [Box<dyn DurableClient>],
    calls: &[Call],
    amounts: Amounts,
    daemon: Option<u32>,
) -> Result<Vec<Row>> {
    let tasks = clients.len().max(1) as u64;
    clients.iter_mut().try_for_each(|client| client.prepare(BLOCKS))?;
    if amounts.before > 0 {
        timed(clients, Call::Overwrite, amounts.before.div_ceil(tasks), daemon)?;
    }
    let each = amounts.calls.div_ceil(tasks);
    let mut rows = Vec::with_capacity(calls.len());
    for call in calls {
        rows.push(timed(clients, *call, each, daemon)?);
        if matches!(call, Call::Create | Call::CreateWritten) {
            clients.iter_mut().try_for_each(|client| client.remove(0..each))?;
        }
    }
    Ok(rows)
}

/// All clients at a time, each so many calls.
fn timed(
    clients: &mut [Box<dyn DurableClient>],
    call: Call,
    each: u64,
    daemon: Option<u32>,
) -> Result<Row> {
    let tasks = clients.len();
    let (ready, go) = (Barrier::new(tasks + 1), Barrier::new(tasks + 1));
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .map(|client| {
                let (ready, go) = (&ready, &go);
                scope.spawn(move || {
                    ready.wait();
                    go.wait();
                    task(&mut **client, call, each)
                })
            })
            .collect();
        ready.wait();
        let cpu_before = cpu_used(daemon);
        let begun = Instant::now();
        go.wait();
        let mut all = histogram();
        let mut failed = None;
        for thread in threads {
            match thread.join() {
                // Both count as far, so adding them cannot fail.
                Ok(Ok(times)) => all.add(times).unwrap_or_default(),
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        let (took, cpu) = (begun.elapsed(), cpu_used(daemon).saturating_sub(cpu_before));
        failed.map_or(Ok(()), Err)?;
        let calls = each * tasks as u64;
        let share = |all: Duration| nanos(all) / calls.max(1);
        Ok(Row {
            call,
            tasks,
            calls,
            nanos_each: share(took),
            cpu_nanos_each: (cpu >= step(daemon)).then(|| share(cpu)),
            p50_nanos: all.value_at_quantile(0.5),
            p99_nanos: P99.is_in(calls).then(|| all.value_at_quantile(P99.share())),
            most_nanos: all.max(),
        })
    })
}

/// One task's part; the time of each of its calls.
fn task(client: &mut dyn DurableClient, call: Call, each: u64) -> Result<Histogram<u64>> {
    let mut times = histogram();
    for i in 0..each {
        let begun = Instant::now();
        match call {
            Call::Overwrite => client.overwrite((i * STRIDE) % BLOCKS)?,
            Call::Append => client.append()?,
            Call::Create => client.create(i, false)?,
            Call::CreateWritten => client.create(i, true)?,
            Call::Rename => client.rename()?,
        }
        times.saturating_record(nanos(begun.elapsed()));
    }
    Ok(times)
}

/// Of nanoseconds up to a minute, three digits.
fn histogram() -> Histogram<u64> {
    // OK: 1 is less than half of the bound, and 3 digits are among those that may be.
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("bounds that fit")
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Processor time of this process and of the daemon so far, threads that have ended with it.
fn cpu_used(daemon: Option<u32>) -> Duration {
    let own = steadfast_bench::cpu_used().unwrap_or_default();
    own + daemon.and_then(of_process).unwrap_or_default()
}

/// The shortest time that [`cpu_used`] can measure.
fn step(daemon: Option<u32>) -> Duration {
    match daemon {
        Some(_) => Duration::from_secs(1) / rustix::param::clock_ticks_per_second().max(1) as u32,
        None => operations::cpu_step(),
    }
}

/// User and system time of another process, in ticks of the kernel (proc(5)).
fn of_process(pid: u32) -> Option<Duration> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold anything; the fields begin after its closing parenthesis.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks: u64 = fields.get(11)?.parse::<u64>().ok()? + fields.get(12)?.parse::<u64>().ok()?;
    Some(Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1)))
}

/// What was to be written was written in part only.
fn whole(written: usize) -> Result<()> {
    match written {
        WRITE => Ok(()),
        _ => Err(rustix::io::Errno::IO.into()),
    }
}

/// A folder's name.
fn folder(task: usize) -> Vec<u8> {
    format!("task-{task}").into_bytes()
}

fn name(number: u64) -> Vec<u8> {
    format!("file-{number:07}").into_bytes()
}

/// The two names of the file that is renamed.
const TO_AND_FRO: [&[u8]; 2] = [b"here", b"there"];

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use steadfast_vfs::HostFs;

    #[test]
    fn a_process_has_used_what_the_kernel_says() {
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_millis(60) {}
        let own = of_process(std::process::id()).unwrap();
        assert!(own >= Duration::from_millis(10) && own <= Duration::from_secs(3600), "{own:?}");
        assert_eq!(of_process(u32::MAX), None);
    }

    #[test]
    fn both_kinds_of_clients_do_the_same() {
        let place = tempfile::tempdir().unwrap();
        let amounts = Amounts { calls: 10, before: 3 };
        let trees: Vec<_> = ["a", "b"]
            .into_iter()
            .map(|name| {
                let root = place.path().join(name);
                std::fs::create_dir(&root).unwrap();
                let mut clients: Vec<Box<dyn DurableClient>> = Vec::new();
                let fs = Arc::new(HostFs::open(&root).unwrap());
                for task in 0..2 {
                    clients.push(match name {
                        "a" => Box::new(OnHost::new(&root, task).unwrap()),
                        _ => Box::new(OnFileSystem::new(fs.clone(), task)),
                    });
                }
                let rows = run(&mut clients, &Call::ALL, amounts, None).unwrap();
                assert!(rows.iter().all(|row| row.calls == 10 && row.tasks == 2));
                assert!(rows.iter().all(|row| row.p99_nanos.is_none()));
                let mut files: Vec<(String, u64)> = ["task-0", "task-1"]
                    .into_iter()
                    .flat_map(|task| std::fs::read_dir(root.join(task)).unwrap())
                    .map(|entry| entry.unwrap())
                    .map(|e| (e.file_name().into_string().unwrap(), e.metadata().unwrap().len()))
                    .collect();
                files.sort();
                files
            })
            .collect();
        assert_eq!(trees[0], trees[1]);
        let one = |name: &str, bytes| (name.to_owned(), bytes);
        let once = [one("appended", 20480), one("overwritten", 8 << 20), one("there", 0)];
        let twice: Vec<_> = once.iter().flat_map(|file| [file.clone(), file.clone()]).collect();
        assert_eq!(trees[0], twice);
    }
}
