//! Who opens stacks beside `setup`: devices by paths, volumes, file systems. Each such place is in
//! [`BESIDE`] with its reason; another one is a fault, and so is an entry that is not needed any
//! more.

use std::collections::BTreeSet;

use super::source::{Crate, CrateModule};

/// What opens or makes a part of a stack: the last names of a path, or an imported function.
const CALLS: [(&str, &[&str]); 7] = [
    ("a file system is mounted", &["Ext4", "mount"]),
    ("a superblock's mount options are taken", &["options", "default_options"]),
    ("a file system is made", &["mkfs", "make"]),
    ("a journal device is made", &["mkfs", "make_journal_device"]),
    ("a file or device is opened", &["FileDevice", "open"]),
    ("volumes are assembled", &["steadfast_volume", "assemble"]),
    ("a mirror is made", &["steadfast_volume", "create_mirror"]),
];

/// Crates whose matter it is: those below `setup`, and what is not published.
const BELOW: [&str; 8] =
    ["setup", "devices", "volume", "ext4", "ext4-mkfs", "ext4-tune", "ext4-check", "bench"];

/// Crate, file, and why it is there.
const BESIDE: [(&str, &str, &str); 5] = [
    ("lab", "run/legs/boot.rs", "assembles what is left without one device, and by hand"),
    ("lab", "run/real.rs", "a loop device over a model"),
    ("steadfast", "image/make.rs", "the library's mkfs: says on which of two devices it failed"),
    ("steadfast", "commands/mkfs.rs", "mkfs itself"),
    ("steadfast", "commands/calibrate.rs", "measures one device past the page cache, no stack"),
];

/// Places that are not listed, and entries of the list that are not needed.
pub fn faults(crates: &[Crate]) -> Vec<String> {
    let mut found: BTreeSet<(String, String)> = BTreeSet::new();
    let mut faults = Vec::new();
    for one in crates.iter().filter(|c| c.is_published && !BELOW.contains(&&*c.name)) {
        for module in &one.modules {
            let file = one.short(module.file);
            for (what, call) in CALLS.iter().filter(|(_, call)| opens(module, call)) {
                let listed = BESIDE.iter().any(|(of, path, _)| *of == one.name && *path == file);
                if !listed {
                    faults.push(format!(
                        "{} {file}: {what} ({}): open it through the crate setup",
                        one.name,
                        call.join("::")
                    ));
                }
                found.insert((one.name.clone(), file.clone()));
            }
        }
    }
    let needed = |of: &str, path: &str| found.contains(&(of.to_owned(), path.to_owned()));
    let stale = BESIDE.iter().filter(|(of, path, _)| !needed(of, path));
    faults.extend(stale.map(|(of, path, _)| format!("{of} {path}: opens nothing any more")));
    faults
}

/// Whether a module calls that: by a path that ends so, or by a name that it imports from there.
fn opens(module: &CrateModule, call: &[&str]) -> bool {
    let ends = |path: &Vec<String>| {
        path.len() >= call.len() && path[path.len() - call.len()..].iter().eq(call.iter())
    };
    module.paths.iter().any(ends) || module.imports.iter().any(|import| ends(&import.path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_opener_is_found() {
        let text = "use steadfast_ext4::Ext4;\npub fn f() { Ext4::mount(disk, options); }\n\
                    #[cfg(test)]\nmod tests { fn g() { super::mkfs::make(); } }\n";
        let one = |name: &str| Crate::of_texts(name, &[("lib.rs", text)]);
        let found = |name: &str| -> Vec<String> {
            let all = faults(&[one(name)]);
            all.into_iter().filter(|fault| !fault.ends_with("any more")).collect()
        };
        assert_eq!(found("fuse").len(), 1, "{:?}", found("fuse"));
        assert!(found("fuse")[0].contains("a file system is mounted"));
        assert!(found("setup").is_empty());
        let text = "use steadfast_volume::{Mirror, assemble};\npub fn f() { assemble(all); }\n";
        let volumes = [Crate::of_texts("fuse", &[("lib.rs", text)])];
        assert!(faults(&volumes).iter().any(|fault| fault.contains("volumes are assembled")));
    }
}
