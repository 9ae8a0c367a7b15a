//! The words of the control socket: a line is one request.

use std::path::Path;

use steadfast_crash::program::{CallFault, FaultError, FaultKind};

use super::lazyfs;
use crate::Usage;

/// Failures that one request may ask for.
const TIMES_MAX: u32 = 1000;

/// A request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ControlWord {
    /// `mark TEXT`: the program acknowledges this.
    Mark(Vec<u8>),
    /// `cut`: this instant is explored densely.
    Cut,
    /// `begin`: from here on the run is explored.
    Begin,
    /// `end`: up to here.
    End,
    /// `unsynced`: what would a cut take now?
    Unsynced,
    /// `checkpoint`: everything is made durable.
    Checkpoint,
    /// `fail next ...`.
    Fail(CallFault),
}

/// All of them, for who asks with another one.
const KNOWN: &str = "mark TEXT, cut, begin, end, unsynced, checkpoint, fail next fsync|write of \
                     PATH [with EIO|ENOSPC|EDQUOT] [times N]";

impl ControlWord {
    /// From a line without its end; `mount` is where the program works.
    pub fn of(line: &[u8], mount: &Path) -> Result<ControlWord, Usage> {
        // A mark is any bytes; all others are text.
        if let Some(text) = line.strip_prefix(b"mark ") {
            return match text.trim_ascii().is_empty() {
                true => usage!("mark: what does it acknowledge? (mark TEXT)"),
                false => Ok(ControlWord::Mark(text.to_vec())),
            };
        }
        let text = str::from_utf8(line).map_err(|_| Usage("this is no text".into()))?.trim();
        if let Some(of_lazyfs) = text.strip_prefix("lazyfs::") {
            return lazyfs::word(of_lazyfs);
        }
        match text {
            "cut" | "cut here" => Ok(ControlWord::Cut),
            "begin" => Ok(ControlWord::Begin),
            "end" => Ok(ControlWord::End),
            "unsynced" | "report unsynced" => Ok(ControlWord::Unsynced),
            "checkpoint" => Ok(ControlWord::Checkpoint),
            _ => match text.strip_prefix("fail ") {
                Some(rest) => Ok(ControlWord::Fail(fault(rest.trim(), mount)?)),
                None => usage!("'{}' is unknown: {KNOWN}", shortened(text)),
            },
        }
    }
}

/// As much of a line as a person reads.
fn shortened(text: &str) -> String {
    let short: String = text.chars().take(60).flat_map(char::escape_debug).collect();
    if text.chars().count() > 60 { short + "..." } else { short }
}

/// What follows `fail`.
fn fault(text: &str, mount: &Path) -> Result<CallFault, Usage> {
    let wrong = || Usage("fail next fsync|write of PATH [with EIO|ENOSPC|EDQUOT] [times N]".into());
    let (kind, rest) =
        text.strip_prefix("next ").ok_or_else(wrong)?.split_once(" of ").ok_or_else(wrong)?;
    let kind: FaultKind = kind.trim().parse().map_err(|_| wrong())?;
    let (rest, times) = match rest.rsplit_once(" times ") {
        Some((rest, number)) => (rest, number.trim().parse().map_err(|_| wrong())?),
        None => (rest, 1),
    };
    if !(1..=TIMES_MAX).contains(&times) {
        usage!("fail: times 1 to {TIMES_MAX}");
    }
    let (path, error) = match rest.rsplit_once(" with ") {
        Some((path, name)) => (path, name.trim().parse().map_err(|_| wrong())?),
        None => (rest, FaultError::Io),
    };
    Ok(CallFault { kind, path: path_in(path.trim(), mount)?, error, times })
}

