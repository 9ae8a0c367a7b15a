//! Which steps are there before which: what a file system promises of the order.
//!
//! What follows is the sources' own reasoning, and is held against what they leave
//! (`crates/selftest/tests/models.rs`). ext4 commits metadata in transactions, in the order of the
//! calls. A size that grows comes with the allocation of the blocks (delayed allocation); until
//! their data is written they read as zeros (unwritten extents). auto_da_alloc writes what a rename
//! puts over another file, before the rename (fs/ext4/namei.c). data=journal has the data in the
//! transactions too. XFS logs metadata in order, and sizes once their data is written
//! (xfs_setfilesize). btrfs commits everything in one transaction, and an fsync alone before it by
//! a log of its own (tree-log.c): what was not synced may be missing beside it. ext2 orders
//! nothing, and a rename is two names.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use strum::IntoEnumIterator;

use super::steps::{Effect, PAGE, Place, Step, Steps, Sync, SyncScope};

/// What is promised of the order of steps.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    strum::EnumString,
    strum::IntoStaticStr,
    strum::EnumIter,
)]
#[strum(serialize_all = "kebab-case")]
pub enum Model {
    /// What is synced is there, a rename is done or not, a file's sizes and a page's writes come in
    /// their order; no more.
    Posix,
    /// ext4 as it is mounted by default: data=ordered, auto_da_alloc.
    Ext4,
    /// ext4 with noauto_da_alloc.
    Ext4NoautoDaAlloc,
    /// ext4 with data=writeback, auto_da_alloc.
    Ext4Writeback,
    /// ext4 with data=journal.
    Ext4Journal,
    /// XFS.
    Xfs,
    /// btrfs.
    Btrfs,
    /// ext2, after its check.
    Ext2,
}

/// A model in its parts.
#[derive(Debug, Clone, Copy)]
struct Order {
    /// Names, permissions and explicit sizes are there in the order of the calls.
    names: bool,
    /// Data too.
    data: bool,
    /// A size that a write makes is not there before its data.
    size_after_data: bool,
    /// A file that is renamed over another one has its data before the rename.
    replaced_after_data: bool,
    /// A sync keeps what comes before it in that order, too.
    sync_keeps_earlier: bool,
    /// fsync of a file keeps its names.
    sync_keeps_names: bool,
    /// A name may be there before its file.
    names_before_files: bool,
}

const POSIX: Order = Order {
    names: false,
    data: false,
    size_after_data: false,
    replaced_after_data: false,
    sync_keeps_earlier: false,
    sync_keeps_names: false,
    names_before_files: false,
};

const XFS: Order = Order {
    names: true,
    size_after_data: true,
    sync_keeps_earlier: true,
    sync_keeps_names: true,
    ..POSIX
};

const EXT4: Order = Order { size_after_data: false, ..XFS };

impl Model {
    /// All of them.
    pub fn all() -> impl Iterator<Item = Model> {
        Model::iter()
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Its name in sentences.
    pub fn in_words(self) -> &'static str {
        match self {
            Model::Posix => "what POSIX promises",
            Model::Ext4 => "ext4",
            Model::Ext4NoautoDaAlloc => "ext4 with noauto_da_alloc",
            Model::Ext4Writeback => "ext4 with data=writeback",
            Model::Ext4Journal => "ext4 with data=journal",
            Model::Xfs => "XFS",
            Model::Btrfs => "btrfs",
            Model::Ext2 => "ext2",
        }
    }

    /// Whether the two names of a rename are two steps.
    pub fn halves_renames(self) -> bool {
        self == Model::Ext2
    }

    fn order(self) -> Order {
        match self {
            Model::Posix => POSIX,
            Model::Ext4 | Model::Ext4Writeback => Order { replaced_after_data: true, ..EXT4 },
            Model::Ext4NoautoDaAlloc => EXT4,
            Model::Xfs => XFS,
            Model::Ext4Journal => Order { data: true, ..EXT4 },
            Model::Btrfs => Order { sync_keeps_earlier: false, ..XFS },
            Model::Ext2 => Order { names_before_files: true, ..POSIX },
        }
    }
}

/// The order of a run's steps under a model.
pub struct StepOrder<'s> {
    /// The steps.
    pub steps: &'s Steps,
    order: Order,
    /// What must be there before each, whatever the model.
    needs: Vec<Vec<u32>>,
    /// What comes before each in the order of the calls, where the model has one.
    earlier: Vec<Option<u32>>,
    /// The tick from which on each is durable by a sync of the program's; and that at which the
    /// sync began.
    durable_from: Vec<u64>,
    soon_from: Vec<u64>,
}

