//! dd's copies and hdparm's timings as a scenario has them.

use steadfast_bench::dd::place::{DdPath, OWN_DISK, is_disk_and_file, named};
use steadfast_bench::hdparm::line::{self, TimingSelection};

use super::LineError;
use crate::run::operands;

/// A copy by dd, timed.
#[derive(Debug, Clone, PartialEq)]
pub struct DdSpec {
    /// What its row is called.
    pub test: String,
    /// dd's operands.
    pub operands: String,
    /// Others without `--full`.
    pub quick: Option<String>,
    /// Operands of copies that are made before and not timed.
    pub before: Vec<String>,
    /// What the page cache holds is let go of before.
    pub cold: bool,
    /// Names of the variants that run it; all that are measured, if there are none.
    pub variants: Vec<String>,
}

impl DdSpec {
    /// The operands of a run.
    pub fn line(&self, full: bool) -> &str {
        self.quick.as_deref().filter(|_| !full).unwrap_or(&self.operands)
    }

    /// Whether a variant runs it.
    pub(crate) fn is_for(&self, variant: &str) -> bool {
        self.variants.is_empty() || self.variants.iter().any(|name| name == variant)
    }

    /// All operands that it has.
    pub fn lines(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.operands).chain(&self.quick).chain(&self.before)
    }
}

/// Reads timed as hdparm does.
#[derive(Debug, Clone, PartialEq)]
pub struct HdparmSpec {
    /// The command line, without the program's name.
    pub line: String,
    /// What is to be timed.
    pub wanted: TimingSelection,
    /// Of what: devices by their names, files by their paths.
    pub targets: Vec<String>,
    /// Operands of dd: copies that are made before files are timed.
    pub before: Vec<String>,
}

impl HdparmSpec {
    /// Reads the command line.
    ///
    /// # Errors
    /// It is none.
    pub fn parse(text: &str, before: Vec<String>) -> Result<HdparmSpec, LineError> {
        let (wanted, targets) = line::parse(text)?;
        Ok(HdparmSpec { line: text.to_owned(), wanted, targets, before })
    }

    /// The names of its rows.
    pub fn tests(&self, target: &str) -> impl Iterator<Item = String> {
        let direct = if self.wanted.direct { " --direct" } else { "" };
        let options = [("-T", self.wanted.cached), ("-t", self.wanted.disk)];
        let wanted = options.into_iter().filter(|(_, wanted)| *wanted);
        wanted
            .map(move |(option, _)| format!("hdparm {option}{direct} {target}"))
            .collect::<Vec<_>>()
            .into_iter()
    }
}

/// Whether a target is a file of the variant's file system.
pub(crate) fn is_file(target: &str) -> bool {
    target.starts_with('/')
}

/// Looks at dd's operands: what is wrong with them in a scenario.
pub(crate) fn check_operands(line: &str) -> Result<(), LineError> {
    let quoted = |word: &&str| {
        let value = word.split_once('=').map_or(*word, |(_, value)| value);
        value.starts_with(['"', '\'']) || word.starts_with(['"', '\''])
    };
    if let Some(word) = line.split_whitespace().find(quoted) {
        return Err(LineError::Quoted(word.to_owned()));
    }
    let operands = operands(line)?;
    for (key, path) in [("if", &operands.input), ("of", &operands.output)] {
        match path.as_deref().map(named) {
            None => return Err(LineError::NoPath(key)),
            Some(DdPath::Host(_)) => return Err(LineError::HostPath(key)),
            Some(_) => {}
        }
    }
    if is_disk_and_file(&operands) {
        return Err(LineError::FileOfCopiedDisk);
    }
    let is = |path: &Option<std::ffi::OsString>, sorts: fn(&DdPath<'_>) -> bool| {
        path.as_deref().map(named).is_some_and(|named| sorts(&named))
    };
    let endless = is(&operands.input, |n| matches!(n, DdPath::Zero | DdPath::Random));
    let takes_all =
        is(&operands.output, |n| matches!(n, DdPath::Zero | DdPath::Null | DdPath::Random));
    if endless && takes_all && operands.count_blocks.is_none() && operands.count_bytes == 0 {
        return Err(LineError::Endless);
    }
    Ok(())
}

/// The devices that dd's operands name.
pub(crate) fn devices(line: &str) -> Vec<String> {
    let Ok(operands) = operands(line) else { return Vec::new() };
    let name = |path: &std::ffi::OsString| match named(path) {
        DdPath::Device(name) if name != OWN_DISK => Some(name.to_owned()),
        _ => None,
    };
    [&operands.input, &operands.output].into_iter().flatten().filter_map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_scenario_cannot_have_is_refused() {
        for line in ["if=/dev/zero of=/f bs=4k count=3", "if=/dev/zero of=/it's count=1"] {
            assert_eq!(check_operands(line), Ok(()));
        }
        for (line, message) in [
            ("if=/dev/zero", "of= is missing"),
            ("of=/f", "if= is missing"),
            ("if=host:/etc/fstab of=/f", "if=host"),
            ("if=/dev/zero of=/f bs=0", "invalid number"),
            ("if=/dev/zero of=/dev/null bs=1M", "never ends"),
            ("if='/dev/zero' of=/f", "'/dev/zero': quotes"),
            ("if=device:@disk of=/f", "the disk itself, @disk"),
        ] {
            assert!(check_operands(line).unwrap_err().to_string().contains(message), "{line}");
        }
        assert_eq!(devices("if=device:card of=/dev/null"), ["card"]);
        assert!(devices("if=device:@disk of=/dev/null").is_empty());
        let spec = HdparmSpec::parse("-Tt --direct card /f", vec![]).unwrap();
        let names: Vec<String> = spec.tests("card").collect();
        assert_eq!(names, ["hdparm -T --direct card", "hdparm -t --direct card"]);
        assert!(is_file("/f") && !is_file("card"));
    }
}
