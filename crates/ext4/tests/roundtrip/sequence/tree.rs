//! A whole tree as it is seen, to be compared.

use std::collections::BTreeMap;

use steadfast_suite::names::{Tree, Views, differ, look};
use steadfast_vfs::{Attr, FileSystem, FileType, Ino, path};

/// The tree in a file system, without lost+found. Files of several names have a number in place of
/// the inode's: `HostFs` has its own.
pub fn tree_of(fs: &dyn FileSystem) -> Views {
    let mut views = look(fs, fs.root()).unwrap();
    if views.remove("lost+found").is_some() {
        views.entry(String::new()).and_modify(|root| root.links -= 1);
    }
    let mut numbers = BTreeMap::new();
    for view in views.values_mut() {
        let next = numbers.len() as u64;
        view.ino = *numbers.entry(view.ino).or_insert(next);
    }
    views
}

/// Panics where the file system does not hold this tree.
pub fn assert_holds(fs: &dyn FileSystem, tree: &Tree, who: &str) {
    if let Err(what) = tree.compare(&tree_of(fs)) {
        panic!("{who}: {what}");
    }
}

/// Attributes by path, with lost+found. Inode numbers are left out: `HostFs` has its own.
pub fn attrs_of(fs: &dyn FileSystem) -> BTreeMap<Vec<u8>, Attr> {
    let mut all = BTreeMap::new();
    let mut below = vec![(Vec::new(), fs.root())];
    while let Some((at, ino)) = below.pop() {
        let attr = fs.getattr(ino).unwrap();
        if attr.kind == FileType::Directory {
            for entry in path::list(fs, ino).unwrap() {
                let child = fs.lookup(ino, &entry.name).unwrap();
                below.push(([&at[..], b"/", &entry.name].concat(), child.ino));
            }
        }
        all.insert(at, Attr { ino: Ino(0), generation: 0, ..attr });
    }
    all
}

/// Panics where attributes differ.
pub fn assert_same_attrs(ours: &BTreeMap<Vec<u8>, Attr>, kernels: &BTreeMap<Vec<u8>, Attr>) {
    for (path, kernel) in kernels {
        let name = String::from_utf8_lossy(path);
        assert_eq!(ours.get(path), Some(kernel), "attributes of {name}: ours, the kernel's");
    }
    assert_eq!(ours.len(), kernels.len());
}

/// Says how two trees differ, briefly.
pub fn assert_same(found: &Views, due: &Views, who: &str) {
    let names = |views: &Views| views.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(found), names(due), "{who}");
    for ((name, found), due) in found.iter().zip(due.values()) {
        differ(&format!("{who}: {name}"), &found.data, &due.data).unwrap();
        let without_data = |view: &steadfast_suite::names::NodeView| {
            steadfast_suite::names::NodeView { data: Vec::new(), ..view.clone() }
        };
        assert_eq!(without_data(found), without_data(due), "{who}: {name}");
    }
}
