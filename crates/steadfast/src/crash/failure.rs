//! A finding, described.

use std::fmt;
use std::io::Write;

use steadfast_crash::program::describe::{
    counted, print_calls, print_decisive, print_tree, print_writes, since,
};
use steadfast_crash::program::explore::{Exploration, ExplorationReport, Wrong, WrongState};
use steadfast_crash::program::{Names, recover};
use steadfast_ext4::MountOptions;

/// Calls before the cut that are printed.
const CALLS: usize = 20;
/// Recoveries that are spent to find the writes that matter.
const SHRINK_RECOVERIES: u32 = 200;

/// Why a test failed. In words, also for `unwrap`: what is wrong, and how it came to that.
///
/// ```
/// use steadfast::crash::PowerCut;
///
/// let test = PowerCut::new().cuts(20).run(|fs| fs.write("/file", "text"));
/// let failure = test.judge(|left| left.read("/file").map(drop)).unwrap_err();
/// assert!(failure.is_finding());
/// assert!(failure.to_string().contains("The last that happened before:"));
/// ```
pub struct Failure {
    is_finding: bool,
    text: String,
}

impl Failure {
    pub(super) fn not_run(why: impl ToString) -> Failure {
        Failure { is_finding: false, text: why.to_string() }
    }

    /// The same, with one line more.
    pub(super) fn and(self, line: &str) -> Failure {
        Failure { text: format!("{}\n\n{line}", self.text.trim_end()), ..self }
    }

    /// Whether a cut left something wrong; else the program itself failed, or the machine.
    ///
    /// ```
    /// use steadfast::crash::PowerCut;
    ///
    /// let test = PowerCut::new().run(|fs| fs.remove_file("/none"));
    /// let failure = test.check().unwrap_err();
    /// assert!(!failure.is_finding());
    /// assert!(failure.to_string().starts_with("the program failed: remove_file /none"));
    /// ```
    pub fn is_finding(&self) -> bool {
        self.is_finding
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text.trim_end())
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Failure {}

/// Describes a finding.
pub(super) fn describe_finding(
    exploration: &Exploration<'_>,
    options: &MountOptions,
    outcome: &ExplorationReport,
    finding: &WrongState,
) -> Failure {
    let mut text = Vec::new();
    // OK to ignore: a vector takes everything.
    let _ = describe(exploration, options, outcome, finding, &mut text);
    Failure { is_finding: true, text: String::from_utf8_lossy(&text).into_owned() }
}

fn describe(
    exploration: &Exploration<'_>,
    options: &MountOptions,
    outcome: &ExplorationReport,
    finding: &WrongState,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    let run = exploration.run;
    for wrong in &finding.wrong {
        writeln!(out, "{}", wrong.what())?;
        if let Wrong::Judge(_, output) = wrong {
            output.lines().skip(1).try_for_each(|line| writeln!(out, "  | {line}"))?;
        }
    }
    writeln!(
        out,
        "{} of {} are wrong; state {}, the first, is of a power cut {:.6} s after the beginning.",
        outcome.bad_states,
        counted(outcome.states, "state"),
        finding.state,
        since(run, finding.cut.at)
    )?;
    let Some(state) = exploration.state(finding.state) else { return Ok(()) };
    let lines = &run.lines[..run.printed_before(state.cut.tick)];
    if let Some(last) = lines.last() {
        let (count, last) = (lines.len() as u64, String::from_utf8_lossy(&last.text));
        let count = counted(count, "acknowledgement");
        writeln!(out, "{count} had been made, the last of them: {last}")?;
    }
    print_calls(run, &state, CALLS, out)?;
    let names = run.names(&state, |contents| Names::of(contents, options));
    print_writes(run, &names, &state, out)?;
    let Ok(base) = exploration.base() else { return Ok(()) };
    let recovered = recover(exploration.system, state.contents.clone());
    if let Ok(Ok(tree)) = recovered.map(|recovered| recovered.tree) {
        print_tree(&tree, &base, out)?;
    }
    match exploration.shrink(&state, &base, SHRINK_RECOVERIES, &|| true) {
        Ok(decisive) => print_decisive(run, &names, &decisive, out),
        Err(why) => writeln!(out, "\nNot shrunk: {why}"),
    }
}
