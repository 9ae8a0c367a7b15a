//! Names below the folder that counts: which file each is, and which were there before the first
//! call.
//!
//! A name is known by its folder's file and its text, so a folder that is renamed takes what is in
//! it along. What a call finds and no call has made was there; where that cannot be (its folder was
//! made by a call, or the name was seen to be free) it was made unseen, and a call that makes it is
//! put before.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::build::TraceBuild;
use crate::format::{CallOp, FileKind, FileState, ROOT, TraceCall};
use crate::reader::BYTES_MAX;

/// Symbolic links on the way to a file, at most (as Linux has it).
const LINKS_MAX: usize = 40;

/// A folder and a name in it, in the trace's form.
pub(super) type NamePlace = (u64, String);

/// The names on the way from the folder that counts, in the trace's form; none: it is that folder.
pub(super) type NamePath = Vec<String>;

/// A lookup that has found nothing at a name of which it is not known yet whether it was there.
struct OpenLookup {
    /// Which call.
    call: usize,
    /// The names that follow on its way.
    rest: NamePath,
}

/// The names of a trace that is put together.
#[derive(Default)]
pub(super) struct NameTable {
    /// What is there now; `None`: nothing.
    files: HashMap<NamePlace, Option<u64>>,
    /// Files that were there before.
    pub states: BTreeMap<u64, FileState>,
    /// Folders that calls have made.
    made: HashSet<u64>,
    /// Where symbolic links lead to, as far as calls have made them.
    links: HashMap<u64, Vec<u8>>,
    lookups: HashMap<NamePlace, Vec<OpenLookup>>,
    last_file: u64,
}

impl TraceBuild {
    pub fn new_file(&mut self) -> u64 {
        self.names.last_file += 1;
        self.names.last_file
    }

    /// A folder is made.
    pub fn new_folder(&mut self) -> u64 {
        let folder = self.new_file();
        self.names.made.insert(folder);
        folder
    }

    /// A symbolic link is made.
    pub fn new_link(&mut self, target: Vec<u8>) -> u64 {
        let link = self.new_file();
        self.names.links.insert(link, target);
        link
    }

    /// Whether something is known to be a folder.
    pub fn is_folder(&self, file: u64) -> bool {
        let of = |state: &FileState| state.kind == FileKind::Folder;
        let names = &self.names;
        file == ROOT || names.made.contains(&file) || names.states.get(&file).is_some_and(of)
    }

    /// What is known to be at a path.
    pub fn known(&self, path: &[String]) -> Option<u64> {
        let mut at = ROOT;
        for name in path {
            at = (*self.names.files.get(&(at, name.clone()))?)?;
        }
        Some(at)
    }

