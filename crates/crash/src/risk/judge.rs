//! Compares the tree that a recovered file system shows with the [`History`] of the workload.
//!
//! A path may hold what its newest durable binding says or what a later one does, begun before the
//! cut. Which one it is, the stamps in the file show. A file without any (empty, zeros,
//! nothing but stale data) may be any of them, and is taken for the one that loses
//! least by that. The contents of each file that was found are judged by the writes to it, wherever
//! it was found; a file that is nowhere is lost with all its data if it still had a name.
//! docs/risk.md defines the figures.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_block::pattern::{self, SECTOR};
use steadfast_devices::filter::record::Moment;
use steadfast_vfs::FileSystem;

use super::tree::Tree;
use super::words;
use crate::account::{Binding, History, Object, Operation};
use crate::figures::StateFigures;
use crate::judge::{FileLoss, Judge, judge};
use crate::program::{Call, CallKind};

impl Judge for History {
    fn judge(&self, fs: &dyn FileSystem, at: Moment, cut: &mut StateFigures) {
        judge_tree(self, &Tree::read(fs, self.has_others), at, cut);
    }

    fn calls(&self) -> Vec<Call> {
        self.as_calls()
    }

    fn operations(&self) -> Vec<(String, Operation)> {
        let named = |(object, ops): (&Object, &Vec<Operation>)| {
            let name = format!("object {}", object.0);
            ops.iter().map(move |op| (name.clone(), *op)).collect::<Vec<_>>()
        };
        self.contents.iter().flat_map(named).collect()
    }

    fn judge_refused(&self, at: Moment, cut: &mut StateFigures) {
        judge_tree(self, &Tree::default(), at, cut);
    }
}

/// Judges what is left after a cut at `at`, and adds what that took to `cut`.
pub(super) fn judge_tree(history: &History, tree: &Tree, at: Moment, cut: &mut StateFigures) {
    cut.damage.extend(tree.unreadable.iter().cloned());
    for path in tree.files.keys() {
        let made = history.bindings.get(path).and_then(|b| b.first());
        if made.is_none() && history.has_others {
            continue;
        }
        if !made.is_some_and(|first| history.begun(first, at.tick)) {
            cut.damage.push(format!("{path}: nobody had made a file of that name"));
        }
    }
    let identified = tree.files.iter().filter_map(|(path, held)| {
        let bindings = history.bindings.get(path)?;
        let bound = |object: &Object| bindings.iter().any(|b| b.holds == Some(*object));
        Some((path.as_str(), object_in(held, bound)?))
    });
    let mut verdict = Verdict {
        history,
        tree,
        at,
        identified: identified.collect(),
        found: BTreeMap::new(),
        blamed: BTreeSet::new(),
        lost_namings: BTreeSet::new(),
        emptied: Vec::new(),
        cut,
    };
    for (path, bindings) in &history.bindings {
        verdict.path(path, bindings);
    }
    verdict.contents();
    verdict.missing();
    verdict.count_lost_namings();
    // There may be many, and all alike: one in words, after what is worse.
    let emptied = verdict.emptied;
    if let Some(first) = emptied.first() {
        let more = emptied.len() - 1;
        cut.findings.push(format!("{first}, and {more} more like it"));
    }
}

struct Verdict<'a> {
    history: &'a History,
    tree: &'a Tree,
    at: Moment,
    /// The file that a path shows, where stamps identify it.
    identified: BTreeMap<&'a str, Object>,
    /// Where each file was found: the first path.
    found: BTreeMap<Object, &'a str>,
    /// Files of which a promise about a name is known to be broken: counted once.
    blamed: BTreeSet<Object>,
    /// Operations on names whose effect is missing: indices in the history.
    lost_namings: BTreeSet<usize>,
    /// Files empty after a rename, in words.
    emptied: Vec<String>,
    cut: &'a mut StateFigures,
}