/// A set of steps, by their places.
pub type StepSet = Vec<bool>;

impl<'s> StepOrder<'s> {
    /// The steps of a run in the order of a model.
    pub fn new(steps: &'s Steps, model: Model) -> StepOrder<'s> {
        let order = model.order();
        let mut edges = Edges { order, ..Edges::default() };
        for (place, step) in steps.all.iter().enumerate() {
            edges.step(place as u32, step);
        }
        let (durable_from, soon_from) = (Vec::new(), Vec::new());
        let (needs, earlier) = (edges.needs, edges.earlier);
        let mut ordered = StepOrder { steps, order, needs, earlier, durable_from, soon_from };
        ordered.durable_from = ordered.since(|sync| sync.ended);
        ordered.soon_from = ordered.since(|sync| sync.began);
        ordered
    }

    /// Adds what must be there before what is chosen.
    pub fn close(&self, chosen: &mut StepSet) {
        self.close_by(chosen, true);
    }

    fn close_by(&self, chosen: &mut StepSet, in_order: bool) {
        // Whatever a step needs stands before it.
        for place in (0..chosen.len()).rev() {
            if chosen[place] {
                let earlier = self.earlier[place].filter(|_| in_order);
                for needed in self.needs[place].iter().copied().chain(earlier) {
                    chosen[needed as usize] = true;
                }
            }
        }
    }

    /// Takes away what cannot be there without what is not chosen. `kept` is what is durable.
    pub fn open(&self, chosen: &mut StepSet, kept: &StepSet) {
        for place in 0..chosen.len() {
            let missing = |needed: &u32| !chosen[*needed as usize];
            let out_of_order = match self.earlier[place] {
                // What a log of its own keeps, is there without what came before it.
                Some(before) if !self.order.sync_keeps_earlier => {
                    !self.last_in_order(chosen, kept, before)
                }
                Some(before) => !chosen[before as usize],
                None => false,
            };
            if !kept[place] && (self.needs[place].iter().any(missing) || out_of_order) {
                chosen[place] = false;
            }
        }
    }

    /// Whether the last step before this one that is not there by a sync of its own is there.
    fn last_in_order(&self, chosen: &StepSet, kept: &StepSet, from: u32) -> bool {
        let mut at = Some(from);
        while let Some(place) = at {
            if !kept[place as usize] {
                return chosen[place as usize];
            }
            at = self.earlier[place as usize];
        }
        true
    }

    /// What is durable at a tick; `more` are syncs that the program did not make.
    pub fn durable(&self, tick: u64, more: &[Sync]) -> StepSet {
        self.kept(tick, more, |sync| sync.ended, &self.durable_from)
    }

    /// The same, and what it is once the syncs that are going on have ended, where that is no more
    /// than a part of the order of the calls: it may be there before they return.
    pub(super) fn durable_or_soon(&self, tick: u64, more: &[Sync]) -> Vec<StepSet> {
        let mut both = vec![self.durable(tick, more)];
        if self.order.names && !self.order.sync_keeps_earlier {
            let soon = self.kept(tick, more, |sync| sync.began, &self.soon_from);
            both.extend(Some(soon).filter(|soon| *soon != both[0]));
        }
        both
    }

    fn kept(&self, tick: u64, more: &[Sync], from: fn(&Sync) -> u64, program: &[u64]) -> StepSet {
        let mut kept: StepSet = program.iter().map(|from| *from < tick).collect();
        for sync in more.iter().filter(|sync| from(sync) < tick) {
            for (place, kept) in kept.iter_mut().enumerate() {
                *kept |= self.keeps(sync, place);
            }
        }
        self.close_by(&mut kept, self.order.sync_keeps_earlier);
        kept
    }

    /// From which tick on each step is durable by the program's own syncs, but for what these keep
    /// with it.
    fn since(&self, from: fn(&Sync) -> u64) -> Vec<u64> {
        let mut since = vec![u64::MAX; self.steps.all.len()];
        for sync in &self.steps.syncs {
            let from = from(sync);
            let last = self.steps.all.partition_point(|step| step.started <= sync.began);
            for (place, since) in since.iter_mut().enumerate().take(last) {
                if from < *since && self.keeps(sync, place) {
                    *since = from;
                }
            }
        }
        since
    }

    /// Whether a sync makes a step durable.
    fn keeps(&self, sync: &Sync, place: usize) -> bool {
        let step = &self.steps.all[place];
        let before =
            step.started < sync.began && step.returned < sync.began && sync.began < step.lost_from;
        let own = matches!(sync.of, SyncScope::Write(call) if call == step.call);
        (before || own) && self.makes_durable(sync.of, &step.effect, step.call)
    }

    fn makes_durable(&self, of: SyncScope, effect: &Effect, call: usize) -> bool {
        let names = effect.is_name();
        match of {
            SyncScope::All => true,
            SyncScope::Write(write) => write == call,
            SyncScope::Names(dir) => {
                effect.places().any(|place| place.dir == dir)
                    || (matches!(effect, Effect::Make { file, .. } if *file == dir))
            }
            SyncScope::File(file) | SyncScope::Data(file) if effect.file() == file => {
                let attributes = matches!(effect, Effect::Attributes { .. });
                (!names || self.order.sync_keeps_names)
                    && !(attributes && matches!(of, SyncScope::Data(_)))
            }
            SyncScope::File(_) | SyncScope::Data(_) => false,
        }
    }
}

/// What is known while the steps are gone through.
#[derive(Default)]
struct Edges {
    order: Order,
    needs: Vec<Vec<u32>>,
    earlier: Vec<Option<u32>>,
    /// The last step of each kind.
    names: HashMap<Place, u32>,
    made: HashMap<u64, u32>,
    sizes: HashMap<u64, u32>,
    /// Those that were not made by a write.
    set_sizes: HashMap<u64, u32>,
    attributes: HashMap<u64, u32>,
    pages: HashMap<(u64, u64), u32>,
    /// What has taken data away.
    cuts: HashMap<u64, u32>,
    /// Data of each file, and sizes by writes.
    contents: HashMap<u64, Vec<u32>>,
    in_order: Option<u32>,
}

impl Default for Order {
    fn default() -> Self {
        POSIX
    }
}

impl Edges {
    fn step(&mut self, place: u32, step: &Step) {
        let effect = &step.effect;
        let file = effect.file();
        let mut needs: Vec<u32> = Vec::new();
        // Whoever has a name must be there, but on ext2.
        if !(effect.is_name() && self.order.names_before_files) {
            needs.extend(self.made.get(&file));
        }
        for at in effect.places() {
            needs.extend(self.names.insert(at.clone(), place));
        }
        let contents = self.contents.entry(file).or_default();
        match effect {
            Effect::Make { .. } => drop(self.made.insert(file, place)),
            Effect::Bind { .. } | Effect::Unbind { .. } | Effect::Swap { .. } => {}
            Effect::Move { replaced, .. } => {
                if replaced.is_some() && self.order.replaced_after_data {
                    needs.extend(&*contents);
                }
            }
            Effect::Data { at, .. } => {
                needs.extend(self.cuts.get(&file));
                needs.extend(self.pages.insert((file, at / PAGE), place));
                contents.push(place);
            }
            Effect::Size { written, shorter, .. } => {
                let last = self.sizes.get(&file).copied();
                // A size that is set holds whether or not what was written before is there.
                match written {
                    true => needs.extend(last),
                    false => needs.extend(self.set_sizes.insert(file, place)),
                }
                self.sizes.insert(file, place);
                if *written {
                    if self.order.size_after_data {
                        // What the last size has waited for is there with it.
                        let since = contents.iter().rev();
                        needs.extend(since.take_while(|data| last.is_none_or(|l| **data > l)));
                    }
                    contents.push(place);
                }
                if *shorter {
                    self.cuts.insert(file, place);
                }
            }
            Effect::Zeros { .. } => needs.extend(self.cuts.insert(file, place)),
            Effect::Collapse { .. } | Effect::Insert { .. } => {
                needs.extend(&*contents);
                needs.extend(self.cuts.insert(file, place));
                needs.extend(self.sizes.get(&file));
            }
            Effect::Attributes { .. } => needs.extend(self.attributes.insert(file, place)),
        }
        // What a write makes comes when it is written back, and keeps what was there before.
        let later = matches!(effect, Effect::Data { .. } | Effect::Size { written: true, .. });
        let earlier = match (self.order.data, self.order.names, effect) {
            (true, ..) => self.in_order.replace(place),
            (_, true, Effect::Data { .. }) | (_, false, _) => None,
            (_, true, _) if later => self.in_order,
            (_, true, _) => self.in_order.replace(place),
        };
        needs.sort_unstable();
        needs.dedup();
        self.needs.push(needs);
        self.earlier.push(earlier);
    }
}
