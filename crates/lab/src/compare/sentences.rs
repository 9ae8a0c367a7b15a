//! What a comparison means, in sentences made of its figures.

use steadfast_crash::program::describe::counted;
use steadfast_trace::format::TraceEnd;

use super::{Loss, StackChoice, StackComparison, StackRow};
use crate::results::{JudgedScope, bytes};

/// So many stacks that are level with the fastest are named.
const NAMED: usize = 3;
/// From this bound of the rate on, in per cent, cuts without a broken promise say nothing.
const BOUND_MAX: f64 = 50.0;
/// Stacks whose times differ by less than this share wait for the same device.
const SAME: f64 = 0.001;

/// A sentence, and whether it is part of the answer: the others say how the figures came about.
type Sentence = (bool, String);

impl StackComparison {
    /// What it means, in sentences made of the figures.
    pub fn sentences(&self) -> Vec<String> {
        self.said().into_iter().map(|(_, text)| text).collect()
    }

    /// Those of them that are the answer.
    pub(super) fn answer(&self) -> Vec<String> {
        let said = self.said().into_iter();
        said.filter(|(is_answer, _)| *is_answer).map(|(_, text)| text).collect()
    }

    fn said(&self) -> Vec<Sentence> {
        let answer = |text: String| (true, text);
        let more = |text: String| (false, text);
        let mut said: Vec<Sentence> = self.of_stopped().into_iter().map(answer).collect();
        said.extend(self.of_speed().map(answer));
        // That a program failed is part of every answer about it.
        let failed = |end: TraceEnd| end.interrupted || end.status.is_some_and(|s| s != 0);
        let has_failed = self.choice.recorded.is_some_and(failed);
        said.extend(self.of_recorded().map(|text| (has_failed, text)));
        said.extend(self.of_choice());
        said.extend(self.of_same().into_iter().map(more));
        let cut: Vec<(&StackRow, &Loss)> =
            self.rows.iter().filter_map(|row| Some((row, row.loss.as_ref()?))).collect();
        if cut.is_empty() {
            let was_run = !self.rows.is_empty();
            said.extend(was_run.then(|| answer("The power was not cut (--cuts).".to_owned())));
            return said;
        }
        said.extend(self.of_safe().map(answer));
        said.extend(of_left_out(&self.rows).map(answer));
        said.extend(of_unnamed(&self.rows).map(more));
        let (controls, honest): (Vec<_>, Vec<_>) =
            cut.into_iter().partition(|(row, _)| row.is_control);
        let (kept, broke): (Vec<_>, Vec<_>) =
            honest.into_iter().partition(|(_, loss)| loss.broken_promises == 0);
        if !kept.is_empty() {
            said.push(answer(of_promised(&kept, &controls)));
            said.extend(of_lost(&kept).map(answer));
        }
        said.extend(broke.into_iter().chain(controls).filter_map(of_broken).map(answer));
        said
    }

    fn of_stopped(&self) -> Option<String> {
        let all = self.stopped?;
        let run = match self.rows.len() {
            0 => "none".to_owned(),
            n => format!("{n}"),
        };
        Some(format!("It was stopped: of {}, {run} had been run by then.", stacks(all)))
    }

    /// How long the program took when it was recorded.
    fn of_recorded(&self) -> Option<String> {
        let end = self.choice.recorded?;
        let status = match (end.interrupted, end.status) {
            (true, _) => "; it was stopped then".to_owned(),
            (false, Some(status)) if status != 0 => format!("; it ended with status {status}"),
            _ => String::new(),
        };
        let took = seconds(end.at as f64 / 1e9);
        Some(format!("When it was recorded the program took {took}{status}."))
    }

    /// What the figures are of, where that is not the whole program on the whole catalogue.
    fn of_choice(&self) -> Vec<Sentence> {
        let StackChoice { flat_out, only, budget, cut_off, .. } = &self.choice;
        let mut said = Vec::new();
        if let Some(calls) = cut_off {
            let text = format!(
                "The trace was cut off: the figures are of the {} that are in it.",
                counted(*calls, "call")
            );
            said.push((true, text));
        }
        if *flat_out {
            let text = "Without the program's own work (--flat-out): each call is made as soon as \
                        those before it allow.";
            said.push((true, text.to_owned()));
        }
        if !self.without_price.is_empty() {
            let (names, all) = (self.without_price.join(", "), stacks(self.without_price.len()));
            said.push((false, format!("Without a price, and so left out ({all}): {names}.")));
        }
        let is_part = !only.is_empty() || budget.is_some();
        if let Some(base) = self.rows.iter().find(|row| row.is_first).filter(|_| is_part) {
            let text =
                format!("\"times as fast\" is beside {}, the first of these stacks.", base.stack);
            said.push((false, text));
        }
        said
    }

