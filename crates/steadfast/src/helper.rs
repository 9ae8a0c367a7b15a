//! How mount(8), umount(8), mount.fuse(8) and links call the program: under another name, or with
//! the source and the folder alone. Such a command line becomes one of ours.
//!
//! * `mount.steadfast`, `mount.fuse.steadfast`: `SOURCE FOLDER [-sfnv] [-N NAMESPACE] [-t TYPE]
//!   [-o OPTIONS]` (mount(8), external helpers)
//! * `umount.steadfast`, `umount.fuse.steadfast`: `FOLDER [-nlfvr] [-N NAMESPACE]
//!   [-t TYPE.SUBTYPE]`
//! * `steadfast SOURCE FOLDER -o OPTIONS`: by mount.fuse(8), which takes the type's second part for
//!   the program's name
//! * `fuse2fs`: fuse2fs(1)'s
//! * `metainit`, `metastat` ...: the Solaris Volume Manager's commands, by links that
//!   `steadfast svm link` has made

pub mod fuse2fs;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::OnceLock;

/// The command line of this process, as ours.
static OWN: OnceLock<Vec<OsString>> = OnceLock::new();

/// Keeps it for who starts the program again, in the background.
pub fn keep(words: Vec<OsString>) {
    // OK to ignore: it is said once.
    let _ = OWN.set(words);
}

/// It, without the program's name.
pub fn own_arguments() -> Vec<OsString> {
    OWN.get().map_or_else(Vec::new, |words| words.iter().skip(1).cloned().collect())
}

/// The command line as ours: with a command, under our name.
pub fn arguments(given: Vec<OsString>, commands: &[&str]) -> Vec<OsString> {
    let name = given.first().and_then(|n| Path::new(n).file_name()).unwrap_or_default();
    let name = name.to_string_lossy().into_owned();
    let rest = given.get(1..).unwrap_or_default();
    if steadfast_svm::NAMES.contains(&name.as_str()) {
        let ours = ["steadfast", "svm", &name].map(OsString::from);
        return ours.into_iter().chain(rest.iter().cloned()).collect();
    }
    if name == fuse2fs::NAME {
        let ours = std::iter::once("steadfast".into());
        return ours.chain(fuse2fs::arguments(rest)).collect();
    }
    let command = match rest.first().and_then(|word| word.to_str()) {
        _ if name.starts_with("mount.") => "mount",
        _ if name.starts_with("umount.") => "umount",
        Some(word) if is_bare(word, rest, commands) => "mount",
        _ => return given,
    };
    let mut ours: Vec<OsString> = vec!["steadfast".into(), command.into()];
    if name.starts_with("mount.") || name.starts_with("umount.") {
        ours.extend(without_flags(rest));
    } else {
        ours.extend_from_slice(rest);
    }
    ours
}

/// `SOURCE FOLDER [-o ...]`: not one of our commands, and two words that are no options. A source
/// is a path; what looks like none is a command with a slip in it.
fn is_bare(first: &str, rest: &[OsString], commands: &[&str]) -> bool {
    let is_option = |word: &OsStr| word.as_encoded_bytes().starts_with(b"-");
    let second = rest.get(1).is_some_and(|word| !is_option(word));
    let third = rest.get(2).is_none_or(|word| is_option(word));
    let is_path = first.contains('/') || Path::new(first).symlink_metadata().is_ok();
    !first.starts_with('-') && !commands.contains(&first) && is_path && second && third
}

/// What a helper is given, without the flags that are mount(8)'s own affair.
fn without_flags(rest: &[OsString]) -> Vec<OsString> {
    let mut kept = Vec::new();
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-N" | "-t") => drop(words.next()),
            Some("-o") => {
                kept.push(word.clone());
                kept.extend(words.next().cloned());
            }
            Some(flags) if is_own_affair(flags) => {}
            _ => kept.push(word.clone()),
        }
    }
    kept
}

/// One or several of -s -n -v (sloppy, no table, verbose), and of umount's -l -f -r.
fn is_own_affair(flags: &str) -> bool {
    let letters = flags.strip_prefix('-').unwrap_or_default();
    !letters.is_empty() && letters.bytes().all(|b| b"snvlfr".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> String {
        let given = line.split(' ').map(OsString::from).collect();
        let ours = arguments(given, &["mount", "umount", "ls"]);
        ours.iter().map(|w| w.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn helpers_become_commands() {
        let ours = "steadfast mount a.img /m -o rw,acl";
        assert_eq!(of("/sbin/mount.fuse.steadfast a.img /m -o rw,acl"), ours);
        assert_eq!(of("mount.steadfast a.img /m -n -s -v -t fuse.steadfast -o rw,acl"), ours);
        let ours = "steadfast mount /dir/a.img /m";
        assert_eq!(of("steadfast /dir/a.img /m -o rw,acl"), format!("{ours} -o rw,acl"));
        assert_eq!(of("/usr/bin/steadfast /dir/a.img /m"), ours);
        // A name without a folder, that is there: tests run in the folder of the crate.
        assert_eq!(of("steadfast Cargo.toml /m"), "steadfast mount Cargo.toml /m");
        assert_eq!(of("/sbin/umount.fuse.steadfast /m -n"), "steadfast umount /m");
    }

    #[test]
    fn links_are_commands_of_the_volume_manager() {
        let ours = "steadfast svm metaparam -r first d10";
        assert_eq!(of("/root/bin/metaparam -r first d10"), ours);
        assert_eq!(of("ramdiskadm"), "steadfast svm ramdiskadm");
    }

    #[test]
    fn our_own_command_lines_stay() {
        for line in [
            "steadfast mount a.img /m",
            "steadfast ls a.img",
            "steadfast --help",
            "steadfast",
            "steadfast sl a.img / x",
            "steadfast nothing",
            "steadfast chek a.img",
        ] {
            assert_eq!(of(line), line);
        }
    }
}
