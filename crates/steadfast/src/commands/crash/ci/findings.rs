//! What was found, as one list for all reports: of the states of the recorded disk, then by the
//! calls alone.

use std::io::{self, Write};
use std::path::Path;

use steadfast_crash::persistence::Model;
use steadfast_crash::program::describe::counted;
use steadfast_crash::program::explore::{
    ExplorationReport, Wrong, WrongState, grouped, without_numbers,
};
use steadfast_crash::program::{CALLERS_SHOWN, CallStacks, CodeFrame, Command, ProgramRun};

use super::super::models::{FindingByCalls, ModelReports, listed};
use super::super::setup::{Fs, Setup};
use super::super::show_command::show_command;
use super::fingerprint;
use crate::terminal::harmless;

/// Who is against a state, and for which kind of reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// The recovered file system does not mount, or cannot be read.
    Refused,
    /// Its structure is damaged.
    Damage,
    /// e2fsck or the kernel finds it damaged.
    SecondOpinion,
    /// The user's judge.
    Judge,
    /// What was synced is not there.
    BrokenPromise,
    /// What the program relied on, and did not sync, is not there.
    NotAskedFor,
    /// A call was made to fail, and the program went on as if it had not.
    ErrorIgnored,
}

impl Rule {
    /// All of them.
    pub const ALL: [Rule; 7] = [
        Rule::Refused,
        Rule::Damage,
        Rule::SecondOpinion,
        Rule::Judge,
        Rule::BrokenPromise,
        Rule::NotAskedFor,
        Rule::ErrorIgnored,
    ];

    /// Whose rule is broken.
    pub fn of(wrong: &Wrong) -> Rule {
        match wrong {
            Wrong::Refused(_) => Rule::Refused,
            Wrong::Damage(_) => Rule::Damage,
            Wrong::SecondOpinion(..) => Rule::SecondOpinion,
            Wrong::Judge(..) => Rule::Judge,
            Wrong::Promise(_) => Rule::BrokenPromise,
            Wrong::Unasked(_) => Rule::NotAskedFor,
        }
    }

    /// For programs.
    pub fn name(self) -> &'static str {
        match self {
            Rule::Refused => "refused",
            Rule::Damage => "damage",
            Rule::SecondOpinion => "second-opinion",
            Rule::Judge => "judge",
            Rule::BrokenPromise => "broken-promise",
            Rule::NotAskedFor => "not-asked-for",
            Rule::ErrorIgnored => "error-ignored",
        }
    }

    /// In a sentence.
    pub fn in_words(self) -> &'static str {
        match self {
            Rule::Refused => "After a power cut the file system cannot be mounted or read.",
            Rule::Damage => "After a power cut the file system's structure is damaged.",
            Rule::SecondOpinion => "After a power cut e2fsck or the kernel finds damage.",
            Rule::Judge => "After a power cut the judge refuses the files that are there.",
            Rule::BrokenPromise => "After a power cut something that was synced is not there.",
            Rule::NotAskedFor => {
                "After a power cut something is not there that was relied on without a sync."
            }
            Rule::ErrorIgnored => "A call failed, and the program went on as if it had not.",
        }
    }
}

/// Where it was found.
pub enum Source<'a> {
    /// In states of the recorded disk; the first of them.
    States(&'a WrongState),
    /// By the calls alone.
    Calls(&'a FindingByCalls),
    /// In what the program did when a call of its own was made to fail.
    Reaction,
}

/// Something that was found.
pub struct Finding<'a> {
    /// Where.
    pub source: Source<'a>,
    /// Who is against it.
    pub rule: Rule,
    /// The same in every run: of what is wrong, and of what else is wrong for the same reason.
    pub fingerprints: Vec<String>,
    /// What is wrong, without what differs from state to state.
    pub title: String,
    /// What is wrong.
    pub what: String,
    /// In how many states.
    pub states: u64,
    /// On what it can happen.
    pub on: String,
    /// Of which run it is, of a run on each file system.
    pub run: usize,
    /// On what else its states show it.
    pub also: Vec<AlsoOn<'a>>,
    /// What would help.
    pub fix: Vec<String>,
    /// The call that it is about, of its run.
    pub call: Option<CallPlace<'a>>,
    /// The command that shows it, where there is one.
    pub show: Option<String>,
    /// It is in the baseline.
    pub known: bool,
}

/// Another file system on which the same was found.
pub struct AlsoOn<'a> {
    /// Of which run.
    pub run: usize,
    /// The first state.
    pub first: &'a WrongState,
    /// In how many.
    pub states: u64,
    /// The file system.
    pub on: String,
    /// The command that shows it, where there is one.
    pub show: Option<String>,
}

/// A frame as seen from the current folder.
fn in_words(frame: &CodeFrame) -> String {
    frame.seen_from(std::env::current_dir().ok().as_deref())
}

