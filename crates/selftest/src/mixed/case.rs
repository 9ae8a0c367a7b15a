//! A run of the mixed workload and its cuts in one line of words, so that what a test has found can
//! be reproduced by one command: the example `mixed` of this crate.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use steadfast_crash::explore::{CrashPoints, Plan, RebootTarget, SecondCuts, explore, first_wrong};
use steadfast_crash::figures::{Figures, StateFigures};
use steadfast_crash::states::State;
use steadfast_crash::{CrashError, Result};
use steadfast_vfs::TransactMask;

use super::mirrored::LEGS;
use super::{Memory, MirrorDisk, MixedMachine, Setup};
use crate::shrink::{Effort, MinimalCase, shrink};

/// Bytes of the disk.
const DISK: u64 = 24 << 20;

/// What is run and where it is cut. The same case gives the same outcome.
#[derive(Debug, Clone)]
pub struct Case {
    /// The machine.
    pub setup: Setup,
    /// Seed of the operations; that of the cuts is in the plan.
    pub seed: u64,
    /// Tasks at a time.
    pub tasks: usize,
    /// Operations of each.
    pub operations: usize,
    /// The cuts.
    pub plan: Plan,
}

/// One crash state of a case.
#[derive(Debug, Clone)]
pub struct CaseDescription {
    /// The operations that had begun, task by task.
    pub operations: Vec<String>,
    /// Of each device, how many atomic units were in doubt, and how many of them were there.
    pub in_doubt: Vec<(usize, usize)>,
    /// What recovery made of it.
    pub cut: StateFigures,
}

impl Case {
    fn machine(&self) -> MixedMachine {
        MixedMachine { setup: self.setup, disk_bytes: DISK }
    }

    /// The command that reproduces a crash state, or all of them.
    pub fn command(&self, cut: Option<u64>) -> String {
        let cut = cut.map_or(String::new(), |number| format!(" cut={number}"));
        self.setup.command("mixed", &format!("{self}{cut}"))
    }

    /// Runs it and makes all its cuts.
    ///
    /// # Errors
    /// If the run fails, in words.
    pub fn explore(&self) -> Result<Figures> {
        let recorded = self.machine().record(self.seed, self.tasks, self.operations)?;
        let machine: Arc<dyn RebootTarget> = Arc::new(self.machine());
        Ok(explore(&machine, recorded, &self.plan, &|_| ()))
    }

    /// Runs it and reproduces one of its crash states; `None` if it has none of that number.
    ///
    /// # Errors
    /// If the run fails, in words.
    pub fn describe(&self, number: u64) -> Result<Option<CaseDescription>> {
        let machine: Arc<dyn RebootTarget> = Arc::new(self.machine());
        let script = self.machine().script(self.seed, self.tasks, self.operations);
        let recorded = self.machine().record_script(self.seed, &script)?;
        let found = first_wrong(&machine, &recorded, &self.plan, &|cut| cut.number == number);
        let of_device = |state: &State, device: usize| {
            let units = state.in_doubt.iter().zip(&state.kept);
            let kept: Vec<bool> =
                units.filter(|(u, _)| u.device as usize == device).map(|(_, kept)| *kept).collect();
            (kept.len(), kept.iter().filter(|kept| **kept).count())
        };
        Ok(found.map(|(cut, state)| CaseDescription {
            operations: script.before(&recorded.recording, cut.tick).lines(),
            in_doubt: (0..state.contents.len()).map(|d| of_device(&state, d)).collect(),
            cut,
        }))
    }

    /// Makes the first cut that is `wrong` small.
    ///
    /// # Errors
    /// If the run fails, in words.
    pub fn shrink(
        &self,
        wrong: &dyn Fn(&StateFigures) -> bool,
        effort: Effort,
    ) -> Result<Option<MinimalCase>> {
        let script = self.machine().script(self.seed, self.tasks, self.operations);
        shrink(&self.machine(), (self.seed, &script), &self.plan, wrong, effort)
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Case { setup, seed, tasks, operations, plan } = self;
        write!(f, "{}", setup.data.name())?;
        let flags = [
            (setup.external, "external"),
            (setup.memory_journal, "memory"),
            (setup.dax, "dax"),
            (setup.async_commit, "async"),
            (!setup.delayed_allocation, "nodelalloc"),
            (setup.lying, "lying"),
            (setup.fast_commits, "fast"),
            (setup.churn, "churn"),
            (setup.stragglers, "stragglers"),
            (setup.small_caches, "small-caches"),
            (setup.lone_updates, "lone-updates"),
            (setup.inline_data, "inline"),
            (matches!(plan.places, CrashPoints::Boundaries(_)), "boundaries"),
        ];
        flags.iter().filter(|(on, _)| *on).try_for_each(|(_, word)| write!(f, " {word}"))?;
        if let Some(points) = setup.points {
            write!(f, " points={}", points.bits())?;
        }
        if let Some(MirrorDisk { memory, lost }) = setup.mirror {
            let memory = format!("{memory:?}").to_lowercase();
            write!(f, " mirror={memory}")?;
            lost.map_or(Ok(()), |lost| write!(f, " lost={lost}"))?;
        }
        write!(f, "{}", setup.bug_word())?;
        let (block, checkpoint) = (setup.block_size, setup.checkpoint_percent);
        write!(f, " block={block} checkpoint={checkpoint} seed={seed} tasks={tasks}")?;
        let Plan { seed, e2fsck_every, second: SecondCuts { percent, .. }, .. } = plan;
        write!(f, " operations={operations} cuts={} cutseed={seed}", plan.cuts())?;
        write!(f, " e2fsck={e2fsck_every} again={percent}")
    }
}

