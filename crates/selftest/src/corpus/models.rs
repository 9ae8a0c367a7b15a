//! Whether what a file system leaves is what its model allows: a state that is there and that the
//! model forbids is a fault of the model.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use steadfast_crash::explore::ext4::words;
use steadfast_crash::figures::StateFigures;
use steadfast_crash::judge::Judge;
use steadfast_crash::persistence::{Model, Steps, states};
use steadfast_crash::program::{Call, Node, Tree, WatchedFs, shown};
use steadfast_devices::filter::record::{Moment, RecordLog};
use steadfast_runtime::Mutex;
use steadfast_vfs::FileSystem;

use super::explore::{Player, WorkloadJudge};
use super::run::carry_out;
use super::step::Workload;

/// What the models do not allow and was there, in words.
pub type ForbiddenStates = Arc<Mutex<Vec<String>>>;

/// Watches the calls; each state must be one that all of these models allow.
pub fn by_models(models: &'static [Model], forbidden: &ForbiddenStates) -> Player {
    let forbidden = Arc::clone(forbidden);
    Arc::new(move |fs: &Arc<dyn FileSystem>, log: &RecordLog, workload: &Workload| {
        let base = Tree::read(&**fs).map_err(words)?;
        let watched = WatchedFs::new(Arc::clone(fs), log);
        let refused = carry_out(&watched, workload)?;
        let (calls, allowed) = (watched.calls(), Mutex::default());
        let forbidden = Arc::clone(&forbidden);
        let judge = ModelsJudge { models, calls, base, allowed, forbidden };
        Ok(WorkloadJudge { judge: Arc::new(judge), refused })
    })
}

/// Of trees.
type Digests = HashSet<u128>;

struct ModelsJudge {
    models: &'static [Model],
    calls: Vec<Call>,
    base: Tree,
    /// What each model allows, by how many calls had begun and had returned; `None`: too much to
    /// be listed.
    allowed: Mutex<HashMap<(Model, u64), Option<Digests>>>,
    forbidden: ForbiddenStates,
}

impl ModelsJudge {
    /// A tree and the calls before it.
    fn state(&self, tree: &Tree, tick: u64) -> String {
        let name = |(path, node): (&[u8], &Node)| {
            format!("{} {:?} {}", shown(path), node.attr.kind, node.attr.size)
        };
        let names: Vec<String> = tree.nodes().map(name).collect();
        let done = self.calls.iter().filter(|call| call.started.tick < tick);
        let call =
            |call: &Call| format!("{call}{}", if call.done_before(tick) { "" } else { " ..." });
        let done: Vec<String> = done.map(call).collect();
        format!("{} after {}", names.join(", "), done.join("; "))
    }
}

impl Judge for ModelsJudge {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        let tree = match Tree::read(fs) {
            Ok(tree) => tree,
            Err(why) => {
                cut.damage.push(why.to_string());
                return;
            }
        };
        for model in self.models {
            let mut allowed = self.allowed.lock();
            let of_cut = allowed.entry((*model, self.age(at.tick))).or_insert_with(|| {
                let steps = Steps::of(&self.calls, &self.base, model.halves_renames());
                states::all(&steps, *model, at.tick)
            });
            if of_cut.as_ref().is_some_and(|trees| !trees.contains(&tree.digest())) {
                let what =
                    format!("{} does not allow {}", model.name(), self.state(&tree, at.tick));
                self.forbidden.lock().push(what);
            }
        }
    }

    fn age(&self, tick: u64) -> u64 {
        let before = |moment: Moment| u64::from(moment.tick < tick);
        let of = |call: &Call| before(call.started) + call.returned.map_or(0, before);
        self.calls.iter().map(of).sum()
    }
}