impl<'a> Verdict<'a> {
    /// Judges what a path shows.
    fn path(&mut self, path: &'a str, bindings: &'a [Binding]) {
        let tick = self.at.tick;
        let begun = bindings.partition_point(|b| self.history.begun(b, tick));
        let bindings = &bindings[..begun];
        let promised = bindings.iter().rposition(|b| b.durable.is_some_and(|d| d.tick < tick));
        let held = self.tree.files.get(path).map(Vec::as_slice);
        let shown = self.shown(path, bindings, promised, held);
        if let (PathState::Binding(i), Some(held)) = (shown, held)
            && let Some(object) = bindings[i].holds
        {
            self.found.entry(object).or_insert(path);
            let replaced = replaced(bindings, i);
            if self.is_empty_after_rename(path, &bindings[i], object, held) {
                self.cut.empty_after_rename += 1;
                self.cut.empty_after_replace += u64::from(replaced);
                self.cut.order_violations += 1;
            }
        }
        // Older than this is missing; before the first binding there was nothing.
        let newer = match shown {
            PathState::Binding(i) => i + 1,
            PathState::Nothing | PathState::Stranger => 0,
        };
        let lost = bindings.get(newer..).unwrap_or_default();
        let returned = lost.iter().filter(|b| self.history.returned(b, tick));
        self.lost_namings.extend(returned.map(|b| b.by));
        if let Some(promised) = promised
            && newer <= promised
        {
            self.broken_name(path, &bindings[promised], held);
        }
    }

    /// Which binding a path shows.
    fn shown(
        &self,
        path: &str,
        bindings: &[Binding],
        promised: Option<usize>,
        held: Option<&[u8]>,
    ) -> PathState {
        let newest = |holds: Option<Object>| bindings.iter().rposition(|b| b.holds == holds);
        let Some(held) = held else {
            return newest(None).map_or(PathState::Nothing, PathState::Binding);
        };
        if let Some(object) = self.identified.get(path) {
            return newest(Some(*object)).map_or(PathState::Stranger, PathState::Binding);
        }
        // No stamp says which: a file that is under no other name, the one that loses least, that
        // replaced nothing, the newest.
        let found_already = |object: Object| self.identified.values().any(|found| *found == object);
        let candidates = bindings.iter().enumerate().skip(promised.unwrap_or(0));
        candidates
            .filter_map(|(i, b)| Some((i, b.holds?)))
            .min_by_key(|(i, object)| {
                let loss = self.loss(*object, Some(held));
                let lost = (loss.broken.len(), loss.lost_bytes);
                (found_already(*object), lost, replaced(bindings, *i), usize::MAX - i)
            })
            .map_or(PathState::Stranger, |(i, _)| PathState::Binding(i))
    }