/// A path in the mounted folder, as calls have it: the folder itself is "".
fn path_in(text: &str, mount: &Path) -> Result<Vec<u8>, Usage> {
    let said;
    let text = match text.starts_with('"') {
        true => {
            let quoted = serde_json::from_str::<String>(text);
            said = quoted.map_err(|e| Usage(format!("fail: {text}: {e}")))?;
            &said
        }
        false => text,
    };
    let path = Path::new(text);
    let inside = match path.is_absolute() {
        true => path
            .strip_prefix(mount)
            .map_err(|_| Usage(format!("fail: {text}: it is not in {}", mount.display())))?,
        false => path,
    };
    let parts = inside.components().filter(|part| *part != std::path::Component::CurDir);
    let parts: Vec<&[u8]> = parts.map(|part| part.as_os_str().as_encoded_bytes()).collect();
    if parts.contains(&&b".."[..]) {
        usage!("fail: {text}: '..' is not followed");
    }
    match text.is_empty() {
        true => usage!("fail: of which path? ('.' is the folder itself, '*' any file)"),
        false => Ok(parts.join(&b'/')),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(line: &str) -> Result<ControlWord, String> {
        ControlWord::of(line.as_bytes(), Path::new("/m")).map_err(|e| e.to_string())
    }

    fn fails(line: &str) -> (FaultKind, String, FaultError, u32) {
        match word(line) {
            Ok(ControlWord::Fail(CallFault { kind, path, error, times })) => {
                (kind, String::from_utf8(path).unwrap(), error, times)
            }
            other => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn words_are_understood() {
        assert_eq!(word("mark acked 17"), Ok(ControlWord::Mark(b"acked 17".to_vec())));
        assert_eq!(
            ControlWord::of(b"mark \xff", Path::new("/")).unwrap(),
            ControlWord::Mark(b"\xff".to_vec())
        );
        for (line, expected) in [
            ("cut", ControlWord::Cut),
            ("cut here ", ControlWord::Cut),
            ("begin", ControlWord::Begin),
            ("end", ControlWord::End),
            ("unsynced", ControlWord::Unsynced),
            ("report unsynced", ControlWord::Unsynced),
            ("checkpoint", ControlWord::Checkpoint),
            ("lazyfs::clear-cache", ControlWord::Cut),
        ] {
            assert_eq!(word(line), Ok(expected), "{line}");
        }
    }

    #[test]
    fn failures_are_understood() {
        use FaultError::{Io, NoSpace, Quota};
        use FaultKind::{Fsync, Write};
        for (line, expected) in [
            ("fail next fsync of db", (Fsync, "db", Io, 1)),
            ("fail next write of ./a/b with ENOSPC", (Write, "a/b", NoSpace, 1)),
            ("fail next fsync of /m/d/f with EIO times 3", (Fsync, "d/f", Io, 3)),
            ("fail next fsync of . times 2", (Fsync, "", Io, 2)),
            ("fail next write of *", (Write, "*", Io, 1)),
            ("fail next write of a b with EDQUOT", (Write, "a b", Quota, 1)),
            (r#"fail next write of "x with EIO""#, (Write, "", Io, 1)),
        ] {
            if line.contains('"') {
                // A name that looks like the rest of a request is quoted, and ends it.
                assert!(word(line).is_err(), "{line}");
                continue;
            }
            let (kind, path, error, times) = expected;
            assert_eq!(fails(line), (kind, path.to_owned(), error, times), "{line}");
        }
        let quoted = fails(r#"fail next write of "of with times" with EIO times 1"#);
        assert_eq!(quoted.1, "of with times");
    }

    #[test]
    fn others_are_refused_with_a_reason() {
        for (line, why) in [
            ("", "'' is unknown: mark TEXT, cut"),
            ("mark", "is unknown"),
            ("mark  ", "what does it acknowledge"),
            ("CUT", "'CUT' is unknown"),
            ("fail fsync of x", "fail next fsync|write of PATH"),
            ("fail next read of x", "fail next fsync|write of PATH"),
            ("fail next fsync of x with EPERM", "fail next fsync|write of PATH"),
            ("fail next fsync of x times 0", "times 1 to 1000"),
            ("fail next fsync of x times 99999", "times 1 to 1000"),
            ("fail next fsync of ../x", "'..' is not followed"),
            ("fail next fsync of /etc/passwd", "it is not in /m"),
            ("lazyfs::torn-op::file=x", "torn-op"),
        ] {
            let said = word(line).unwrap_err();
            assert!(said.contains(why), "{line}: {said}");
        }
        assert!(ControlWord::of(&[0xff; 9], Path::new("/m")).unwrap_err().0.contains("no text"));
        let long = word(&"x".repeat(60_000)).unwrap_err();
        assert!(long.len() < 400, "{long}");
    }
}
