//! The text of `strace -f -ttt -T -y -s0`, with or without `--seccomp-bpf`: lines.
//!
//! A line is `PID TIME CALL(ARGUMENTS) = RESULT <SECONDS>`; of a call that another one interrupts,
//! two: `CALL(ARGUMENTS <unfinished ...>` and `<... CALL resumed>ARGUMENTS) = RESULT <SECONDS>`.

use std::collections::HashMap;
use std::path::Path;

use super::build::TraceBuild;
use super::strace_calls::Processes;

/// A call of a line, whole.
#[derive(Debug, PartialEq)]
pub(super) struct StraceCall {
    pub thread: u32,
    pub name: String,
    /// As they are printed.
    pub arguments: Vec<String>,
    /// The value, and after it what is printed of a descriptor: its path.
    pub result: i64,
    pub result_path: Option<String>,
    /// ns since 1970.
    pub start: u64,
    pub end: u64,
}

/// Whether a line is one of strace's with all that is needed.
pub(super) fn is_line(line: &str) -> bool {
    let Some((_, _, rest)) = head(line) else { return false };
    rest.contains('(') && rest.ends_with('>') || rest.starts_with("+++") || rest.starts_with("---")
}

/// Reads all lines.
pub(super) fn read(lines: &[String], folder: &Path, build: &mut TraceBuild) -> Result<(), String> {
    if !folder.is_absolute() {
        return Err("name the folder that counts (--folder DIR)".into());
    }
    let mut processes = Processes::new(folder);
    // Of each thread the call that has not returned: when it began, its text, and its line.
    let mut begun: HashMap<u32, (u64, String, u64)> = HashMap::new();
    for line in lines {
        let number = build.next_line();
        let Some((thread, time, rest)) = head(line) else {
            build.leave_out("no line of strace -f -ttt");
            continue;
        };
        if rest.starts_with("+++") {
            build.exited(thread);
            continue;
        }
        if rest.starts_with("---") {
            continue;
        }
        if let Some(text) = rest.strip_suffix("<unfinished ...>") {
            begun.insert(thread, (time, text.trim_end().to_owned(), number));
            continue;
        }
        let (time, text) = match rest.strip_prefix("<... ").and_then(|r| r.split_once(" resumed>"))
        {
            None => (time, rest.to_owned()),
            Some((_, more)) => match begun.remove(&thread) {
                Some((time, text, _)) => (time, format!("{text}{more}")),
                // --seccomp-bpf: what is not traced is not begun.
                None => {
                    build.leave_out("resumed, and its beginning is not there");
                    continue;
                }
            },
        };
        match parse(thread, time, &text) {
            Some(call) => processes.call(&call, build),
            None => build.leave_out(match text.contains(" = ?") {
                true => "has not returned",
                false => "not understood (is -T missing?)",
            }),
        }
    }
    build.leave_out_lines(begun.into_values().map(|(.., line)| line), "has not returned");
    Ok(())
}

/// The thread, the time in ns, and the rest.
fn head(line: &str) -> Option<(u32, u64, &str)> {
    let line = line.strip_prefix("[pid ").map_or(line, |rest| rest.trim_start());
    let (thread, rest) = line.split_once([' ', ']'])?;
    let rest = rest.trim_start_matches([' ', ']']);
    let (time, rest) = rest.split_once(' ')?;
    let (seconds, micros) = time.split_once('.')?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !is_number(seconds) || micros.len() != 6 || !is_number(micros) || seconds.len() < 9 {
        return None;
    }
    let ns = seconds.parse::<u64>().ok()?.checked_mul(1_000_000_000)?;
    Some((thread.parse().ok()?, ns + micros.parse::<u64>().ok()? * 1000, rest))
}

fn parse(thread: u32, start: u64, text: &str) -> Option<StraceCall> {
    let (name, rest) = text.split_once('(')?;
    let (rest, took) = rest.rsplit_once(" <")?;
    let took = took.strip_suffix('>')?.parse::<f64>().ok().filter(|s| (0.0..1e6).contains(s))?;
    let (arguments, result) = rest.rsplit_once(" = ")?;
    let arguments = arguments.trim_end().strip_suffix(')')?;
    // A descriptor has its path behind it: `3</tmp/x>`.
    let (value, path) = match result.split_once('<') {
        Some((value, path)) => (value, path.rsplit_once('>').map(|(path, _)| path.to_owned())),
        None => (result, None),
    };
    let word = value.split_whitespace().next()?;
    let mut result = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => word.parse::<i64>().ok()?,
    };
    if result == -1 {
        result = -errno(value.split_whitespace().nth(1)?)?;
    }
    Some(StraceCall {
        thread,
        name: name.trim().to_owned(),
        arguments: split(arguments),
        result,
        result_path: path,
        start,
        end: start + (took * 1e9) as u64,
    })
}