    fn operations(&self, object: Object) -> &'a [Operation] {
        self.history.contents.get(&object).map_or(&[], Vec::as_slice)
    }

    fn loss(&self, object: Object, held: Option<&[u8]>) -> FileLoss {
        judge(self.operations(object), self.at.tick, held)
    }

    /// Whether a rename put a file here without what had been written to it before.
    fn is_empty_after_rename(
        &mut self,
        path: &str,
        binding: &Binding,
        object: Object,
        held: &[u8],
    ) -> bool {
        let naming = &self.history.namings[binding.by];
        if naming.kind != CallKind::Rename {
            return false;
        }
        let ops = self.operations(object);
        let before =
            |i: &&usize| ops[**i].acknowledged.is_some_and(|a| a.tick < naming.started.tick);
        let loss = self.loss(object, Some(held));
        let Some(first) = loss.lost.iter().find(before) else { return false };
        let words = words::empty_after_rename(path, naming, &ops[*first], held);
        self.emptied.push(words);
        true
    }

    fn broken_name(&mut self, path: &str, promised: &Binding, held: Option<&[u8]>) {
        if promised.holds.is_some_and(|object| !self.blamed.insert(object)) {
            return;
        }
        self.cut.broken_promises += 1;
        let by = &self.history.namings[promised.by];
        self.cut.findings.push(words::broken_name(path, by, promised, held));
    }

    /// Judges what is in each file that was found.
    fn contents(&mut self) {
        for (object, path) in std::mem::take(&mut self.found) {
            let held = self.tree.files.get(path).map(Vec::as_slice);
            let loss = self.loss(object, held);
            let ops = self.operations(object);
            let findings = words::contents(path, ops, &loss, held.unwrap_or_default());
            self.cut.count_file(&loss);
            self.cut.findings.extend(findings);
            self.found.insert(object, path);
        }
    }

    /// Files that had a name and are nowhere.
    fn missing(&mut self) {
        let tick = self.at.tick;
        let (promised, mut counted) = (self.promised_names(), BTreeSet::new());
        for (path, bindings) in &self.history.bindings {
            let begun = bindings.partition_point(|b| self.history.begun(b, tick));
            let Some(last) = bindings[..begun].last() else { continue };
            let Some(object) = last.holds.filter(|o| !self.found.contains_key(o)) else { continue };
            // It may have had several names.
            if !counted.insert(object) {
                continue;
            }
            let loss = self.loss(object, None);
            self.cut.count_missing(&loss);
            // It had a name that was promised, which only a rename has taken away.
            if let Some((old, binding)) = promised.get(&object)
                && self.blamed.insert(object)
            {
                self.cut.broken_promises += 1;
                let by = &self.history.namings[binding.by];
                self.cut.findings.push(words::lost_by_rename(old, by, binding, path));
            }
        }
    }

    /// A name that each file had durably and that nobody has removed since.
    fn promised_names(&self) -> BTreeMap<Object, (&'a str, &'a Binding)> {
        let tick = self.at.tick;
        let removes = |b: &Binding| self.history.namings[b.by].kind == CallKind::Unlink;
        let mut names = BTreeMap::new();
        for (path, bindings) in &self.history.bindings {
            let begun = bindings.partition_point(|b| self.history.begun(b, tick));
            let bindings = &bindings[..begun];
            let newest = bindings.iter().rposition(|b| b.durable.is_some_and(|d| d.tick < tick));
            let Some(newest) = newest else { continue };
            let Some(object) = bindings[newest].holds else { continue };
            if !bindings.get(newest + 1).is_some_and(removes) {
                names.entry(object).or_insert((path.as_str(), &bindings[newest]));
            }
        }
        names
    }

    fn count_lost_namings(&mut self) {
        self.cut.lost_operations += self.lost_namings.len() as u64;
        let returned = self.lost_namings.iter().filter_map(|i| self.history.namings[*i].returned);
        if let Some(oldest) = returned.map(|a| a.at).min() {
            self.cut.lost_age = self.cut.lost_age.max(self.at.at - oldest);
        }
    }
}

/// What a path shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathState {
    /// What the binding with this index says.
    Binding(usize),
    /// Nothing, as before the first binding.
    Nothing,
    /// A file that no binding speaks of.
    Stranger,
}

/// Whether a binding took the place of another file.
fn replaced(bindings: &[Binding], i: usize) -> bool {
    i > 0 && bindings[i - 1].holds.is_some()
}

/// Which of the files that may be here most of the stamps are of.
fn object_in(held: &[u8], bound: impl Fn(&Object) -> bool) -> Option<Object> {
    let mut sectors: BTreeMap<Object, usize> = BTreeMap::new();
    for sector in held.chunks_exact(SECTOR) {
        let stamp = pattern::stamp_of(sector);
        if let Some(object) = stamp.map(|s| Object::of_tag(s.tag)).filter(&bound) {
            *sectors.entry(object).or_default() += 1;
        }
    }
    sectors.into_iter().max_by_key(|(_, sectors)| *sectors).map(|(object, _)| object)
}

#[cfg(test)]
mod tests {
    use steadfast_devices::filter::record::RecordLog;
    use steadfast_runtime::Nanos;

    use super::*;
    use crate::account::Action;
    use crate::account::{Account, Call, CallId};

