//! What a trace says. FORMAT.md describes the file for other programs.
//!
//! A trace is JSON lines, compressed by zstd in frames of about a mebibyte. The first line is a
//! [`TraceHeader`], each other one an [`TraceEntry`], the last one [`TraceEntry::End`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What the header calls the format.
pub const FORMAT: &str = "steadfast-trace";
/// The version that is written, and the only one that is read.
pub const VERSION: u32 = 1;
/// The folder that everything is in.
pub const ROOT: u64 = 0;

/// The first line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceHeader {
    /// [`FORMAT`].
    pub format: String,
    /// [`VERSION`].
    pub version: u32,
    /// Where the calls are from.
    pub source: TraceOrigin,
    /// The program and its arguments; of an import the file.
    pub program: Vec<String>,
    /// What a trip through the mount cost, which is in no think time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trip: Option<Trip>,
    /// Whether reads past the kernel's page cache were asked for, so that all are in it.
    #[serde(default)]
    pub direct: bool,
    /// Whether names are as they were, or hashed.
    pub names: NameForm,
    /// What was not seen, in words.
    pub not_seen: Vec<String>,
}

/// Where the calls of a trace are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub enum TraceOrigin {
    /// `steadfast trace record`.
    Record,
    /// The text of strace(1).
    Strace,
    /// A log of fio.
    FioIolog,
    /// The text of blkparse(1).
    Blkparse,
    /// Made by a program.
    Synthetic,
}

/// How names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NameForm {
    /// As they are; bytes that are not UTF-8, and `%`, as `%XX`.
    Kept,
    /// Each replaced by a number of the name.
    Hashed,
}

/// What a call costs on its way through the mount and back, in ns, apart from what is done for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trip {
    /// Median; this is taken off each think time.
    pub median_ns: u64,
    /// The least.
    pub least_ns: u64,
    /// The most.
    pub most_ns: u64,
    /// Of how many.
    pub calls: u64,
    /// What of it the thread itself runs, in ns: median. This is taken off what it has run between
    /// two calls.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub run_ns: u64,
    /// The same for kinds of calls of which it was measured.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub run_ns_of: BTreeMap<CallOp, u64>,
}

/// A line after the first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TraceEntry {
    /// A thread, before its first call.
    Thread(TraceThread),
    /// A file that was there before the first call, before the first call that touches it.
    File(FileState),
    /// A call. They are in the order in which they began.
    Call(TraceCall),
    /// The last line.
    End(TraceEnd),
}

/// A thread that makes calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceThread {
    /// Its number in the trace.
    pub thread: u32,
    /// Its process.
    pub process: u32,
    /// The process that has started it, if that makes calls, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<u32>,
    /// What the system calls it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Of a process that is new: processes that had ended when it was first seen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waited: Vec<u32>,
}

/// What a file was when it was first touched.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileState {
    /// Its number in the trace: an inode and its generation, whatever it is called.
    pub file: u64,
    /// What it is.
    pub kind: FileKind,
    /// Bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub size: u64,
    /// The folder that it was found in, and its name there. The root has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<u64>,
    /// Its name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Of a symbolic link, what it leads to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub target: String,
}

/// What a file is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileKind {
    /// Regular file.
    Regular,
    /// Folder.
    Folder,
    /// Symbolic link.
    Symlink,
    /// Anything else: it is not made again.
    Other,
}

/// What was asked.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    Hash,
    PartialOrd,
    Ord,
    Serialize,
    Deserialize,
    strum::Display,
    strum::EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum CallOp {
    /// A name is looked for: `file` is what it is.
    Lookup,
    /// Names of a folder are listed.
    List,
    /// A file is opened.
    Open,
    /// A file is made and opened.
    Create,
    /// A file without a name is made and opened.
    Tmpfile,
    /// A handle is closed.
    Close,
    /// `len` bytes at `offset` are read.
    Read,
    /// `len` bytes at `offset` are written.
    Write,
    /// The file is made durable.
    Fsync,
    /// The file is made durable as far as its contents need it.
    Fdatasync,
    /// The names of a folder are made durable.
    Fsyncdir,
    /// Everything is made durable.
    Sync,
    /// The size is set to `offset`.
    Truncate,
    /// A range is allocated.
    Allocate,
    /// The same, beyond the end too, where the size stays.
    Reserve,
    /// A hole is made.
    Punch,
    /// A range is made zero.
    Zero,
    /// A range is taken out.
    Collapse,
    /// A range is put in.
    Insert,
    /// A folder is made.
    Mkdir,
    /// A folder is removed.
    Rmdir,
    /// A name is removed.
    Unlink,
    /// A name is moved.
    Rename,
    /// Two names change places.
    Exchange,
    /// A file gets another name.
    Link,
    /// A symbolic link is made.
    Symlink,
    /// A device node, FIFO or socket is made.
    Mknod,
    /// Owner, mode, times or extended attributes are changed.
    Attributes,
}

impl CallOp {
    /// Whether it makes something durable, and nothing else.
    pub fn is_sync(self) -> bool {
        matches!(self, CallOp::Fsync | CallOp::Fdatasync | CallOp::Fsyncdir | CallOp::Sync)
    }

    /// Whether its file may be one of which nothing was told before.
    pub(crate) fn makes_or_finds(self) -> bool {
        use CallOp::{Create, Lookup, Mkdir, Mknod, Symlink, Tmpfile};
        matches!(self, Lookup | Create | Tmpfile | Mkdir | Symlink | Mknod)
    }

