//! Volumes that are made of volumes, by the names of their members.

use std::collections::{BTreeMap, BTreeSet};

use steadfast_volume::DEPTH_MAX;

use crate::form::Fields;

/// The members of each volume, by its name.
pub type Members<'n> = BTreeMap<&'n str, Vec<String>>;

/// A way down from a volume to its devices. Each volume is gone into once, however often it is
/// named.
#[derive(Default)]
struct Walk {
    above: Vec<String>,
    seen: BTreeSet<String>,
    twice: BTreeSet<String>,
    around: Option<Vec<String>>,
    is_too_deep: bool,
}

impl Walk {
    fn down(&mut self, name: &str, members: &Members<'_>) {
        if self.above.iter().any(|n| n == name) {
            let around = self.above.iter().cloned().chain([name.to_owned()]);
            self.around.get_or_insert_with(|| around.collect());
            return;
        }
        if !self.seen.insert(name.to_owned()) {
            self.twice.insert(name.to_owned());
            return;
        }
        let Some(own) = members.get(name) else { return };
        if self.above.len() == DEPTH_MAX {
            self.is_too_deep = true;
            return;
        }
        self.above.push(name.to_owned());
        own.iter().for_each(|member| self.down(member, members));
        self.above.pop();
    }
}

/// Notes volumes that are made of themselves, that have something twice, and the outermost of those
/// that are too many levels; `key` has the members.
pub fn check_nesting(volumes: &[(String, Fields<'_>)], key: &str, members: &Members<'_>) {
    let mut too_deep: Vec<&(String, Fields<'_>)> = Vec::new();
    for volume @ (name, fields) in volumes {
        let mut walk = Walk::default();
        walk.down(name, members);
        if walk.is_too_deep {
            too_deep.push(volume);
        }
        if let Some(around) = walk.around {
            let what = format!("[volume.{name}] is made of itself: {}", around.join(" > "));
            fields.wrong(key, what, "");
        }
        for twice in walk.twice {
            let what = format!("`{twice}` is in [volume.{name}] twice");
            fields.wrong(key, what, "each place needs a device of its own");
        }
    }
    let inner: BTreeSet<&String> = members.values().flatten().collect();
    let outer = too_deep.iter().find(|(name, _)| !inner.contains(name)).or(too_deep.first());
    if let Some((name, fields)) = outer {
        let what = format!("[volume.{name}] is volumes of volumes in more than {DEPTH_MAX} levels");
        fields.wrong(key, what, "");
    }
}
