//! The command line of fuse2fs(1), by a link of that name: `[-f] [-d] [-s] [-o OPTIONS] IMAGE
//! FOLDER`, as Apptainer and others call it.
//!
//! Apptainer's offset into a larger file is not on the command line: fuse2fs had no such option, so
//! a preloaded library shifts what the process reads, told by two variables. Ours reads by the
//! kernel's own calls, which no library shifts, so the variables are read here.

use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use crate::terminal;

/// The name of the link.
pub const NAME: &str = "fuse2fs";
const PRELOAD: &str = "LD_PRELOAD";
const OFFSET_FILE: &str = "OFFSETPRELOAD_FILE";
const OFFSET: &str = "OFFSETPRELOAD_OFFSET";

/// Starts this program again without a preloaded library that shifts reads: some of ours go through
/// the C library.
///
/// # Errors
/// It cannot be started.
pub fn without_preload(words: &[OsString]) -> std::io::Result<()> {
    let is_shifted = [PRELOAD, OFFSET_FILE].iter().all(|name| std::env::var_os(name).is_some());
    let name = words.first().and_then(|word| Path::new(word).file_name());
    if !is_shifted || name != Some(OsStr::new(NAME)) {
        return Ok(());
    }
    let mut again = Command::new("/proc/self/exe");
    again.arg0(&words[0]).args(&words[1..]).env_remove(PRELOAD);
    Err(again.exec())
}

/// The words that follow the program's name as our `mount` has them.
pub fn arguments(rest: &[OsString]) -> Vec<OsString> {
    converted(rest, |name| std::env::var_os(name))
}

fn converted(rest: &[OsString], variable: impl Fn(&str) -> Option<OsString>) -> Vec<OsString> {
    match rest.first().and_then(|word| word.to_str()) {
        Some("-V" | "--version") => return ["--version".into()].into(),
        Some("-h" | "--help" | "--helpfull") => return ["mount", "--help"].map(Into::into).into(),
        _ => {}
    }
    let mut ours: Vec<OsString> = vec!["mount".into()];
    let mut options: Vec<String> = Vec::new();
    let mut paths = Vec::new();
    let mut is_foreground = false;
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match word.to_str() {
            Some("-f") => is_foreground = true,
            Some("-d") => options.push("debug".into()),
            Some("-s") => options.push("threads=1".into()),
            Some("-o") => options.extend(words.next().map(|o| o.to_string_lossy().into_owned())),
            Some(joined) if joined.starts_with("-o") => options.push(joined[2..].into()),
            Some(flag) if flag.starts_with('-') => ours.push(word.clone()),
            _ => paths.push(word.clone()),
        }
    }
    let offset = variable(OFFSET_FILE).filter(|file| paths.first() == Some(file));
    if let Some(offset) = offset.and(variable(OFFSET)) {
        options.push(format!("offset={}", offset.to_string_lossy()));
    }
    let list = options.join(",");
    let mut kept = Vec::new();
    for option in list.split(',').filter(|option| !option.is_empty()) {
        match option {
            // It implies the other.
            "norecovery" => kept.extend(["ro", "norecovery"]),
            "debug" => {
                is_foreground = true;
                kept.push(option);
            }
            "errors=panic" | "errors=continue" => terminal::note(&format!(
                "note: {option} is not offered: after an error nothing more is written"
            )),
            other => kept.push(other),
        }
    }
    if is_foreground {
        ours.push("--foreground".into());
    }
    if !kept.is_empty() {
        ours.extend(["-o".into(), kept.join(",").into()]);
    }
    ours.extend(paths);
    ours
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str, variables: &[(&str, &str)]) -> String {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let variable = |name: &str| {
            variables.iter().find(|(n, _)| *n == name).map(|(_, value)| OsString::from(value))
        };
        let ours = converted(&words, variable);
        ours.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn its_command_line_becomes_ours() {
        for (theirs, ours) in [
            ("a.img /m", "mount a.img /m"),
            ("-f -o  a.img /m", "mount --foreground a.img /m"),
            (
                "-f -o fakeroot,ro /proc/self/fd/3 /m",
                "mount --foreground -o fakeroot,ro /proc/self/fd/3 /m",
            ),
            ("a.img /m -o norecovery -s", "mount -o ro,norecovery,threads=1 a.img /m"),
            ("a.img -d /m -onoatime", "mount --foreground -o debug,noatime a.img /m"),
            ("a.img /m -o errors=remount-ro", "mount -o errors=remount-ro a.img /m"),
            ("a.img /m -o errors=panic", "mount a.img /m"),
            ("-V", "--version"),
            ("--help", "mount --help"),
        ] {
            assert_eq!(of(theirs, &[]), ours);
        }
        let variables = [(OFFSET_FILE, "a.sif"), (OFFSET, "4096")];
        assert_eq!(of("-f a.sif /m", &variables), "mount --foreground -o offset=4096 a.sif /m");
        assert_eq!(of("-f b.img /m", &variables), "mount --foreground b.img /m");
    }
}
