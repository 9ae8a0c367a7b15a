//! dd's copies and hdparm's timings as a scenario has them.

use std::ffi::OsString;

use steadfast_bench::dd::place::{DdPath, OWN_DISK, is_disk_and_file, named};
use steadfast_bench::dd::{self, Charset, Operands, WrongOperand};
use steadfast_bench::hdparm::line::{self, TimingSelection};

use steadfast_setup::form::{Fields, FormValue, Value};
use steadfast_setup::table;

use super::line_error::LineError;

table! {
    /// A copy by dd, timed.
    pub struct DdSpec: "[[workload.dd]]", check DdSpec::check {
        /// What its row is called: `write`, `read` ...
        test: String;
        /// dd's operands; `device:NAME` is a device by itself.
        operands: String;
        /// The operands without `--full`.
        quick: Option<String>, else "`operands`";
        /// Operands of copies that are made before and not timed. Those of a variant run one after
        /// the other on one file system.
        before: Vec<String> = [];
        /// The page cache is dropped before the copy.
        cold: bool = true;
        /// Names of the variants that run it; if there are none, all that are measured.
        variants: Vec<String> = [];
    }
}

impl DdSpec {
    fn check(fields: &Fields<'_>, _: Option<&DdSpec>) {
        ["operands", "quick"].into_iter().for_each(|key| {
            fields.get::<String>(key).iter().for_each(|line| check_line(fields, key, line));
        });
        check_before(fields);
    }

    /// The operands of a run.
    pub fn line(&self, full: bool) -> &str {
        self.quick.as_deref().filter(|_| !full).unwrap_or(&self.operands)
    }

    /// All operands that it has.
    pub(super) fn lines(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.operands).chain(&self.quick).chain(&self.before)
    }
}

table! {
    /// Reads timed as hdparm does, as a file has them.
    pub struct HdparmForm: "[[workload.hdparm]]", check HdparmForm::check {
        /// Command line without the program's name: devices by name, each timed by itself, or files
        /// (`/f`) of every variant.
        line: String;
        /// dd's operands: copies that are made before files are timed.
        before: Vec<String> = [];
    }
}

impl HdparmForm {
    fn check(fields: &Fields<'_>, _: Option<&HdparmForm>) {
        check_before(fields);
    }
}

impl Value for HdparmSpec {
    const TITLE: Option<&'static str> = Some(HdparmForm::TITLE);

    fn read(place: &FormValue<'_>) -> Option<Self> {
        let fields = place.fields(HdparmForm::TITLE)?;
        let form = HdparmForm::read_whole(&fields)?;
        let help = "as `steadfast hdparm` has it, without its name";
        let wrong = |e: LineError| fields.wrong_line("line", &form.line, &e.to_string(), help);
        HdparmSpec::parse(&form.line, form.before.clone()).map_err(wrong).ok()
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

/// Notes tests that are called as another is.
pub(super) fn check(workload: &Fields<'_>) {
    let tables = workload.tables("dd");
    // A row is identified by its name, and so is a published figure.
    check_names(&tables, "test", "tests");
    for fields in &tables {
        if fields.get::<String>("test").is_some_and(|test| test.starts_with("hdparm ")) {
            fields.wrong("test", "what begins with `hdparm ` is hdparm's", "another name");
        }
    }
}

/// Notes tables whose `key` is the same as another's.
pub(super) fn check_names(tables: &[Fields<'_>], key: &str, what: &str) {
    let mut names: Vec<String> = Vec::new();
    for fields in tables {
        let Some(name) = fields.get::<String>(key) else { continue };
        if names.contains(&name) {
            fields.wrong(key, format!("two {what} are called `{name}`"), "");
        }
        names.push(name);
    }
}

fn check_before(fields: &Fields<'_>) {
    let lines: Vec<String> = fields.get("before").unwrap_or_default();
    lines.iter().for_each(|line| check_line(fields, "before", line));
}

fn check_line(fields: &Fields<'_>, key: &str, line: &str) {
    if let Err(e) = check_operands(line) {
        fields.wrong_line(key, line, &e.to_string(), "dd's operands: steadfast dd --help");
    }
}

/// dd's operands in a line.
pub(crate) fn operands(line: &str) -> Result<Operands, WrongOperand> {
    let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    dd::parse(&words, Charset::Ascii)
}

/// Looks at dd's operands: what is wrong with them in a scenario.
fn check_operands(line: &str) -> Result<(), LineError> {
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
    let is = |path: &Option<OsString>, sorts: fn(&DdPath<'_>) -> bool| {
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
