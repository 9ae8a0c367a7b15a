//! A line of strace's text: `PID TIME CALL(ARGUMENTS) = RESULT <SECONDS>`.

/// A call of a line, whole.
#[derive(Debug, PartialEq)]
pub(super) struct StraceCall {
    pub thread: u32,
    pub name: String,
    /// As they are printed.
    pub arguments: Vec<String>,
    /// The value, or below 0 the error.
    pub result: i64,
    /// Of a descriptor the path that it leads to.
    pub result_path: Option<Vec<u8>>,
    /// ns since 1970.
    pub start: u64,
    pub end: u64,
}

/// Whether a line is one of strace's with all that is needed.
pub(super) fn is_line(line: &str) -> bool {
    let Some((_, _, rest)) = head(line) else { return false };
    rest.contains('(') && rest.ends_with('>') || rest.starts_with("+++") || rest.starts_with("---")
}

/// The thread, the time in ns, and the rest.
pub(super) fn head(line: &str) -> Option<(u32, u64, &str)> {
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
    let ns = ns.checked_add(micros.parse::<u64>().ok()? * 1000)?;
    Some((thread.parse().ok()?, ns, rest))
}

/// The rest of a line, as a call.
pub(super) fn parse(thread: u32, start: u64, text: &str) -> Option<StraceCall> {
    let (name, rest) = text.split_once('(')?;
    let (rest, took) = rest.rsplit_once(" <")?;
    let took = took.strip_suffix('>')?.parse::<f64>().ok().filter(|s| (0.0..1e6).contains(s))?;
    let (arguments, result) = halves(rest)?;
    // A descriptor has its path behind it: `3</tmp/x>`, `3</tmp/x>(deleted)`.
    let path = path_of(result);
    let value = result.split_once('<').map_or(result, |(value, _)| value);
    let word = value.split_whitespace().next()?;
    let mut result = match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok()? as i64,
        None => word.parse::<i64>().ok()?,
    };
    if result == -1 {
        result = -super::errno::errno(value.split_whitespace().nth(1)?)?;
    }
    Some(StraceCall {
        thread,
        name: name.trim().to_owned(),
        arguments: split(arguments),
        result,
        result_path: path,
        start,
        end: start.saturating_add((took * 1e9) as u64),
    })
}

/// The arguments and the result. A path may have ` = ` in it.
fn halves(text: &str) -> Option<(&str, &str)> {
    text.rmatch_indices(" = ").find_map(|(at, between)| {
        let arguments = text[..at].trim_end().strip_suffix(')')?;
        let result = &text[at + between.len()..];
        result.starts_with(|c: char| c == '-' || c.is_ascii_digit()).then_some((arguments, result))
    })
}

/// Arguments, by the commas that are in no brackets, no path and no text.
fn split(text: &str) -> Vec<String> {
    let (mut all, mut one, mut depth, mut in_text, mut in_path, mut escaped) =
        (Vec::new(), String::new(), 0usize, false, false, false);
    for c in text.chars() {
        match c {
            _ if escaped => escaped = false,
            '\\' if in_text => escaped = true,
            '>' if in_path => in_path = false,
            _ if in_path => {}
            '"' => in_text = !in_text,
            _ if in_text => {}
            '<' => in_path = true,
            '{' | '[' | '(' => depth += 1,
            '}' | ']' | ')' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
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

/// A number at the beginning of a word: `3</tmp/x>`, `4096`.
pub(super) fn number(word: &str) -> Option<i64> {
    let digits = word.split(['<', ' ', '*']).next()?;
    match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok().map(|n| n as i64),
        None => digits.parse().ok(),
    }
}

/// The path in the angle brackets of a descriptor. (What is no path is in no brackets, or begins
/// otherwise: `3<socket:[7]>`.)
pub(super) fn path_of(word: &str) -> Option<Vec<u8>> {
    let text = word.split_once('<')?.1.rsplit_once('>')?.0;
    text.starts_with('/').then(|| bytes_of(text)).flatten()
}

/// The bytes in quotation marks. (-s0 does not shorten paths.)
pub(super) fn unquoted(word: &str) -> Option<Vec<u8>> {
    bytes_of(word.strip_prefix('"')?.strip_suffix('"')?)
}

/// The bytes of a text with C's escapes.
fn bytes_of(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes().peekable();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        match rest.next()? {
            b'n' => bytes.push(b'\n'),
            b't' => bytes.push(b'\t'),
            b'r' => bytes.push(b'\r'),
            b'v' => bytes.push(11),
            b'f' => bytes.push(12),
            b'x' => {
                let hex: Vec<u8> = rest.by_ref().take(2).collect();
                bytes.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
            }
            digit @ b'0'..=b'7' => {
                let mut code = u32::from(digit - b'0');
                for _ in 0..2 {
                    if let Some(next @ b'0'..=b'7') = rest.peek().copied() {
                        code = code * 8 + u32::from(next - b'0');
                        rest.next();
                    }
                }
                bytes.push(u8::try_from(code).ok()?);
            }
            other => bytes.push(other),
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_understood() {
        let of = |line: &str| {
            let (thread, time, rest) = head(line)?;
            parse(thread, time, rest)
        };
        let line = "20404 1795833941.910541 write(1</tmp/a,b (c\">, \"\"..., 2) = 2 <0.000025>";
        assert!(is_line(line));
        let call = of(line).unwrap();
        assert_eq!((call.thread, call.name.as_str(), call.result), (20404, "write", 2));
        assert_eq!(call.arguments, ["1</tmp/a,b (c\">", "\"\"...", "2"]);
        assert_eq!((call.start, call.end - call.start), (1_795_833_941_910_541_000, 25_000));
        let line =
            "[pid 7] 1795833941.888698 openat(AT_FDCWD</x>, \"d\", O_RDONLY) = 3</x/d = 4> <0.1>";
        let call = of(line).unwrap();
        assert_eq!(
            (call.thread, call.result, call.result_path.unwrap()),
            (7, 3, b"/x/d = 4".into())
        );
        let line = "7 1795833941.888698 dup2(4<pipe:[7]>, 1</x>) = 1<pipe:[7]> <0.1>";
        assert_eq!(of(line).map(|call| (call.result, call.result_path)), Some((1, None)));
        for (error, result) in [
            ("ENOENT (No such file or directory)", Some(-2)),
            ("ECHILD (No child processes)", Some(-10)),
            ("EODD (what is not known)", None),
        ] {
            let line = format!("7 1795833941.888698 unlink(\"d\") = -1 {error} <0.1>");
            assert_eq!(of(&line).map(|call| call.result), result, "{error}");
        }
        for other in
            ["", "7 12:00:01 read(3) = 0", "read(3</x>, \"\", 1) = 0 <0.1>", "7 0.000012 x() = 0"]
        {
            assert!(!is_line(other), "{other}");
        }
    }

    #[test]
    fn paths_and_texts_have_escapes() {
        let path = |word: &str| path_of(word);
        assert_eq!(
            path(r"3</tmp/w\303\274/a\76b>(deleted)").unwrap(),
            "/tmp/w\u{fc}/a>b".as_bytes()
        );
        assert_eq!(unquoted(r#""\303\274\n\x41""#).unwrap(), "\u{fc}\nA".as_bytes());
        assert_eq!((path("3<socket:[7]>"), path("3"), unquoted("\"a")), (None, None, None));
        assert_eq!(
            (path(r"3</\777>"), unquoted("\"\\"), unquoted(r#""\xzz""#)),
            (None, None, None)
        );
    }
}