/// Arguments, by the commas that are in no brackets and no text.
fn split(text: &str) -> Vec<String> {
    let (mut all, mut one, mut depth, mut in_text, mut escaped) =
        (Vec::new(), String::new(), 0usize, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '"' => in_text = !in_text,
            '{' | '[' | '(' | '<' if !in_text => depth += 1,
            '}' | ']' | ')' | '>' if !in_text => depth = depth.saturating_sub(1),
            ',' if !in_text && depth == 0 => {
                all.push(std::mem::take(&mut one).trim().to_owned());
                continue;
            }
            _ => {}
        }
        one.push(c);
    }
    if !one.trim().is_empty() {
        all.push(one.trim().to_owned());
    }
    all
}

/// The number of an error's name.
fn errno(name: &str) -> Option<i64> {
    let known = [
        ("EPERM", libc_number(rustix::io::Errno::PERM)),
        ("ENOENT", libc_number(rustix::io::Errno::NOENT)),
        ("EINTR", libc_number(rustix::io::Errno::INTR)),
        ("EIO", libc_number(rustix::io::Errno::IO)),
        ("EBADF", libc_number(rustix::io::Errno::BADF)),
        ("EAGAIN", libc_number(rustix::io::Errno::AGAIN)),
        ("EACCES", libc_number(rustix::io::Errno::ACCESS)),
        ("EBUSY", libc_number(rustix::io::Errno::BUSY)),
        ("EEXIST", libc_number(rustix::io::Errno::EXIST)),
        ("EXDEV", libc_number(rustix::io::Errno::XDEV)),
        ("ENOTDIR", libc_number(rustix::io::Errno::NOTDIR)),
        ("EISDIR", libc_number(rustix::io::Errno::ISDIR)),
        ("EINVAL", libc_number(rustix::io::Errno::INVAL)),
        ("ETXTBSY", libc_number(rustix::io::Errno::TXTBSY)),
        ("EFBIG", libc_number(rustix::io::Errno::FBIG)),
        ("ENOSPC", libc_number(rustix::io::Errno::NOSPC)),
        ("ESPIPE", libc_number(rustix::io::Errno::SPIPE)),
        ("EROFS", libc_number(rustix::io::Errno::ROFS)),
        ("EMLINK", libc_number(rustix::io::Errno::MLINK)),
        ("ENAMETOOLONG", libc_number(rustix::io::Errno::NAMETOOLONG)),
        ("ENOTEMPTY", libc_number(rustix::io::Errno::NOTEMPTY)),
        ("ELOOP", libc_number(rustix::io::Errno::LOOP)),
        ("ENODATA", libc_number(rustix::io::Errno::NODATA)),
        ("EOPNOTSUPP", libc_number(rustix::io::Errno::OPNOTSUPP)),
        ("ENOTTY", libc_number(rustix::io::Errno::NOTTY)),
        ("ENOSYS", libc_number(rustix::io::Errno::NOSYS)),
    ];
    known.iter().find(|(known, _)| *known == name).map(|(_, number)| *number)
}

fn libc_number(e: rustix::io::Errno) -> i64 {
    e.raw_os_error().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let line = "20404 1795833941.910541 write(1</tmp/a,b (c)>, \"\"..., 2) = 2 <0.000025>";
        assert!(is_line(line));
        let (thread, time, rest) = head(line).unwrap();
        let call = parse(thread, time, rest).unwrap();
        assert_eq!((call.thread, call.name.as_str(), call.result), (20404, "write", 2));
        assert_eq!(call.arguments, ["1</tmp/a,b (c)>", "\"\"...", "2"]);
        assert_eq!((call.start, call.end - call.start), (1_795_833_941_910_541_000, 25_000));
        let line =
            "[pid 7] 1795833941.888698 openat(AT_FDCWD</x>, \"d\", O_RDONLY) = 3</x/d> <0.1>";
        let (thread, time, rest) = head(line).unwrap();
        let call = parse(thread, time, rest).unwrap();
        assert_eq!((thread, call.result, call.result_path.as_deref()), (7, 3, Some("/x/d")));
        let line =
            "7 1795833941.888698 unlink(\"d\") = -1 ENOENT (No such file or directory) <0.1>";
        let (thread, time, rest) = head(line).unwrap();
        assert_eq!(parse(thread, time, rest).unwrap().result, -2);
        for other in
            ["", "7 12:00:01 read(3) = 0", "read(3</x>, \"\", 1) = 0 <0.1>", "7 0.000012 x() = 0"]
        {
            assert!(!is_line(other), "{other}");
        }
    }
}