    struct World {
        log: RecordLog,
        account: Account,
        tree: Tree,
    }

    impl World {
        fn new() -> World {
            let log = RecordLog::new();
            World { account: Account::new(&log), log, tree: Tree::default() }
        }

        fn did(&self, call: Call<'_>) -> CallId {
            let started = self.account.begin(call);
            self.account.end(&started);
            started
        }

        /// Makes a file with one write of 1 KiB in it.
        fn file(&self, path: &str) -> (Object, Vec<u8>) {
            let object = self.did(Call::Create(path)).object;
            let tag = self.did(Call::Write(object, 0, 1024)).tag;
            (object, pattern::bytes(tag, 0, 1024).to_vec())
        }

        /// The power goes now, and the files are these.
        fn cut(&mut self, files: &[(&str, &[u8])]) -> StateFigures {
            let files = files.iter().map(|(path, held)| ((*path).to_owned(), held.to_vec()));
            self.tree.files = files.collect();
            let moment = self.log.note(0, [0; 3]);
            let mut cut = StateFigures {
                at: moment.at + std::time::Duration::from_secs(1),
                ..StateFigures::default()
            };
            let moment = Moment { at: cut.at, ..moment };
            judge_tree(&self.account.history(), &self.tree, moment, &mut cut);
            assert_eq!(cut.lost_age.is_zero(), cut.lost_operations == 0);
            assert!(cut.broken_promises == 0 || !cut.findings.is_empty());
            assert_ne!(cut.at, Nanos::ZERO);
            cut
        }
    }

    /// Broken promises, lost operations, lost bytes.
    fn figures(cut: &StateFigures) -> (u64, u64, u64) {
        (cut.broken_promises, cut.lost_operations, cut.lost_bytes)
    }

    #[test]
    fn what_was_synced_with_its_folder_must_be_there() {
        let mut world = World::new();
        let (file, held) = world.file("d/a");
        // Nothing is promised yet: gone is lost, but not broken.
        assert_eq!(figures(&world.cut(&[])), (0, 2, 1024));
        assert_eq!(figures(&world.cut(&[("d/a", &[])])), (0, 1, 1024));
        world.did(Call::SyncFile(file));
        // The file, but not its name.
        assert_eq!(figures(&world.cut(&[])), (0, 2, 1024));
        assert_eq!(figures(&world.cut(&[("d/a", &held[..512])])), (1, 1, 512));
        world.did(Call::SyncFolder("d"));
        let gone = world.cut(&[]);
        assert_eq!(figures(&gone), (1, 2, 1024));
        assert!(gone.findings[0].starts_with("d/a: the creation of d/a, called at"), "{gone:?}");
        let kept = world.cut(&[("d/a", &held)]);
        assert_eq!((figures(&kept), kept.findings.len()), ((0, 0, 0), 0));
    }

    #[test]
    fn a_rename_may_be_undone_until_its_folder_is_synced() {
        let mut world = World::new();
        let (a, old) = world.file("d/p");
        world.did(Call::SyncFile(a));
        world.did(Call::SyncFolder("d"));
        let (b, new) = world.file("d/n");
        world.did(Call::SyncFile(b));
        world.did(Call::Rename("d/n", "d/p"));
        assert_eq!(figures(&world.cut(&[("d/p", &new)])), (0, 0, 0));
        // Undone whole: the rename is lost, and what was to be seen there.
        assert_eq!(figures(&world.cut(&[("d/p", &old), ("d/n", &new)])), (0, 1, 0));
        assert_eq!(figures(&world.cut(&[("d/p", &old)])), (0, 2, 1024));
        // A rename replaces: the name must hold one of them.
        assert_eq!(world.cut(&[("d/n", &new)]).broken_promises, 1);
        world.did(Call::SyncFolder("d"));
        assert_eq!(figures(&world.cut(&[("d/p", &new)])), (0, 0, 0));
        let back = world.cut(&[("d/p", &old)]);
        assert_eq!(figures(&back), (1, 2, 1024));
        assert!(back.findings[0].contains("the rename of d/n to d/p"), "{back:?}");
    }