/// What findings are made of.
pub struct Sources<'a> {
    /// Which run this is.
    pub number: usize,
    /// What it was recorded on.
    pub setup: &'a Setup,
    /// What the states have shown.
    pub outcome: &'a ExplorationReport,
    /// What the calls alone have.
    pub by_calls: Option<&'a ModelReports>,
    /// What was acknowledged although a call had failed, in words, and the call.
    pub reactions: Vec<(String, usize)>,
    /// Where in the program its calls were made.
    pub stacks: &'a CallStacks,
}

/// Where in the program a call was made.
#[derive(Clone)]
pub struct CallPlace<'a> {
    /// All of its stack, the innermost first.
    pub stack: Vec<&'a CodeFrame>,
    /// What of it is the program's own, from the inside; the first is the place.
    pub own: Vec<&'a CodeFrame>,
}

impl<'a> CallPlace<'a> {
    /// Of a call; `None` where it is not known.
    pub fn of(stacks: &'a CallStacks, call: Option<usize>) -> Option<CallPlace<'a>> {
        let call = call?;
        let (place, callers) = stacks.place(call)?;
        let own = std::iter::once(place).chain(callers).collect();
        Some(CallPlace { stack: stacks.of(call), own })
    }

    /// The place in words, then what has called it, one line each.
    pub fn lines(&self) -> Vec<String> {
        let shown = self.own.iter().take(1 + CALLERS_SHOWN).map(|frame| in_words(frame));
        let words = std::iter::once("at       ").chain(std::iter::repeat("called at"));
        words.zip(shown).map(|(word, shown)| format!("{word} {shown}")).collect()
    }

    /// The place in one line: `at src/store.rs:42 (app::save)`.
    fn line(&self) -> Option<String> {
        self.own.first().map(|place| format!("at {}", in_words(place)))
    }

    /// The source file, as seen from the current folder if it is in there, and the line.
    pub fn source(&self) -> Option<(String, u32)> {
        let folder = std::env::current_dir().ok();
        let (file, line) = self.own.first()?.source(folder.as_deref())?;
        Some((file.to_owned(), line))
    }
}

impl<'a> Sources<'a> {
    /// All findings.
    pub fn findings(&self) -> Vec<Finding<'a>> {
        let by_calls: Vec<Finding<'a>> =
            self.by_calls.iter().flat_map(|of| &of.findings).map(|f| self.of_calls(f)).collect();
        let groups = grouped(&self.outcome.findings).into_iter();
        let mut all: Vec<Finding<'a>> = groups
            .filter_map(|(what, first, states)| self.of_states(what, first, states))
            .collect();
        all.extend(by_calls);
        all.extend(self.reactions.iter().map(|(what, call)| Finding {
            call: CallPlace::of(self.stacks, Some(*call)),
            ..of_reaction(what)
        }));
        all
    }

    fn of_states(&self, what: String, first: &'a WrongState, states: u64) -> Option<Finding<'a>> {
        let wrong = first.wrong.first()?;
        let call = match wrong {
            Wrong::Promise(broken) | Wrong::Unasked(broken) => broken.call,
            _ => None,
        };
        Some(Finding {
            source: Source::States(first),
            rule: Rule::of(wrong),
            fingerprints: vec![fingerprint_of("states", wrong)],
            title: wrong.kind(),
            what,
            states,
            on: self.setup.in_words(),
            run: self.number,
            also: Vec::new(),
            fix: Vec::new(),
            call: CallPlace::of(self.stacks, call),
            show: None,
            known: false,
        })
    }

    fn of_calls(&self, finding: &'a FindingByCalls) -> Finding<'a> {
        let from = format!("calls {}", finding.model.name());
        let all = std::iter::once(&finding.wrong).chain(&finding.also);
        let mut fingerprints: Vec<String> = all.map(|w| fingerprint_of(&from, w)).collect();
        let mut seen = std::collections::BTreeSet::new();
        fingerprints.retain(|fingerprint| seen.insert(fingerprint.clone()));
        let on: Vec<Model> =
            finding.wrong_on.iter().copied().filter(|model| *model != Model::Posix).collect();
        Finding {
            source: Source::Calls(finding),
            rule: Rule::of(&finding.wrong),
            fingerprints,
            title: finding.wrong.kind(),
            what: finding.wrong.what(),
            states: finding.states,
            on: match on.is_empty() {
                true => "a file system that keeps what POSIX promises and no more".into(),
                false => listed(&on),
            },
            run: self.number,
            also: Vec::new(),
            fix: finding.fix(),
            call: CallPlace::of(self.stacks, finding.why.call()),
            show: None,
            known: false,
        }
    }
}

/// The findings of all runs: what was found on several file systems is one.
pub fn merged<'a>(runs: impl IntoIterator<Item = Vec<Finding<'a>>>) -> Vec<Finding<'a>> {
    let mut all: Vec<Finding<'a>> = Vec::new();
    for finding in runs.into_iter().flatten() {
        let same = all.iter_mut().find(|of| of.fingerprints == finding.fingerprints);
        match (same, &finding.source) {
            // Of one run they differ in something that is not in the fingerprint.
            (Some(same), _) if same.run == finding.run => all.push(finding),
            (Some(same), Source::States(first)) => same.also.push(AlsoOn {
                run: finding.run,
                first,
                states: finding.states,
                on: finding.on,
                show: None,
            }),
            (Some(_), _) => {}
            (None, _) => all.push(finding),
        }
    }
    let by_calls = |finding: &&Finding<'_>| matches!(finding.source, Source::Calls(_));
    for number in 0..all.len() {
        // What keeps it by the calls keeps it on a disk, too. OK to index: below the length.
        let (finding, calls) = (&all[number], all.iter().filter(by_calls));
        let same = calls.into_iter().find(|calls| calls.is_same(finding));
        let why = same.map(|same| (same.fix.clone(), same.call.clone()));
        if let (Some((fix, call)), Source::States(_)) = (why, &all[number].source) {
            all[number].fix = fix;
            // Of the first run, whose calls were judged.
            all[number].call = call.or(all[number].call.take());
        }
    }
    all
}