    /// The path with the symbolic links that calls have made replaced by where they lead to, except
    /// in the last name unless `follows`. `names_of`: the path of a link's target, from the folder
    /// of the link. `None`: it leads elsewhere, or nowhere.
    pub fn followed(
        &self,
        path: NamePath,
        follows: bool,
        names_of: impl Fn(&[String], &[u8]) -> Option<NamePath>,
    ) -> Option<NamePath> {
        if self.names.links.is_empty() {
            return Some(path);
        }
        let mut path = path;
        'again: for _ in 0..LINKS_MAX {
            let mut at = ROOT;
            for (place, name) in path.iter().enumerate() {
                let Some(Some(file)) = self.names.files.get(&(at, name.clone())) else { break };
                at = *file;
                let is_last = place + 1 == path.len();
                let Some(target) = self.names.links.get(file).filter(|_| follows || !is_last)
                else {
                    continue;
                };
                let mut other = names_of(&path[..place], target)?;
                other.extend_from_slice(&path[place + 1..]);
                path = other;
                continue 'again;
            }
            return Some(path);
        }
        None
    }

    /// The folder and the name of a path; `None`: it is the folder that counts.
    pub fn place(&mut self, path: &[String]) -> Option<NamePlace> {
        let (name, folder) = path.split_last()?;
        Some((self.file(folder, FileKind::Folder), name.clone()))
    }

    /// What a path leads to; if it was not seen before, it was there.
    pub fn file(&mut self, path: &[String], kind: FileKind) -> u64 {
        let mut at = ROOT;
        for (place, name) in path.iter().enumerate() {
            let kind = if place + 1 == path.len() { kind } else { FileKind::Folder };
            at = self.file_in((at, name.clone()), kind);
        }
        at
    }

    fn file_in(&mut self, place: NamePlace, kind: FileKind) -> u64 {
        let known = self.names.files.get(&place).copied();
        if let Some(Some(file)) = known {
            let state = self.names.states.get_mut(&file);
            if let Some(state) = state.filter(|_| kind == FileKind::Folder) {
                // What was taken for a file, as long as only its name was used.
                (state.kind, state.size) = (FileKind::Folder, 0);
            }
            return file;
        }
        let file = self.new_file();
        let is_old = |dir| self.names.states.get(&dir).is_some_and(|s| s.kind == FileKind::Folder);
        let was_there = known.is_none() && (place.0 == ROOT || is_old(place.0));
        let (dir, name) = (Some(place.0), place.1.clone());
        if was_there {
            let target = String::new();
            self.names.states.insert(file, FileState { file, kind, size: 0, dir, name, target });
        } else {
            let op = match kind {
                FileKind::Folder => CallOp::Mkdir,
                _ => CallOp::Mknod,
            };
            if kind == FileKind::Folder {
                self.names.made.insert(file);
            }
            let (thread, start) = self.now;
            let call = TraceCall::new(op, thread, start, start);
            self.add(TraceCall { file: Some(file), dir, name, ..call });
        }
        let open = self.names.lookups.remove(&place).unwrap_or_default();
        self.names.files.insert(place, Some(file));
        if was_there {
            open.into_iter().for_each(|lookup| self.went_on(file, lookup));
        }
        file
    }

    /// A lookup had found this folder, and nothing behind it.
    fn went_on(&mut self, folder: u64, lookup: OpenLookup) {
        let OpenLookup { call, mut rest } = lookup;
        let Some(made) = self.calls.get_mut(call).filter(|_| !rest.is_empty()) else { return };
        let name = rest.remove(0);
        (made.dir, made.name) = (Some(folder), name.clone());
        self.looked_in_vain((folder, name), OpenLookup { call, rest });
    }

    fn looked_in_vain(&mut self, place: NamePlace, lookup: OpenLookup) {
        if self.names.files.contains_key(&place) {
            return;
        }
        if lookup.rest.is_empty() || self.names.made.contains(&place.0) {
            self.names.files.insert(place, None);
        } else {
            self.names.lookups.entry(place).or_default().push(lookup);
        }
    }

    /// A call that has found nothing (ENOENT) is made as a lookup of the first name on its way that
    /// is not there; `as_it_is`: as itself, if that is the last name.
    pub fn found_nothing(&mut self, path: &[String], call: TraceCall, as_it_is: bool) {
        let TraceCall { thread, start, end, result, .. } = call;
        let (mut at, last) = (ROOT, path.len().saturating_sub(1));
        for (place, name) in path.iter().enumerate() {
            let here = (at, name.clone());
            match self.names.files.get(&here) {
                Some(Some(file)) if place < last => at = *file,
                _ => {
                    let lookup =
                        TraceCall { result, ..TraceCall::new(CallOp::Lookup, thread, start, end) };
                    let own = if place == last && as_it_is { call } else { lookup };
                    let rest = path[place + 1..].to_vec();
                    let before = self.calls.len();
                    self.add(TraceCall { dir: Some(at), name: name.clone(), ..own });
                    if self.calls.len() > before {
                        self.looked_in_vain(here, OpenLookup { call: before, rest });
                    }
                    return;
                }
            }
        }
    }

    /// From now on a name is this file, or nothing.
    pub fn set(&mut self, place: NamePlace, file: Option<u64>) {
        // Nothing was there when it was looked for.
        self.names.lookups.remove(&place);
        self.names.files.insert(place, file);
    }

    /// A file that was there before had at least so many bytes.
    pub fn had(&mut self, file: u64, bytes: u64) {
        let state = self.names.states.get_mut(&file);
        if let Some(state) = state.filter(|s| s.kind == FileKind::Regular) {
            state.size = state.size.max(bytes.min(BYTES_MAX));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> NamePath {
        text.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn in_vain(build: &mut TraceBuild, text: &str) {
        let call = TraceCall { result: -2, ..TraceCall::new(CallOp::Unlink, 1, 0, 1) };
        build.found_nothing(&path(text), call, true);
    }

    #[test]
    fn a_folder_takes_its_names_along() {
        let mut build = TraceBuild::default();
        let file = build.file(&path("a/b/c"), FileKind::Regular);
        let folder = build.known(&path("a"));
        build.set((ROOT, "z".into()), folder);
        build.set((ROOT, "a".into()), None);
        assert_eq!((build.known(&path("z/b/c")), build.known(&path("a/b/c"))), (Some(file), None));
        assert_eq!(build.names.states.len(), 3);
    }

    #[test]
    fn a_lookup_in_vain_makes_no_folder() {
        let mut build = TraceBuild::default();
        in_vain(&mut build, "b/c/d");
        in_vain(&mut build, "e/f");
        // The one is made later, the other one was there.
        let made = build.new_folder();
        build.set((ROOT, "b".into()), Some(made));
        let was = build.file(&path("e/g"), FileKind::Regular);
        let folder = build.known(&path("e")).unwrap();
        let found: Vec<_> =
            build.calls.iter().map(|c| (c.op, c.dir.unwrap(), c.name.as_str())).collect();
        assert_eq!(found, [(CallOp::Lookup, ROOT, "b"), (CallOp::Lookup, folder, "f")]);
        assert_eq!(build.names.states.keys().copied().collect::<Vec<_>>(), [folder, was]);
        in_vain(&mut build, "b/c");
        assert_eq!((build.calls[2].op, build.calls[2].dir), (CallOp::Unlink, Some(made)));
    }

    /// It cannot have been in a folder that was not there.
    #[test]
    fn what_was_made_unseen_is_made_by_a_call() {
        let mut build = TraceBuild::default();
        let made = build.new_folder();
        build.set((ROOT, "d".into()), Some(made));
        build.now = (7, 30);
        let file = build.file(&path("d/x"), FileKind::Regular);
        assert!(build.names.states.is_empty());
        let call = &build.calls[0];
        assert_eq!((call.op, call.file, call.dir), (CallOp::Mknod, Some(file), Some(made)));
        assert_eq!((call.thread, call.start), (7, 30));
    }

    #[test]
    fn links_are_followed() {
        let mut build = TraceBuild::default();
        let link = build.new_link(b"../y".to_vec());
        build.file(&path("sub"), FileKind::Folder);
        let sub = build.known(&path("sub")).unwrap();
        build.set((sub, "z".into()), Some(link));
        let names_of = |_: &[String], _: &[u8]| Some(path("y"));
        let found = |text: &str, follows| build.followed(path(text), follows, names_of);
        assert_eq!(found("sub/z", true), Some(path("y")));
        assert_eq!(found("sub/z", false), Some(path("sub/z")));
        assert_eq!(found("sub/z/k", false), Some(path("y/k")));
        let circle = |_: &[String], _: &[u8]| Some(path("sub/z"));
        assert_eq!(build.followed(path("sub/z"), true, circle), None);
    }
}