    #[test]
    fn a_renamed_file_without_its_data_is_empty_after_rename() {
        let mut world = World::new();
        let (a, _) = world.file("d/p");
        world.did(Call::SyncFile(a));
        world.did(Call::SyncFolder("d"));
        let (b, new) = world.file("d/n");
        world.did(Call::Rename("d/n", "d/p"));
        let emptied = world.cut(&[("d/p", &[])]);
        assert_eq!((emptied.empty_after_rename, emptied.order_violations), (1, 1));
        assert_eq!(emptied.empty_after_replace, 1);
        assert_eq!(figures(&emptied), (0, 1, 1024));
        assert!(emptied.findings[0].contains("empty after rename"), "{emptied:?}");
        // What is written after the rename may be missing.
        world.did(Call::Write(b, 1024, 512));
        let later = world.cut(&[("d/p", &new)]);
        assert_eq!((later.empty_after_rename, figures(&later)), (0, (0, 1, 512)));
        // Nothing was there before: empty, but nothing else has gone for it.
        world.file("d/x");
        world.did(Call::Rename("d/x", "d/y"));
        let moved = world.cut(&[("d/p", &new), ("d/y", &[])]);
        assert_eq!((moved.empty_after_rename, moved.empty_after_replace), (1, 0));
        // Empty under its old name: the rename is lost, nothing is empty after it.
        let old_name = world.cut(&[("d/n", &[])]);
        assert_eq!(old_name.empty_after_rename, 0);
        // A promise that was made to its data is broken by that.
        world.did(Call::SyncFile(b));
        assert_eq!(world.cut(&[("d/p", &[])]).broken_promises, 1);
    }

    #[test]
    fn what_was_removed_for_good_must_not_come_back() {
        let mut world = World::new();
        let (a, held) = world.file("d/a");
        world.did(Call::SyncFile(a));
        world.did(Call::SyncFolder("d"));
        world.did(Call::Remove("d/a"));
        for files in [&[][..], &[("d/a", &held[..])], &[("d/a", &[])]] {
            assert_eq!(world.cut(files).broken_promises, u64::from(files == [("d/a", &[][..])]));
        }
        world.did(Call::SyncFolder("d"));
        assert_eq!(figures(&world.cut(&[])), (0, 0, 0));
        assert_eq!(figures(&world.cut(&[("d/a", &held)])), (1, 1, 0));
    }

    /// A symbolic link, which nobody judges, takes the place of a file.
    #[test]
    fn what_a_link_replaces_must_not_come_back() {
        let mut world = World::new();
        let (a, held) = world.file("d/a");
        world.did(Call::SyncFile(a));
        world.did(Call::SyncFolder("d"));
        world.did(Call::Rename("d/link", "d/a"));
        for files in [&[][..], &[("d/a", &held[..])]] {
            assert_eq!(world.cut(files).broken_promises, 0);
        }
        world.did(Call::SyncFolder("d"));
        assert_eq!(figures(&world.cut(&[])), (0, 0, 0));
        assert_eq!(world.cut(&[("d/a", &held)]).broken_promises, 1);
    }

    #[test]
    fn what_is_in_folders_goes_with_them_when_they_change_places() {
        let mut world = World::new();
        let (a, first) = world.file("p/x");
        let (b, second) = world.file("q/y");
        for object in [a, b] {
            world.did(Call::SyncFile(object));
        }
        for folder in ["p", "q"] {
            world.did(Call::SyncFolder(folder));
        }
        world.did(Call::Exchange("p", "q"));
        world.did(Call::SyncAll);
        let after = world.cut(&[("q/x", &first), ("p/y", &second)]);
        assert_eq!(figures(&after), (0, 0, 0), "{after:?}");
        assert!(world.cut(&[("p/x", &first), ("q/y", &second)]).broken_promises > 0);
        assert!(world.cut(&[]).broken_promises > 0);
    }

