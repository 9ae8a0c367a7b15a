//! Where the files of a replay are: paths, for who judges them.

use std::collections::HashMap;

use crate::format::{CallOp, FileState, ROOT, TraceCall, name_bytes};

/// Deeper than any path; a longer way up is a loop that only a trace can say.
const DEPTH_MAX: usize = 4096;

/// Of each file of the trace its folder and its name there, the last one that it got.
#[derive(Debug, Clone, Default)]
pub(super) struct FilePlaces(HashMap<u64, (u64, String)>);

/// The paths of a call, without a leading '/'. `None`: it has no such name, or its folder has none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallPaths {
    /// Of its name; of a call without one, where its file is.
    pub path: Option<String>,
    /// Of its second name.
    pub to: Option<String>,
}

impl FilePlaces {
    pub fn put(&mut self, state: &FileState) {
        if let Some(dir) = state.dir {
            self.0.insert(state.file, (dir, state.name.clone()));
        }
    }

    pub fn of(&self, call: &TraceCall) -> CallPaths {
        let named = |dir: Option<u64>, name: &str| Some(self.below(self.path(dir?)?, name));
        let path = match call.dir {
            Some(_) => named(call.dir, &call.name),
            None => call.file.and_then(|file| self.path(file)),
        };
        CallPaths { path, to: named(call.to_dir, &call.to) }
    }

    /// The path of a file.
    pub fn path(&self, file: u64) -> Option<String> {
        let (mut names, mut at) = (Vec::new(), file);
        while at != ROOT {
            let (dir, name) = self.0.get(&at)?;
            names.push(name.as_str());
            at = *dir;
            if names.len() > DEPTH_MAX {
                return None;
            }
        }
        let mut path = String::new();
        for name in names.iter().rev() {
            if !path.is_empty() {
                path.push('/');
            }
            path.push_str(&String::from_utf8_lossy(&name_bytes(name).unwrap_or_default()));
        }
        Some(path)
    }

    fn below(&self, folder: String, name: &str) -> String {
        let name = name_bytes(name).unwrap_or_default();
        let name = String::from_utf8_lossy(&name);
        if folder.is_empty() { name.into_owned() } else { format!("{folder}/{name}") }
    }

    /// A call has succeeded.
    pub fn after(&mut self, call: &TraceCall) {
        let mut put = |file: Option<u64>, dir: Option<u64>, name: &str| {
            if let Some((file, dir)) = file.zip(dir) {
                self.0.insert(file, (dir, name.to_owned()));
            }
        };
        match call.op {
            CallOp::Create | CallOp::Mkdir | CallOp::Symlink | CallOp::Mknod | CallOp::Lookup => {
                put(call.file, call.dir, &call.name);
            }
            CallOp::Rename | CallOp::Link => put(call.file, call.to_dir, &call.to),
            CallOp::Exchange => {
                // The other one has no number of its own in the call: it is who had that name.
                let at = call.to_dir.map(|dir| (dir, call.to.clone()));
                let other = self.0.iter().find(|(_, place)| Some(*place) == at.as_ref());
                let other = other.map(|(file, _)| *file);
                let mut put = |file: Option<u64>, dir: Option<u64>, name: &str| {
                    if let Some((file, dir)) = file.zip(dir) {
                        self.0.insert(file, (dir, name.to_owned()));
                    }
                };
                put(other, call.dir, &call.name);
                put(call.file, call.to_dir, &call.to);
            }
            _ => {}
        }
    }
}