impl FromStr for Case {
    type Err = CrashError;

    /// Reads what [`Display`](fmt::Display) writes; what is left out is as in `Setup::PLAIN`.
    fn from_str(line: &str) -> Result<Case> {
        let plan = Plan::trials(CrashPoints::Spread(24), 0);
        let mut case = Case { setup: Setup::PLAIN, seed: 0, tasks: 3, operations: 70, plan };
        for word in line.split_whitespace() {
            case.take(word)?;
        }
        Ok(case)
    }
}

impl Case {
    fn take(&mut self, word: &str) -> Result<()> {
        let Case { setup, plan, .. } = self;
        let (name, value) = word.split_once('=').unwrap_or((word, ""));
        let number = || {
            let not = |_| CrashError::Words(format!("{word}: not a whole number"));
            value.parse::<u64>().map_err(not)
        };
        match name {
            "external" => setup.external = true,
            "memory" => setup.memory_journal = true,
            "dax" => setup.dax = true,
            "async" => setup.async_commit = true,
            "nodelalloc" => setup.delayed_allocation = false,
            "lying" => setup.lying = true,
            "fast" => setup.fast_commits = true,
            "churn" => setup.churn = true,
            "stragglers" => setup.stragglers = true,
            "small-caches" => setup.small_caches = true,
            "lone-updates" => setup.lone_updates = true,
            "inline" => setup.inline_data = true,
            "boundaries" => plan.places = CrashPoints::Boundaries(plan.cuts()),
            "points" => setup.points = Some(TransactMask::from_bits_truncate(number()? as u32)),
            "mirror" => {
                let memory = match value {
                    "none" => Memory::None,
                    "whole" => Memory::Whole,
                    "partial" => Memory::Partial,
                    _ => return Err(CrashError::Words(format!("{word}: none, whole or partial"))),
                };
                setup.mirror = Some(MirrorDisk { memory, lost: None });
            }
            "lost" => {
                let lost = number()? as usize;
                let mirror = setup.mirror.as_mut().filter(|_| lost < LEGS);
                mirror.ok_or_else(|| format!("{word}: after mirror=, 0 or 1"))?.lost = Some(lost);
            }
            "block" => setup.block_size = number()? as u32,
            "checkpoint" => setup.checkpoint_percent = number()?.min(100) as u8,
            "tasks" => self.tasks = number()?.min(64) as usize,
            "operations" => self.operations = number()? as usize,
            "seed" => self.seed = number()?,
            "cutseed" => plan.seed = number()?,
            "cuts" => plan.places = plan.places.with_count(number()?),
            "e2fsck" => plan.e2fsck_every = number()?,
            "again" => plan.second.percent = number()?,
            _ if setup.take(name, value)? => {}
            _ => return Err(CrashError::Words(format!("{word}: not a word of a case"))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_is_read_as_it_is_written() {
        let line = "transact external memory dax churn stragglers small-caches lone-updates inline \
                    boundaries points=5 block=1024 checkpoint=2 seed=7 tasks=2 operations=9 cuts=3 \
                    cutseed=11 e2fsck=6 again=25";
        let case: Case = line.parse().unwrap();
        assert_eq!(case.to_string(), line);
        assert_eq!(case.setup.points, Some(TransactMask::from_bits_truncate(5)));
        let line = "ordered mirror=partial lost=1 block=4096 checkpoint=50 seed=1 tasks=2 \
                    operations=9 cuts=3 cutseed=11 e2fsck=6 again=25";
        assert_eq!(line.parse::<Case>().unwrap().to_string(), line);
        assert!("ordered lost=1".parse::<Case>().is_err());
        assert!("ordered surprising".parse::<Case>().is_err());
        assert!("seed=many".parse::<Case>().unwrap_err().to_string().contains("seed=many"));
    }

    #[test]
    fn a_state_is_reproduced_by_its_number() {
        let case: Case = "ordered lying seed=1 tasks=1 operations=8 cuts=6".parse().unwrap();
        let figures = case.explore().unwrap();
        for (number, cut) in (0..).zip(&figures.cuts) {
            let description = case.describe(number).unwrap().unwrap();
            assert_eq!(description.cut.tick, cut.tick);
            assert_eq!(description.cut.broken_promises, cut.broken_promises);
            assert_eq!(description.cut.damage, cut.damage);
        }
        assert!(case.describe(6).unwrap().is_none());
    }
}