    #[test]
    fn a_rename_to_another_folder_must_not_lose_the_file() {
        let mut world = World::new();
        let (a, held) = world.file("d/a");
        world.did(Call::SyncFile(a));
        world.did(Call::SyncFolder("d"));
        world.did(Call::Rename("d/a", "e/a"));
        assert_eq!(figures(&world.cut(&[("d/a", &held)])), (0, 1, 0));
        assert_eq!(figures(&world.cut(&[("e/a", &held)])), (0, 0, 0));
        let lost = world.cut(&[]);
        assert_eq!(figures(&lost), (1, 2, 1024));
        assert!(lost.findings[0].contains("neither there nor at e/a"), "{lost:?}");
        world.did(Call::Remove("e/a"));
        assert_eq!(world.cut(&[]).broken_promises, 0);
    }

    #[test]
    fn a_file_of_two_names_is_lost_once_and_removing_one_promises_nothing() {
        let mut world = World::new();
        let (a, held) = world.file("d/a");
        world.did(Call::SyncFile(a));
        world.did(Call::SyncFolder("d"));
        world.did(Call::Link("d/a", "e/a"));
        let both = world.cut(&[("d/a", &held), ("e/a", &held)]);
        assert_eq!(figures(&both), (0, 0, 0));
        // The new name may be missing, the old one must be there.
        assert_eq!(figures(&world.cut(&[("d/a", &held)])), (0, 1, 0));
        assert_eq!(figures(&world.cut(&[])), (1, 3, 1024));
        // Two folders: POSIX orders nothing between them.
        world.did(Call::Remove("d/a"));
        assert_eq!(figures(&world.cut(&[("e/a", &held)])), (0, 0, 0));
        assert_eq!(figures(&world.cut(&[])), (0, 2, 1024));
        world.did(Call::SyncFolder("e"));
        assert_eq!(figures(&world.cut(&[])), (1, 2, 1024));
    }

    #[test]
    fn holes_and_sizes_are_promised_too() {
        let mut world = World::new();
        let (a, held) = world.file("d/a");
        world.did(Call::Change(a, Action::Clear { offset: 0, len: 512 }));
        world.did(Call::Change(a, Action::Resize { size: 4096 }));
        assert_eq!(world.cut(&[("d/a", &held)]).broken_promises, 0);
        world.did(Call::SyncFile(a));
        let mut whole = held.clone();
        whole[..512].fill(0);
        whole.resize(4096, 0);
        assert_eq!(figures(&world.cut(&[("d/a", &whole)])), (0, 0, 0));
        let grown = [held, vec![0; 3072]].concat();
        let back = world.cut(&[("d/a", &grown)]);
        assert_eq!(back.broken_promises, 1);
        assert!(back.findings[0].contains("the hole of 512 bytes at 0"), "{back:?}");
        let short = world.cut(&[("d/a", &whole[..1024])]);
        assert_eq!(short.broken_promises, 1);
        assert!(short.findings[0].contains("the new size of 4096 bytes"), "{short:?}");
    }

    #[test]
    fn stale_blocks_and_names_that_nobody_made_are_seen() {
        let mut world = World::new();
        world.file("d/a");
        let stale = pattern::bytes(0xdead, 0, 1024);
        let cut = world.cut(&[("d/a", &stale)]);
        assert_eq!((cut.stale_bytes, figures(&cut)), (1024, (0, 1, 1024)));
        assert!(cut.findings[0].contains("at 0 what the disk held before"), "{cut:?}");
        let stranger = world.cut(&[("d/zzz", &stale)]);
        assert_eq!(stranger.damage.len(), 1);
        let moment = world.log.note(0, [0; 3]);
        world.file("d/later");
        world.tree.files = [("d/later".to_owned(), Vec::new())].into();
        let mut cut = StateFigures::default();
        judge_tree(&world.account.history(), &world.tree, moment, &mut cut);
        assert_eq!(cut.damage.len(), 1, "it had not been made yet");
    }
}
