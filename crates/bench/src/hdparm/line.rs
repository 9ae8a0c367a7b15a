//! hdparm's command line, as far as it is about timings.

/// What is to be timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimingSelection {
    /// `-T`: reads from the cache.
    pub cached: bool,
    /// `-t`: reads from the device.
    pub disk: bool,
    /// `--direct`: past the page cache.
    pub direct: bool,
    /// `--offset`: with `-t`, so many GiB from the start.
    pub offset_gib: Option<u64>,
}

/// What is wrong with a command line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HdparmError {
    /// The offset is no number.
    #[error("--offset needs a whole number of GiB")]
    Offset,
    /// An option that is not one of ours.
    #[error("{0}: hdparm's options here are -T, -t, --direct and --offset GIB")]
    Unknown(String),
    /// Nothing is to be timed.
    #[error("it does not say what to time: -T, -t or both")]
    Nothing,
    /// Of nothing.
    #[error("it names no device or file")]
    NoTarget,
}

/// Reads a command line without the program's name: the options, and the devices or files.
///
/// # Errors
/// What is wrong with it.
pub fn parse(line: &str) -> Result<(TimingSelection, Vec<String>), HdparmError> {
    let (mut wanted, mut targets) = (TimingSelection::default(), Vec::new());
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--direct" => wanted.direct = true,
            "--offset" => {
                let gib = words.next().and_then(|n| n.parse().ok());
                wanted.offset_gib = Some(gib.ok_or(HdparmError::Offset)?);
            }
            _ if word.starts_with("--") => return Err(unknown(word)),
            _ => match word.strip_prefix('-') {
                Some(letters) if !letters.is_empty() => {
                    for letter in letters.chars() {
                        match letter {
                            'T' => wanted.cached = true,
                            't' => wanted.disk = true,
                            _ => return Err(unknown(&format!("-{letter}"))),
                        }
                    }
                }
                _ => targets.push(word.to_owned()),
            },
        }
    }
    match (wanted.cached || wanted.disk, targets.is_empty()) {
        (false, _) => Err(HdparmError::Nothing),
        (_, true) => Err(HdparmError::NoTarget),
        _ => Ok((wanted, targets)),
    }
}

fn unknown(option: &str) -> HdparmError {
    HdparmError::Unknown(option.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_or_refused() {
        let all = TimingSelection { cached: true, disk: true, ..TimingSelection::default() };
        assert_eq!(parse("-Tt card disk"), Ok((all, vec!["card".into(), "disk".into()])));
        assert_eq!(parse("-T -t card").unwrap().0, all);
        let (wanted, targets) = parse("--direct -t --offset 3 /file").unwrap();
        assert_eq!((wanted.direct, wanted.disk, wanted.offset_gib), (true, true, Some(3)));
        assert_eq!(targets, ["/file"]);
        for (line, message) in [
            ("card", "what to time"),
            ("-T", "names no device"),
            ("-Tz card", "-z"),
            ("--security card", "--security"),
            ("-t --offset x card", "whole number"),
        ] {
            assert!(parse(line).unwrap_err().to_string().contains(message), "{line}");
        }
    }
}
