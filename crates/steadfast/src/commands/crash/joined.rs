//! File systems beside the first one, each on a described stack of its own and mounted in a folder:
//! what has its data on one device and its log on another loses power on both.

use std::collections::BTreeMap;

use steadfast_devices::filter::record::Media;
use steadfast_vfs::JOINED_MAX;

use super::devices::{Disk, JournalMedium};
use super::on_stack::OnStack;
use super::setup::{Fs, Setup};
use crate::Usage;
use crate::cli::FsKind;

/// Its folder, a path from the working folder, and what it is on.
pub type JoinedSetup = (String, Setup);

/// What the arguments of `--stack` ask for: the first file system's stack, if one is named without
/// a folder, and the others.
pub fn stacks(
    arguments: &[String],
    epoch: u64,
) -> Result<(Option<OnStack>, Vec<JoinedSetup>), Usage> {
    let (mut first, mut joined) = (None, Vec::new());
    for argument in arguments {
        let split = argument.split_once('=').filter(|(folder, _)| !folder.starts_with(['/', '.']));
        let Some((folder, stack)) = split else {
            if first.replace(OnStack::named(argument)?).is_some() {
                usage!(
                    "--stack {argument}: there is one already; FOLDER=FILE mounts it in a folder"
                );
            }
            continue;
        };
        joined.push((folder.to_owned(), on(OnStack::named(stack)?, epoch)?));
    }
    checked(&joined)?;
    Ok((first, joined))
}

fn on(stack: OnStack, epoch: u64) -> Result<Setup, Usage> {
    let setup = Setup {
        name: "ext4".into(),
        fs: Fs::Own(FsKind::Ext4),
        options: stack.mount_options().to_owned(),
        journal: JournalMedium::Internal,
        disk: "ssd".parse::<Disk>().map_err(Usage)?,
        media: Media::default(),
        size: 64 << 20,
        epoch,
        stack: Some(stack),
        joined: Vec::new(),
    };
    setup.checked()
}

/// Folders of which none lies in another.
fn checked(joined: &[JoinedSetup]) -> Result<(), Usage> {
    if joined.len() >= JOINED_MAX {
        usage!("--stack: at most {} are mounted in folders", JOINED_MAX - 1);
    }
    for (number, (folder, _)) in joined.iter().enumerate() {
        if folder.split('/').any(|name| matches!(name, "" | "." | "..") || name.len() > 255) {
            usage!(
                "--stack {folder}=: the folder is a path from the working folder, as wal or a/b"
            );
        }
        let inside = |other: &String| format!("{folder}/").starts_with(&format!("{other}/"));
        for (place, (other, _)) in joined.iter().enumerate() {
            if place != number && inside(other) {
                usage!("--stack {folder}=: {other} is mounted on already");
            }
        }
    }
    Ok(())
}

/// For the recording.
pub fn about(joined: &[JoinedSetup]) -> impl Iterator<Item = (String, String)> {
    joined.iter().zip(1..).flat_map(|((folder, setup), number)| {
        let inside = setup.about().into_iter();
        let named = inside.map(move |(key, text)| (format!("joined{number}_{key}"), text));
        named.chain([(format!("joined{number}_folder"), folder.clone())])
    })
}

/// From a recording.
///
/// # Errors
/// It is none of ours.
pub fn from_about(about: &BTreeMap<String, String>) -> Result<Vec<JoinedSetup>, String> {
    let mut joined = Vec::new();
    for number in 1..JOINED_MAX {
        let Some(folder) = about.get(&format!("joined{number}_folder")) else { break };
        let prefix = format!("joined{number}_");
        let own = about
            .iter()
            .filter_map(|(key, text)| Some((key.strip_prefix(&prefix)?.to_owned(), text.clone())));
        // None of its own: they would be mounted in a folder of a folder.
        let own: BTreeMap<_, _> = own.filter(|(key, _)| !key.starts_with("joined")).collect();
        joined.push((folder.clone(), Setup::from_about(&own)?));
    }
    checked(&joined).map_err(|e| e.to_string())?;
    match joined.iter().all(|(_, setup)| matches!(setup.fs, Fs::Own(_))) {
        true => Ok(joined),
        false => Err("a kernel's file system is mounted in a folder of another one".into()),
    }
}
