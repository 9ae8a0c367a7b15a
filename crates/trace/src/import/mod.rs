//! Reads calls from what other programs have written: the text of strace(1), logs of fio(1), the
//! text of blkparse(1).

mod blkparse;
mod build;
mod descriptors;
mod errno;
mod fio_log;
mod names;
mod processes;
mod strace;
mod strace_calls;
mod strace_line;
mod strace_names;
#[cfg(test)]
mod strace_tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use crate::error::{Result, TraceError};
use crate::format::{FORMAT, NameForm, TraceHeader, TraceOrigin, VERSION};

use self::build::TraceBuild;

/// Bytes of a line, at most.
const LINE_MAX: u64 = 1 << 20;
/// Calls of an import, at most: they are kept in memory until all are read.
const CALLS_MAX: usize = 20_000_000;

/// A text that is read.
pub struct TextInput {
    /// What it is called.
    pub name: PathBuf,
    /// Its lines.
    pub text: Box<dyn BufRead>,
    /// How long it was written, in s, as far as the file system says.
    pub written_seconds: Option<f64>,
}

/// How to read it.
#[derive(Debug, Clone, Default)]
pub struct ImportOptions {
    /// Of strace's text: the folder that counts; absolute.
    pub folder: PathBuf,
    /// Of fio's logs of version 3, the unit of a time, in ns. `None`: found from how long the log
    /// was written.
    pub unit_ns: Option<u64>,
}

/// What was read, and what was not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportSummary {
    /// From what.
    pub source: TraceOrigin,
    /// Calls in the trace.
    pub calls: u64,
    /// Lines of which nothing is in the trace, by why.
    pub left_out: BTreeMap<String, LeftOutLines>,
    /// Said of it.
    pub notes: Vec<String>,
}

/// Lines of one kind of which nothing is in the trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOutLines {
    /// How many.
    pub lines: u64,
    /// The first one, as `FILE:LINE`; `None`: it is no line of its own that is wrong.
    pub first: Option<String>,
}

impl fmt::Display for LeftOutLines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.first {
            Some(first) if self.lines == 1 => write!(f, "1 x, {first}"),
            Some(first) => write!(f, "{} x, first {first}", self.lines),
            None => write!(f, "{} x", self.lines),
        }
    }
}

/// What an input is, by its first line that says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TextForm {
    Strace,
    FioLog(u32),
    Blkparse,
}

/// Reads texts of one kind, and writes the trace.
///
/// # Errors
/// They are of no known kind, or of unlike ones; nothing of them is a call; the trace cannot be
/// written.
pub fn import(
    inputs: Vec<TextInput>,
    options: &ImportOptions,
    out: impl Write,
) -> Result<ImportSummary> {
    let mut build = TraceBuild::default();
    let mut form: Option<(TextForm, String)> = None;
    let (mut names, mut notes) = (Vec::new(), Vec::new());
    let mut log_names = fio_log::LogNames::default();
    for (number, mut input) in inputs.into_iter().enumerate() {
        build.at = Some((number, 0));
        let wrong =
            |what: String| TraceError::NotImported(format!("{}: {what}", input.name.display()));
        let lines = lines(&mut input.text).map_err(|e| wrong(e.to_string()))?;
        let own = form_of(&lines).ok_or_else(|| {
            wrong("is neither strace's text (-f -ttt -T -y), a log of fio, nor blkparse's".into())
        })?;
        if let Some((first, of)) = form.as_ref().filter(|(first, _)| *first != own) {
            return Err(wrong(format!(
                "is {}, and {of} is {}: times and files of the two cannot be \
                 brought together",
                own.words(),
                first.words()
            )));
        }
        match own {
            TextForm::Strace => strace::read(&lines, &options.folder, &mut build).map_err(wrong)?,
            TextForm::FioLog(version) => {
                let unit = (version, options.unit_ns, input.written_seconds);
                notes.extend(
                    fio_log::read(&lines, unit, &mut log_names, &mut build).map_err(wrong)?,
                );
            }
            TextForm::Blkparse => blkparse::read(&lines, &mut build),
        }
        let name = input.name.display().to_string();
        form.get_or_insert((own, name.clone()));
        names.push(name);
    }
    let (form, _) = form.ok_or_else(|| TraceError::NotImported("nothing was named".into()))?;
    let header = TraceHeader {
        format: FORMAT.to_owned(),
        version: VERSION,
        source: form.source(),
        program: names,
        trip: None,
        direct: form != TextForm::Strace,
        names: NameForm::Kept,
        not_seen: form.not_seen().iter().map(|&what| what.to_owned()).collect(),
    };
    notes.extend(log_names.note());
    build.put_in_order();
    let place = |(input, line)| Some(format!("{}:{line}", header.program.get(input)?));
    let kinds = std::mem::take(&mut build.left_out).into_iter();
    let left_out: BTreeMap<String, LeftOutLines> = kinds
        .map(|(why, of)| (why, LeftOutLines { lines: of.lines, first: of.first.and_then(place) }))
        .collect();
    let calls = build.write(&header, out)?;
    if calls == 0 {
        let kinds: Vec<String> = left_out.iter().map(|(why, of)| format!("{of}: {why}")).collect();
        return Err(TraceError::NotImported(format!("no line is a call ({})", kinds.join("; "))));
    }
    Ok(ImportSummary { source: form.source(), calls, left_out, notes })
}

impl TextForm {
    fn words(self) -> String {
        match self {
            TextForm::Strace => "strace's text".to_owned(),
            TextForm::FioLog(version) => format!("a log of fio, version {version}"),
            TextForm::Blkparse => "blkparse's text".to_owned(),
        }
    }

    fn source(self) -> TraceOrigin {
        match self {
            TextForm::Strace => TraceOrigin::Strace,
            TextForm::FioLog(_) => TraceOrigin::FioIolog,
            TextForm::Blkparse => TraceOrigin::Blkparse,
        }
    }

    fn not_seen(self) -> &'static [&'static str] {
        match self {
            TextForm::Strace => &[
                "what is written through memory maps",
                "asynchronous I/O (io_uring, libaio)",
                "the sizes of files that were there before, beyond what was read of them",
            ],
            TextForm::FioLog(_) => &["flags of the files, and who waited for whom"],
            TextForm::Blkparse => &["the files, and what was answered by the page cache"],
        }
    }
}

fn lines(text: &mut dyn BufRead) -> std::io::Result<Vec<String>> {
    let mut all = Vec::new();
    loop {
        let mut line = Vec::new();
        let read = std::io::Read::take(&mut *text, LINE_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(all);
        }
        if all.len() >= CALLS_MAX * 2 {
            return Err(std::io::Error::other(format!("it has more than {} lines", CALLS_MAX * 2)));
        }
        let text = String::from_utf8_lossy(&line);
        all.push(text.trim_end_matches(['\n', '\r']).to_owned());
    }
}

fn form_of(lines: &[String]) -> Option<TextForm> {
    if let Some(version) = crate::fio_log::version(lines.first()?) {
        return Some(TextForm::FioLog(version));
    }
    let mut first = lines.iter().take(1000);
    first.find_map(|line| match line {
        line if strace::is_line(line) => Some(TextForm::Strace),
        line if blkparse::is_line(line) => Some(TextForm::Blkparse),
        _ => None,
    })
}

/// The path without `.`, `..` and double slashes.
fn plain(path: &Path) -> PathBuf {
    use std::path::Component;
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::CurDir => {}
            other => plain.push(other),
        }
    }
    plain
}
