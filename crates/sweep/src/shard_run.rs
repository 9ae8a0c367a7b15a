//! Runs a shard: a line for each case as it ends, in a file that is resumed if the run is killed.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use crate::digest::hex;
use crate::lines::LINE_MAX;
use crate::result_lines::{
    Attempt, CaseOutcome, CaseRecord, FORMAT, Manifest, ResultLine, Tools, VERSION,
};
use crate::result_reader::{ResultItem, ResultReader};
use crate::{PlanFile, Result, SweepCase, SweepError, attempts};

/// A shard to be run.
pub struct ShardRun<'p> {
    plan: &'p PlanFile,
    shard: u32,
    folder: PathBuf,
    host: String,
    stop: Box<dyn Fn() -> bool + 'p>,
    tools: Tools,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardEnd {
    /// The file of its results.
    pub file: PathBuf,
    /// Cases of the shard.
    pub cases: u64,
    /// How many of them were there from a former run.
    pub resumed: u64,
    /// How many of those that have ended could not be computed.
    pub failed: u64,
    /// All have ended. If not, the run was stopped, and the next one goes on.
    pub is_whole: bool,
}

/// What Slurm calls this node: for whoever looks for it.
const NODE: &str = "SLURMD_NODENAME";

impl<'p> ShardRun<'p> {
    /// A shard of a plan, whose results go to a folder that is there.
    pub fn new(plan: &'p PlanFile, shard: u32, folder: &Path) -> ShardRun<'p> {
        let node = std::env::var(NODE).ok().filter(|node| !node.is_empty());
        let own = || rustix::system::uname().nodename().to_string_lossy().into_owned();
        let host = node.unwrap_or_else(own);
        let (folder, tools, stop) = (folder.into(), Tools::new(), Box::new(|| false));
        ShardRun { plan, shard, folder, host, stop, tools }
    }

    /// Under another name of this machine.
    pub fn on_host(self, host: &str) -> ShardRun<'p> {
        ShardRun { host: host.into(), ..self }
    }

    /// Begins no other case once this is so.
    pub fn until(self, stop: impl Fn() -> bool + 'p) -> ShardRun<'p> {
        ShardRun { stop: Box::new(stop), ..self }
    }

    /// With these programs, which results depend on: all machines must have the same.
    pub fn with_tools(self, tools: Tools) -> ShardRun<'p> {
        ShardRun { tools, ..self }
    }

    /// Runs the cases that no former run has ended. A shard that is whole is left as it is.
    ///
    /// # Errors
    /// No such shard; the folder has results of another plan or program, or two of one case; or a
    /// file cannot be written: what is there then is resumed by the next run.
    pub fn run(&self, mut run: impl FnMut(&SweepCase) -> CaseOutcome) -> Result<ShardEnd> {
        let (plan, shard) = (self.plan, self.shard);
        if shard >= plan.shards() {
            let shards = plan.shards();
            return Err(SweepError::NoSuch(format!("there is no shard {shard}: it has {shards}")));
        }
        let whole = attempts::whole(&self.folder, shard);
        let end = |resumed, failed| {
            let cases = plan.cases_of(shard);
            ShardEnd { file: whole.clone(), cases, resumed, failed, is_whole: true }
        };
        if let Some(failed) = self.failed_of_whole(&whole)? {
            return Ok(end(plan.cases_of(shard), failed));
        }
        let attempt = self.attempt();
        let former = attempts::former(plan, &self.folder, (shard, &attempt))?;
        let mut writer = self.writer()?;
        writer.resume(&former)?;
        writer.line(&ResultLine::Attempt(attempt))?;
        let (mut failed, mut seconds) = (former.failed, former.seconds);
        let mut cases = plan.planned_of(shard)?;
        let mut number = 0;
        while let Some(case) = cases.read()? {
            number += 1;
            if number <= former.cases {
                continue;
            }
            if (self.stop)() {
                let stopped = end(former.cases, failed);
                return Ok(ShardEnd { file: writer.path, is_whole: false, ..stopped });
            }
            let begun = Instant::now();
            let (result, why) = match run(&case) {
                CaseOutcome::Done(result) => (Some(result), None),
                CaseOutcome::Failed(why) => (None, Some(why)),
            };
            // Milliseconds are enough, and short.
            let took = (begun.elapsed().as_secs_f64() * 1e3).round() / 1e3;
            seconds += took;
            failed += u64::from(why.is_some());
            let at_ms = now_ms();
            let case = case.name;
            let end = CaseRecord { case, result, failed: why, seconds: took, at_ms };
            writer.line(&ResultLine::Case(end))?;
        }
        let manifest = self.manifest(number, &writer, seconds);
        writer.line(&ResultLine::Manifest(manifest))?;
        writer.end(&whole)?;
        for file in former.files.iter().filter(|file| **file != whole) {
            // OK to ignore: what stays is compared with the whole file by a merge.
            drop(fs::remove_file(file));
        }
        Ok(end(former.cases, failed))
    }