    fn of_speed(&self) -> Option<String> {
        let (best, base) = (self.rows.first()?, self.rows.iter().find(|row| row.is_first)?);
        let within = match self.choice.budget {
            Some(budget) if self.without_price.is_empty() => {
                format!(" within {}", self.money(budget))
            }
            Some(budget) => {
                let left_out = stacks(self.without_price.len());
                format!(" within {} ({left_out} without a price)", self.money(budget))
            }
            None if best.stack == base.stack => return None,
            None => String::new(),
        };
        let beside = match best.stack == base.stack {
            true => String::new(),
            false => format!(
                ", {} on {} ({}; {})",
                seconds(base.seconds.median()),
                base.stack,
                base.label,
                times(best.times.unwrap_or(1.0))
            ),
        };
        let is_level = |row: &&StackRow| row.is_level() && row.stack != best.stack;
        let level: Vec<&str> =
            self.rows.iter().filter(is_level).map(|row| row.stack.as_str()).collect();
        let level = match level.len() {
            0 => String::new(),
            n @ 1..=NAMED => format!(" Level with it: {}.", level[..n].join(", ")),
            n => format!(" Level with it: {} and {} more.", level[..NAMED].join(", "), n - NAMED),
        };
        Some(format!(
            "Fastest{within} is {} ({}{}): {} on it{beside}.{level}",
            best.stack,
            best.label,
            self.costs(best),
            seconds(best.seconds.median()),
        ))
    }

    /// Stacks on which all that the program waits for goes to the same journal.
    fn of_same(&self) -> Vec<String> {
        let mut said = Vec::new();
        let mut journals: Vec<&str> =
            self.rows.iter().filter_map(|row| row.data_journal.as_deref()).collect();
        journals.sort_unstable();
        journals.dedup();
        for journal in journals {
            let on = |row: &&StackRow| row.data_journal.as_deref() == Some(journal);
            let rows: Vec<&StackRow> = self.rows.iter().filter(on).collect();
            let medians = || rows.iter().map(|row| row.seconds.median());
            let (least, most) = (medians().fold(f64::MAX, f64::min), medians().fold(0.0, f64::max));
            if rows.len() > 1 && most - least < SAME * most {
                let names: Vec<&str> = rows.iter().map(|row| row.stack.as_str()).collect();
                said.push(format!(
                    "{} are equal by construction: all that the program waits for goes to the \
                     same journal ({journal}), and not to their disks.",
                    names.join(" and ")
                ));
            }
        }
        said
    }

    /// Within a budget: the fastest that keeps what it promises, if another one is faster.
    fn of_safe(&self) -> Option<String> {
        self.choice.budget?;
        let keeps = |row: &&StackRow| {
            row.loss.as_ref().is_some_and(|loss| loss.broken_promises == 0) && !row.is_control
        };
        let Some(safe) = self.rows.iter().find(keeps) else {
            return Some("No stack within it keeps all that was promised.".to_owned());
        };
        let other = self.rows.first().is_some_and(|best| best.stack != safe.stack);
        Some(match other {
            true => format!(
                "Fastest whose cuts took nothing promised is {} ({}{}): {} on it.",
                safe.stack,
                safe.label,
                self.costs(safe),
                seconds(safe.seconds.median())
            ),
            false => "Its cuts took nothing promised.".to_owned(),
        })
    }

    fn costs(&self, row: &StackRow) -> String {
        row.price.map_or_else(String::new, |price| format!(", {}", self.money(price)))
    }

    fn money(&self, amount: f64) -> String {
        match &self.currency {
            Some(currency) => format!("{amount} {currency}"),
            None => amount.to_string(),
        }
    }

    /// What the last columns are of, below the table; nothing where nothing was cut.
    pub(super) fn footnote(&self) -> Option<String> {
        let cuts = self.rows.iter().find_map(|row| Some(row.loss.as_ref()?.cuts))?;
        let lying = self.rows.iter().find(|row| row.is_control);
        let lying = lying.map_or_else(String::new, |row| {
            format!(" (of {}, which ignores flushes, also what was synced)", row.stack)
        });
        Some(format!(
            "most lost: the most that one of {} took of calls that had returned{lying}. What is \
             at risk after the program's end is in no figure.",
            counted(cuts, "cut")
        ))
    }
}

/// Of a stack that broke promises or should have; nothing if there were none to break.
fn of_broken((row, loss): (&StackRow, &Loss)) -> Option<String> {
    let broken = counted(loss.broken_promises, "promise");
    Some(match loss.broken_promises {
        0 if row.promises() == 0 => return None,
        0 => format!("{}, the warning, broke no promise in {} cuts.", row.stack, loss.cuts),
        _ => format!(
            "{} loses what was synced: {broken} broken, in {} of {} cuts; at most {} lost, with \
             what was not synced.",
            row.stack,
            loss.cuts_that_broke,
            loss.cuts,
            bytes(loss.lost_bytes)
        ),
    })
}

/// What of the program no figure shows.
fn of_left_out(rows: &[StackRow]) -> Option<String> {
    let left_out = most_of(rows.iter(), |scope| scope.files_left_out);
    (left_out > 0).then(|| {
        format!(
            "Not judged: {} of more than 64 MiB, or with a range taken out or put in. What a cut \
             takes of that is in no figure.",
            counted(left_out, "file")
        )
    })
}

