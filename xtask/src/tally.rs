//! Counting what `cargo test` prints.
//!
//! A test that cannot run here (no root, no loop devices) says so itself: it prints a line
//! `SKIPPED: reason` and returns. To the test harness it has passed; here it has not.
//! For such lines to be seen the tests run with `--show-output`, which repeats what each passing
//! test has printed (but for the examples in documentation, none of which may say it: see
//! `tidy`). `LEFT TO SOAK: reason` says the same of what `cargo xtask soak` runs, and is no fault;
//! the rest of that is left out of the report, but for lines `FIGURES: ...`: what a test has
//! measured or counted.

/// The harness's results, summed over the test binaries.
#[derive(Debug, Default)]
pub struct Tally {
    passed: u64,
    failed: u64,
    ignored: u64,
    /// One for each test that skipped itself: its name and why.
    skipped: Vec<(String, String)>,
    /// The same of those that are left to the soak.
    left: Vec<(String, String)>,
    /// A binary has been started whose result has not come.
    open: Option<String>,
    /// Binaries that ended without a result: they crashed.
    crashed: Vec<String>,
    in_successes: bool,
    /// The test whose output is repeated.
    current: String,
    /// The test that runs, where they run one after the other.
    running: Option<String>,
}

/// What a line has said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read<'a> {
    /// What of it should be shown.
    pub show: Option<&'a str>,
    /// The test that has ended.
    pub ended: Option<String>,
}

impl Tally {
    /// Of one binary, which has been started.
    pub fn of(binary: &str) -> Tally {
        Tally { open: Some(binary.to_owned()), ..Tally::default() }
    }

    /// Reads one line.
    pub fn line<'a>(&mut self, line: &'a str) -> Read<'a> {
        let line = line.trim_end();
        // The harness prints a test's name before it runs it, and its result afterwards; what the
        // test prints past the harness stands between the two.
        let (name, rest) = match test_line(line) {
            Some((name, rest)) if !self.in_successes => (Some(name), rest),
            _ => (None, line),
        };
        if let Some(name) = name {
            self.running = Some(name.to_owned());
        }
        if let Some(ended) = self.running.take_if(|_| is_result(rest)) {
            return Read { show: (rest == "FAILED").then_some(line), ended: Some(ended) };
        }
        Read { show: self.other_line(rest).then_some(rest), ended: None }
    }

    /// Reads a line that is no test's; whether it should be shown.
    fn other_line(&mut self, line: &str) -> bool {
        if let Some(binary) = started(line) {
            self.end_binary();
            self.open = Some(binary.to_owned());
            return false;
        } else if let Some(counts) = line.strip_prefix("test result: ") {
            self.open = None;
            self.in_successes = false;
            self.add(counts);
            return false;
        } else if line == "successes:" {
            self.in_successes = true;
        } else if line == "failures:" {
            self.in_successes = false;
        } else if let Some(test) = header(line) {
            self.current = test.to_owned();
        } else if let Some(reason) = line.strip_prefix("SKIPPED:") {
            // A test may give several reasons; it is one test.
            if self.skipped.last().is_none_or(|(test, _)| *test != self.current) {
                self.skipped.push((self.current.clone(), reason.trim().to_owned()));
            }
            return true;
        } else if let Some(reason) = line.strip_prefix("LEFT TO SOAK:") {
            self.left.push((self.current.clone(), reason.trim().to_owned()));
            return true;
        } else if line.starts_with("FIGURES:") || line.starts_with("FOUND:") {
            return true;
        }
        !(self.in_successes || line.is_empty() || is_of_the_harness(line))
    }

    /// Adds what another one has counted.
    pub fn add_all(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.ignored += other.ignored;
        self.skipped.extend(other.skipped);
        self.left.extend(other.left);
        self.crashed.extend(other.crashed);
    }

    /// The tests are over; `ended_well` is what cargo says.
    pub fn finish(&mut self, ended_well: bool) {
        self.end_binary();
        if !ended_well && self.failed() == 0 {
            self.crashed.push("the tests did not build or did not start".to_owned());
        }
    }

    fn end_binary(&mut self) {
        if let Some(binary) = self.open.take() {
            self.crashed.push(binary);
        }
        self.in_successes = false;
    }

    /// Adds up `ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; ...`.
    fn add(&mut self, counts: &str) {
        let (_, counts) = counts.split_once(". ").unwrap_or(("", counts));
        for part in counts.split(';') {
            let Some((number, what)) = part.trim().split_once(' ') else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }

    /// The test that has begun and not ended.
    pub fn running(&self) -> Option<&str> {
        self.running.as_deref()
    }

    pub fn passed(&self) -> u64 {
        self.passed.saturating_sub((self.skipped.len() + self.left.len()) as u64)
    }

    pub fn failed(&self) -> u64 {
        self.failed + self.crashed.len() as u64
    }

    pub fn skipped(&self) -> u64 {
        self.ignored + self.skipped.len() as u64
    }

    /// What a reader must know beside the numbers, a line each.
    pub fn remarks(&self) -> Vec<String> {
        let crashed = self.crashed.iter().map(|b| format!("ended without a result: {b}"));
        let skipped = self.skipped.iter().map(|(test, why)| format!("skipped: {test}: {why}"));
        let left = self.left.iter().map(|(test, why)| format!("left to soak: {test}: {why}"));
        let mut remarks: Vec<String> = crashed.chain(skipped).chain(left).collect();
        if self.ignored > 0 {
            remarks.push(format!("{} tests are marked to be ignored", self.ignored));
        }
        remarks
    }
}