    /// How many cases of the shard failed, if it has been run to its end.
    fn failed_of_whole(&self, whole: &Path) -> Result<Option<u64>> {
        if !whole.exists() {
            return Ok(None);
        }
        let folder = |fault| SweepError::Folder(Box::new(fault));
        let mut reader = match ResultReader::open(whole, self.plan)? {
            Ok(reader) => reader,
            Err(fault) => return Err(folder(fault)),
        };
        let mut failed = 0;
        loop {
            match reader.read()?.map_err(folder)? {
                ResultItem::Case(end, _) => failed += u64::from(end.failed.is_some()),
                ResultItem::Whole => return Ok(Some(failed)),
                // Somebody has cut it off: it is resumed as any other.
                ResultItem::CutOff => return Ok(None),
            }
        }
    }

    fn attempt(&self) -> Attempt {
        Attempt {
            format: FORMAT.into(),
            version: VERSION,
            plan: self.plan.fingerprint().into(),
            program: self.plan.head().program.sha256.clone(),
            shard: self.shard,
            host: self.host.clone(),
            tools: self.tools.clone(),
            pid: std::process::id(),
            at_ms: now_ms(),
        }
    }

    fn manifest(&self, cases: u64, writer: &PartWriter, seconds: f64) -> Manifest {
        Manifest {
            cases,
            results: hex(&writer.digest.clone().finalize()),
            plan: self.plan.fingerprint().into(),
            program: self.plan.head().program.sha256.clone(),
            shard: self.shard,
            host: self.host.clone(),
            seconds,
            at_ms: now_ms(),
        }
    }

    fn writer(&self) -> Result<PartWriter> {
        let (pid, mut at) = (std::process::id(), now_ms());
        let (path, file) = loop {
            let path = attempts::part(&self.folder, self.shard, &self.host, pid, at);
            match File::create_new(&path) {
                // This process has begun two attempts within a millisecond.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => at += 1,
                made => break (path.clone(), made.map_err(|e| SweepError::io(&path, e))?),
            }
        };
        Ok(PartWriter { path, file, digest: Sha256::new(), plan: self.plan.fingerprint().into() })
    }
}

/// The file of an attempt.
struct PartWriter {
    path: PathBuf,
    file: File,
    digest: Sha256,
    plan: String,
}

impl PartWriter {
    /// Begins with the lines of a former attempt.
    fn resume(&mut self, former: &attempts::FormerRun) -> Result<()> {
        let Some(best) = &former.best else { return Ok(()) };
        let cannot = |e| SweepError::io(best, e);
        let mut from = BufReader::new(File::open(best).map_err(cannot)?).take(former.bytes);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let read = from.read(&mut buffer).map_err(cannot)?;
            if read == 0 {
                return match from.limit() {
                    0 => Ok(()),
                    _ => Err(cannot(io::ErrorKind::UnexpectedEof.into())),
                };
            }
            // OK to index: a reader reads no more than it was given room for.
            self.write(&buffer[..read])?;
        }
    }

    /// One write a line: a process that is killed leaves whole lines, or the beginning of one.
    fn line(&mut self, line: &ResultLine) -> Result<()> {
        let text = line.text(&self.plan);
        let text = text.map_err(|e| SweepError::io(&self.path, io::Error::other(e)))?;
        if text.len() as u64 >= LINE_MAX {
            let what = format!("a result of {} bytes; at most {LINE_MAX} are read", text.len());
            return Err(SweepError::io(&self.path, io::Error::other(what)));
        }
        self.write(format!("{text}\n").as_bytes())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.digest.update(bytes);
        self.file.write_all(bytes).map_err(|e| SweepError::io(&self.path, e))
    }

    /// Gives it the name of what is whole.
    fn end(self, whole: &Path) -> Result<()> {
        let synced = self.file.sync_all().and_then(|()| fs::rename(&self.path, whole));
        synced.map_err(|e| SweepError::io(&self.path, e))
    }
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