fn of_reaction(what: &str) -> Finding<'static> {
    let (rule, title) = (Rule::ErrorIgnored, without_numbers(what));
    Finding {
        source: Source::Reaction,
        rule,
        fingerprints: vec![fingerprint::of(&["reaction", rule.name(), &title])],
        title,
        what: what.to_owned(),
        states: 0,
        on: "any file system".into(),
        run: 0,
        also: Vec::new(),
        fix: Vec::new(),
        call: None,
        show: None,
        known: false,
    }
}

/// Of what is wrong; `from`: found in which way.
fn fingerprint_of(from: &str, wrong: &Wrong) -> String {
    fingerprint::of(&[from, Rule::of(wrong).name(), &wrong.kind()])
}

impl Finding<'_> {
    /// What it is recognised by.
    pub fn fingerprint(&self) -> &str {
        self.fingerprints.first().map_or("", String::as_str)
    }

    /// Sets the commands that show it, where there are recordings: of each run its recording and
    /// its file system.
    pub fn show_by(&mut self, runs: &[(Option<&Path>, Fs)], judge: Option<&Command>) {
        let command = |run: usize, state| {
            let (recording, fs) = runs.get(run)?;
            recording.map(|path| show_command(path, state, *fs, judge))
        };
        self.show = match self.source {
            Source::States(first) => command(self.run, (first.state, None)),
            Source::Calls(finding) => command(self.run, (finding.first, Some(finding.model))),
            Source::Reaction => None,
        };
        for also in &mut self.also {
            also.show = command(also.run, (also.first.state, None));
        }
    }

    /// Whether the other is the same fault, seen in another way.
    pub fn is_same(&self, other: &Finding<'_>) -> bool {
        (self.rule, &self.title) == (other.rule, &other.title)
    }

    /// A line that says where in the program it is, where that is known.
    pub fn print_place(&self, out: &mut dyn Write) -> io::Result<()> {
        let line = self.call.as_ref().and_then(CallPlace::line);
        line.map_or(Ok(()), |line| writeln!(out, "    {line}"))
    }

    /// All on which it was found.
    pub fn everywhere(&self) -> String {
        let mut all: Vec<&str> = vec![&self.on];
        all.extend(self.also.iter().map(|also| also.on.as_str()));
        all.join(" and on ")
    }

    /// In one sentence.
    pub fn message(&self) -> String {
        let fix = match &self.fix[..] {
            [] => String::new(),
            fix => format!("; to fix it, {}", fix.join(" and ")),
        };
        let at = self.call.as_ref().and_then(CallPlace::line);
        let fix = at.map(|at| format!(", {at}")).unwrap_or_default() + &fix;
        match self.source {
            Source::Reaction => harmless(&format!("{}{fix}", self.what)),
            _ => {
                let on = self.everywhere();
                harmless(&format!("After a power cut on {on}: {}{fix}", self.what))
            }
        }
    }

    /// All that is known of it, in lines.
    pub fn details(&self, run: &ProgramRun) -> String {
        let mut lines = vec![self.what.clone()];
        match self.source {
            Source::States(first) => {
                let states = counted(self.states, "state");
                lines.push(format!("{states} on {}, the first is {}", self.on, first.state));
                for AlsoOn { on, states, first, .. } in &self.also {
                    let states = counted(*states, "state");
                    lines.push(format!("{states} on {on}, the first is {}", first.state));
                }
            }
            Source::Calls(finding) => lines.extend(finding.lines(run)),
            Source::Reaction => {}
        }
        lines.extend(self.call.iter().flat_map(CallPlace::lines));
        if let (Source::States(_), false) = (&self.source, self.fix.is_empty()) {
            lines.push(format!("to fix it, {}", self.fix.join(" and ")));
        }
        lines.extend(self.show.clone());
        lines.extend(self.also.iter().filter_map(|also| also.show.clone()));
        lines.push(format!("fingerprint {}", self.fingerprint()));
        harmless(&lines.join("\n"))
    }
}
