//! A judge that works on a served tree, and is not asked again where it would read the same.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::judge::{Command, Judgement, Judges, RecoveredTree};
use super::judge_fs::verdicts::Verdicts;
use super::judge_fs::{JudgeFs, JudgeView};
use super::judges_at_once::JudgesAtOnce;

/// Of so many answers that are known one is asked for all the same; of the first ones the first,
/// second, fourth, eighth and so on, too.
const ASKED_AGAIN_EVERY: u64 = 50;

/// Where judges work.
pub struct JudgePlace {
    /// What is served there.
    pub fs: Arc<JudgeFs>,
    /// Where.
    pub at: PathBuf,
    /// Tells who serves it that a folder of this name has gone.
    pub forget: Box<dyn Fn(&str) + Send + Sync>,
}

/// A command that judges trees that are served.
pub struct ServedJudge<'a> {
    command: &'a Command,
    place: &'a JudgePlace,
    at_once: JudgesAtOnce,
    progress: Mutex<AskedSoFar>,
}

#[derive(Default)]
struct AskedSoFar {
    verdicts: Verdicts,
    counts: JudgeCounts,
}

/// How often a judge was asked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JudgeCounts {
    /// It was run so often.
    pub runs: u64,
    /// And so often not, because it would have read what it had read before.
    pub known: u64,
    /// It said different things of what reads the same: it is run for all trees from then on.
    pub differed: Option<[String; 2]>,
}

impl<'a> ServedJudge<'a> {
    /// Judges there, so many at the same time.
    pub fn new(
        command: &'a Command,
        place: &'a JudgePlace,
        at_once: JudgesAtOnce,
    ) -> ServedJudge<'a> {
        ServedJudge { command, place, at_once, progress: Mutex::default() }
    }

    /// How often it was asked so far.
    pub fn counts(&self) -> JudgeCounts {
        self.lock().counts.clone()
    }

    fn lock(&self) -> MutexGuard<'_, AskedSoFar> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is known of it, if that is to be believed.
    fn known(&self, shown: JudgeView<'_>) -> KnownAnswer {
        let mut progress = self.lock();
        if progress.counts.differed.is_some() {
            return KnownAnswer::Nothing;
        }
        let Some(said) = progress.verdicts.find(shown) else { return KnownAnswer::Nothing };
        progress.counts.known += 1;
        let known = progress.counts.known;
        match known.is_power_of_two() || known.is_multiple_of(ASKED_AGAIN_EVERY) {
            true => KnownAnswer::ToBeSeen(said),
            false => KnownAnswer::Said(said),
        }
    }
}

enum KnownAnswer {
    Nothing,
    Said(Judgement),
    /// It is asked again whether it says the same.
    ToBeSeen(Judgement),
}

impl Judges for ServedJudge<'_> {
    fn judge(&self, left: &RecoveredTree<'_>, printed: &[u8]) -> io::Result<Judgement> {
        let shown = JudgeView { tree: left.tree, printed };
        let mut known = self.known(shown);
        if let KnownAnswer::Said(said) = known {
            return Ok(said);
        }
        let mut turn = self.at_once.turn();
        // Another one may have said it while this one waited.
        if let KnownAnswer::Nothing = known {
            known = self.known(shown);
        }
        let expected = match known {
            KnownAnswer::Said(said) => return Ok(said),
            KnownAnswer::ToBeSeen(said) => Some(said),
            KnownAnswer::Nothing => None,
        };
        let JudgePlace { fs, at, forget } = self.place;
        let folder = fs.begin(shown)?;
        let name = fs.name(folder);
        let said = self.command.judge_in(&at.join(&name));
        let reads = fs.end(folder);
        forget(&name);
        let (said, used) = said?;
        turn.used = used;
        // Whoever's turn is next is to know it.
        let mut progress = self.lock();
        progress.counts.runs += 1;
        match expected {
            Some(expected) if expected.bad != said.bad => {
                let summary = |said: &Judgement| said.summary().unwrap_or_else(|| "good".into());
                progress.counts.differed = Some([summary(&expected), summary(&said)]);
                progress.verdicts.forget();
            }
            // It is one tree's, and not that of all that read the same.
            _ if said.may_be_chance() => {}
            _ => progress.verdicts.keep(reads, shown, said.clone()),
        }
        Ok(said)
    }
}