/// The binary that cargo says it runs now.
fn started(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let rest = line.strip_prefix("Running ").or_else(|| line.strip_prefix("Doc-tests "))?;
    // `Running unittests src/lib.rs (target/...)`: a test's own output hardly looks like it.
    (line.starts_with("Doc-tests") || rest.contains(" (")).then_some(rest)
}

/// The test whose output follows: `---- name stdout ----`.
fn header(line: &str) -> Option<&str> {
    line.strip_prefix("---- ")?.strip_suffix(" stdout ----")
}

/// The name of a test, and what follows: `test name ... ok`.
fn test_line(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("test ")?.split_once(" ...")?;
    Some((name, rest.trim_start()))
}

fn is_result(text: &str) -> bool {
    text == "ok" || text == "FAILED" || text.starts_with("ignored")
}

/// How many tests there are, and how long rustdoc has taken for those of a crate.
fn is_of_the_harness(line: &str) -> bool {
    let number = line.strip_prefix("running ").and_then(|rest| rest.split_once(" test"));
    let is_number = number.is_some_and(|(number, _)| number.parse::<u64>().is_ok());
    is_number || line.starts_with("all doctests ran in ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OUTPUT: &str = "\
     Running unittests src/lib.rs (target/debug/deps/a-1)

running 3 tests
test one ... ok
test two ... ok
test three ... FAILED

successes:

---- two stdout ----
noise
FIGURES: 3 cuts, 4 states
SKIPPED: needs root
SKIPPED: and a loop device

successes:
    one
    two

failures:

---- three stdout ----
boom

failures:
    three

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
     Running tests/b.rs (target/debug/deps/b-1)
error: test failed, to rerun pass `-p b` (signal: 11, SIGSEGV)
   Doc-tests a
test result: ok. 4 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s

all doctests ran in 0.30s; merged doctests compilation took 0.20s
";

    #[test]
    fn results_are_summed_skips_counted_and_crashes_seen() {
        let mut tally = Tally::default();
        let shown: Vec<&str> = OUTPUT.lines().filter_map(|l| tally.line(l).show).collect();
        tally.finish(false);
        assert_eq!((tally.passed(), tally.failed(), tally.skipped()), (5, 2, 2));
        assert!(shown.contains(&"boom") && shown.contains(&"SKIPPED: needs root"));
        assert!(shown.contains(&"FIGURES: 3 cuts, 4 states"));
        assert!(shown.contains(&"test three ... FAILED"));
        assert!(!shown.contains(&"noise") && !shown.contains(&"test one ... ok"));
        assert!(!shown.iter().any(|line| line.contains("doctests")));
        let expected = [
            "ended without a result: tests/b.rs (target/debug/deps/b-1)",
            "skipped: two: needs root",
            "1 tests are marked to be ignored",
        ];
        assert_eq!(tally.remarks(), expected);
    }

    #[test]
    fn what_is_left_to_the_soak_is_said_and_is_no_fault() {
        let mut tally = Tally::of("a");
        let lines = ["successes:", "---- two stdout ----", "LEFT TO SOAK: no browser"];
        lines.iter().for_each(|line| drop(tally.line(line)));
        tally.line("test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out");
        tally.finish(true);
        assert_eq!((tally.passed(), tally.failed(), tally.skipped()), (1, 0, 0));
        assert_eq!(tally.remarks(), ["left to soak: two: no browser"]);
    }

    #[test]
    fn a_build_that_fails_is_a_failure() {
        let mut tally = Tally::default();
        assert!(tally.line("error: could not compile `a`").show.is_some());
        tally.finish(false);
        assert_eq!((tally.passed(), tally.failed()), (0, 1));
    }

    #[test]
    fn what_a_test_prints_past_the_harness_does_not_hide_its_result() {
        let mut tally = Tally::of("a");
        let lines = ["running 2 tests", "test one ... FOUND: a", "more", "ok", "test two ... ok"];
        let read: Vec<Read> = lines.iter().map(|line| tally.line(line)).collect();
        let ended: Vec<Option<&str>> = read.iter().map(|r| r.ended.as_deref()).collect();
        assert_eq!(ended, [None, None, None, Some("one"), Some("two")]);
        let shown: Vec<&str> = read.iter().filter_map(|r| r.show).collect();
        assert_eq!(shown, ["FOUND: a", "more"]);
        // It has printed no sum.
        tally.finish(false);
        let mut all = Tally::default();
        all.add_all(tally);
        assert_eq!(all.failed(), 1);
    }
}