/// What breaks no promise, though it was synced.
fn of_unnamed(rows: &[StackRow]) -> Option<String> {
    let unnamed = most_of(rows.iter(), |scope| scope.files_without_name);
    (unnamed > 0).then(|| {
        format!(
            "{} synced, and not the folder with the new name: POSIX lets a cut take the whole \
             file, so that breaks no promise.",
            if unnamed == 1 { "1 file was".to_owned() } else { format!("{unnamed} files were") }
        )
    })
}

fn most_of<'r>(rows: impl Iterator<Item = &'r StackRow>, of: fn(JudgedScope) -> u64) -> u64 {
    rows.filter_map(|row| row.scope).map(of).max().unwrap_or(0)
}

/// What the cuts say of what was synced, of the stacks that broke no promise.
fn of_promised(kept: &[(&StackRow, &Loss)], controls: &[(&StackRow, &Loss)]) -> String {
    let bound = kept.iter().map(|(_, loss)| loss.broken_at_most_percent).fold(0.0, f64::max);
    if let Some(why) = says_nothing(kept, controls, bound) {
        return format!("Of what was synced these cuts say nothing: {why}");
    }
    let surely = |(row, _): &&(&StackRow, &Loss)| row.scope.is_some_and(|s| s.no_volatile_cache);
    let surely = match kept.iter().filter(surely).count() {
        0 => String::new(),
        1 => "; 1 of them has no volatile cache: its zero does not test flushes".to_owned(),
        n => format!("; {n} of them have no volatile cache: their zeros do not test flushes"),
    };
    format!(
        "What was synced is there after every cut of {} (up to {bound:.0} % of cuts may differ: \
         more --cuts say it better){surely}.",
        stacks(kept.len())
    )
}

/// Why zeros say nothing, and whether more cuts help.
fn says_nothing(
    kept: &[(&StackRow, &Loss)],
    controls: &[(&StackRow, &Loss)],
    bound: f64,
) -> Option<String> {
    let rows = || kept.iter().chain(controls).map(|(row, _)| *row);
    if rows().all(|row| row.promises() == 0) {
        return Some("the program syncs nothing. More --cuts do not help.".to_owned());
    }
    if bound >= BOUND_MAX {
        return Some(format!(
            "they found the devices in too few different states (up to {bound:.0} % of cuts may \
             differ). More --cuts may help."
        ));
    }
    let (blind, _) = controls.iter().find(|(_, loss)| loss.broken_promises == 0)?;
    if controls.iter().any(|(_, loss)| loss.broken_promises > 0) {
        return None;
    }
    let why = if most_of(rows(), |scope| scope.files_without_name) > 0 {
        "the folders of new files are not synced, so a cut that takes a file whole breaks no \
         promise. More --cuts hardly help."
    } else if most_of(rows(), |scope| scope.files_left_out) > 0 {
        "large files are not judged. More --cuts hardly help."
    } else {
        "hardly any cut fell after a sync and before the disk had written it by itself. More \
         --cuts help."
    };
    Some(format!("{}, which ignores flushes, broke no promise either: {why}", blind.stack))
}

/// What the cuts took of the stacks that broke no promise.
fn of_lost(kept: &[(&StackRow, &Loss)]) -> Option<String> {
    let most = |what: fn(&Loss) -> f64| {
        kept.iter().copied().max_by(|(a, x), (b, y)| {
            what(x).total_cmp(&what(y)).then_with(|| b.stack.cmp(&a.stack))
        })
    };
    let (bytes_of, calls_of) = (most(|loss| loss.lost_bytes)?, most(|loss| loss.lost_calls)?);
    let age_of = most(|loss| loss.lost_ms)?;
    let (cuts, of) = (counted(bytes_of.1.cuts, "cut"), stacks(kept.len()));
    let of = if kept.len() == 1 { kept[0].0.stack.clone() } else { format!("each of {of}") };
    Some(match calls_of.1.lost_calls > 0.0 {
        false => format!("{cuts} of {of} took nothing; more --cuts may find more."),
        true => format!(
            "In {cuts} of {of} at most {} ({}), {} ({}), up to {:.0} ms old ({}), were lost; more \
             --cuts find more.",
            bytes(bytes_of.1.lost_bytes),
            bytes_of.0.stack,
            counted(calls_of.1.lost_calls as u64, "call"),
            calls_of.0.stack,
            age_of.1.lost_ms,
            age_of.0.stack
        ),
    })
}

/// So many stacks, in words.
pub(super) fn stacks(count: usize) -> String {
    counted(count as u64, "stack")
}

fn times(times: f64) -> String {
    if times >= 10.0 { format!("{times:.0} times") } else { format!("{times:.1} times") }
}

fn seconds(seconds: f64) -> String {
    if seconds < 1.0 { format!("{:.0} ms", seconds * 1e3) } else { format!("{seconds:.2} s") }
}
