//! The lines of a log of fio (`write_iolog`), versions 2 and 3: a file, what was done, where.
//! Version 3 has a time before them.
//!
//! What follows from a line is for the reader to say; this is its form alone, of which the import
//! and the replay of a benchmark read the same.

/// What a line of a log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FioLogLine<'a> {
    /// When, from the beginning on; of version 3 only. The unit depends on the version of fio.
    pub time: Option<u64>,
    /// The file's name.
    pub file: &'a str,
    /// What was done.
    pub action: FioLogAction,
}

/// What was done to a file. Offsets and lengths are bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FioLogAction {
    /// The log has requests of it further on.
    Add,
    /// It was opened.
    Open,
    /// It was closed.
    Close,
    /// So much was read there: offset, length.
    Read(u64, u64),
    /// So much was written there: offset, length.
    Write(u64, u64),
    /// So much was let go there: offset, length.
    Trim(u64, u64),
    /// An fsync.
    Sync,
    /// An fdatasync.
    DataSync,
    /// Nothing is done before so many ms after the beginning; of version 2 only. fio's manual has
    /// microseconds from the wait before, and fio 3.33 does this.
    Wait(u64),
}

/// Why a line is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FioLogLineError {
    /// Of version 3.
    #[error("no time at its beginning")]
    NoTime,
    /// There is no action.
    #[error("too short")]
    Short,
    /// Of a request.
    #[error("no offset and length")]
    NoPlace,
    /// fio passes over it, too.
    #[error("a wait, and version 3 has times instead")]
    WaitWithTimes,
    /// fio has no such action.
    #[error("`{0}`, which is not known")]
    UnknownAction(String),
}

/// The version of a log, by its first line; `None`: it is no log of fio's.
pub fn version(first: &str) -> Option<u32> {
    first.strip_prefix("fio version ")?.split_whitespace().next()?.parse().ok()
}

/// Reads a line of a log of version 2 or 3.
///
/// # Errors
/// It is none of that version.
pub fn line(text: &str, version: u32) -> Result<FioLogLine<'_>, FioLogLineError> {
    let mut words = text.split_whitespace();
    let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok());
    let time = match version {
        3 => Some(number(words.next()).ok_or(FioLogLineError::NoTime)?),
        _ => None,
    };
    let (file, word) = words.next().zip(words.next()).ok_or(FioLogLineError::Short)?;
    let mut place = |make: fn(u64, u64) -> FioLogAction| {
        let (offset, len) = (number(words.next()), number(words.next()));
        offset.zip(len).map(|(at, len)| make(at, len)).ok_or(FioLogLineError::NoPlace)
    };
    let action = match word {
        "add" => FioLogAction::Add,
        "open" => FioLogAction::Open,
        "close" => FioLogAction::Close,
        "read" => place(FioLogAction::Read)?,
        "write" => place(FioLogAction::Write)?,
        "trim" => place(FioLogAction::Trim)?,
        "sync" => FioLogAction::Sync,
        "datasync" => FioLogAction::DataSync,
        "wait" if time.is_some() => return Err(FioLogLineError::WaitWithTimes),
        "wait" => place(|until, _| FioLogAction::Wait(until))?,
        other => return Err(FioLogLineError::UnknownAction(other.to_owned())),
    };
    Ok(FioLogLine { time, file, action })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_both_versions() {
        let of = |text, version| line(text, version).map(|l| (l.time, l.file, l.action));
        assert_eq!(of("/d/f add", 2), Ok((None, "/d/f", FioLogAction::Add)));
        assert_eq!(
            of("7 f write 512 4096\r", 3),
            Ok((Some(7), "f", FioLogAction::Write(512, 4096)))
        );
        assert_eq!(of("f sync 0 0", 2), Ok((None, "f", FioLogAction::Sync)));
        assert_eq!(of("f wait 300 0", 2), Ok((None, "f", FioLogAction::Wait(300))));
        for (text, version, error) in [
            ("f add", 3, FioLogLineError::NoTime),
            ("7 f", 3, FioLogLineError::Short),
            ("", 2, FioLogLineError::Short),
            ("f read 512", 2, FioLogLineError::NoPlace),
            ("f read 512 -1", 2, FioLogLineError::NoPlace),
            ("f read 99999999999999999999 1", 2, FioLogLineError::NoPlace),
            ("f odd 0 0", 2, FioLogLineError::UnknownAction("odd".into())),
            ("1 f wait 300 0", 3, FioLogLineError::WaitWithTimes),
        ] {
            assert_eq!(of(text, version), Err(error), "{text}");
        }
        assert_eq!(version("fio version 3 iolog"), Some(3));
        assert_eq!(version("fio version x"), None);
        assert_eq!(version("4096 0"), None);
    }
}