    /// Whether it leaves files and names as they are.
    pub(crate) fn only_reads(self) -> bool {
        matches!(self, CallOp::Lookup | CallOp::List | CallOp::Open | CallOp::Close | CallOp::Read)
    }
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceCall {
    /// What was asked.
    pub op: CallOp,
    /// By which thread.
    pub thread: u32,
    /// When it reached us, in ns since the program was started; of an import, since the first.
    pub start: u64,
    /// When it was answered.
    pub end: u64,
    /// 0 or more: what it returned (bytes of a read or a write). Below 0: the error (errno(3)).
    #[serde(default, skip_serializing_if = "is_zero_signed")]
    pub result: i64,
    /// The file that it is about; of what makes or finds one, the one made or found.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<u64>,
    /// The open file, by a number that no other open file of the trace has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handle: Option<u64>,
    /// The folder of the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dir: Option<u64>,
    /// The name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Of a rename and a link: the folder of the new name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to_dir: Option<u64>,
    /// The new name; of a symbolic link what it leads to.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub to: String,
    /// Bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub offset: u64,
    /// Bytes.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub len: u64,
    /// How a file is opened, or a write made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flags: Vec<CallFlag>,
    /// The kernel's own, which writes back what was changed in a memory map.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub kernel: bool,
    /// A further request for the thread's last call: the kernel cuts long writes into pieces, and
    /// asks for a sync after a write to a file opened with O_SYNC.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub part: bool,
    /// Of what was written, the share of zeros, in %.
    #[serde(default, skip_serializing_if = "is_zero_byte")]
    pub zeros: u8,
    /// Of what was written, the share that compression of single bytes would save, in %.
    #[serde(default, skip_serializing_if = "is_zero_byte")]
    pub saves: u8,
    /// Which calls it waited for: how many calls before it in the trace each is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<u64>,
    /// From the end of the last of those (or the beginning) to its start, in ns.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub think: u64,
}

/// How a file is opened, or a write made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallFlag {
    /// To read.
    Read,
    /// To write.
    Write,
    /// O_APPEND.
    Append,
    /// O_TRUNC.
    Truncate,
    /// O_EXCL.
    Exclusive,
    /// O_DIRECT.
    Direct,
    /// O_DSYNC.
    Dsync,
    /// O_SYNC.
    Sync,
    /// RENAME_NOREPLACE.
    NoReplace,
    /// FALLOC_FL_KEEP_SIZE of [`CallOp::Zero`].
    KeepSize,
}

/// The last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TraceEnd {
    /// How many calls there are.
    pub calls: u64,
    /// When the program ended, or a later call of what it left running, in ns since it was started.
    pub at: u64,
    /// The status that it ended with; of one that a signal ended, 128 and the signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<i32>,
    /// Somebody stopped the recording.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
}

impl TraceCall {
    /// A call without more than this.
    pub fn new(op: CallOp, thread: u32, start: u64, end: u64) -> TraceCall {
        TraceCall {
            op,
            thread,
            start,
            end,
            result: 0,
            file: None,
            handle: None,
            dir: None,
            name: String::new(),
            to_dir: None,
            to: String::new(),
            offset: 0,
            len: 0,
            flags: Vec::new(),
            kernel: false,
            part: false,
            zeros: 0,
            saves: 0,
            after: Vec::new(),
            think: 0,
        }
    }

    /// Whether it failed.
    pub fn failed(&self) -> bool {
        self.result < 0
    }

    /// Whether it has a flag.
    pub fn has(&self, flag: CallFlag) -> bool {
        self.flags.contains(&flag)
    }
}

/// A name as a trace has it: bytes that are not UTF-8, and `%`, as `%XX`.
pub(crate) fn name_text(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for part in name.utf8_chunks() {
        part.valid().chars().for_each(|c| match c {
            '%' => text.push_str("%25"),
            c => text.push(c),
        });
        part.invalid().iter().for_each(|byte| text.push_str(&format!("%{byte:02X}")));
    }
    text
}

/// The bytes of such a name; `None`: it is none.
pub(crate) fn name_bytes(text: &str) -> Option<Vec<u8>> {
    let (mut bytes, mut rest) = (Vec::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once('%') {
        bytes.extend_from_slice(before.as_bytes());
        bytes.push(u8::from_str_radix(after.get(..2)?, 16).ok()?);
        rest = &after[2..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    Some(bytes)
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_zero_signed(n: &i64) -> bool {
    *n == 0
}

fn is_zero_byte(n: &u8) -> bool {
    *n == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_back() {
        for name in [&b"plain"[..], b"100%", b"\xff\xfe", "gr\u{fc}n".as_bytes(), b"%41", b""] {
            assert_eq!(name_bytes(&name_text(name)).as_deref(), Some(name));
        }
        assert_eq!(
            (name_text(b"a%\xff"), name_bytes("%G0"), name_bytes("%")),
            ("a%25%FF".into(), None, None)
        );
    }

    #[test]
    fn what_is_not_there_is_not_written() {
        let call = TraceCall::new(CallOp::Fsync, 1, 5, 9);
        let text = serde_json::to_string(&TraceEntry::Call(call.clone())).unwrap();
        assert_eq!(text, r#"{"call":{"op":"fsync","thread":1,"start":5,"end":9}}"#);
        assert_eq!(serde_json::from_str::<TraceEntry>(&text).unwrap(), TraceEntry::Call(call));
    }
}
