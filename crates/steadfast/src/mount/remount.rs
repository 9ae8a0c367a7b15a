//! `-o remount`: a mount that is there becomes read-only or writable, and its per-mount flags are
//! changed, as mount(8) has it.

use std::path::Path;
use std::sync::PoisonError;
use std::sync::atomic::Ordering;

use anyhow::{Context, Result, anyhow};
use rustix::mount::MountFlags;
use serde_json::{Value, json};
use steadfast_host::mounts;
use steadfast_vfs::FileSystem;

use super::served::ServedMount;
use super::{control, holders, options};
use crate::{CommandEnd, Usage};

/// Flags of a mount by their words in its options.
const FLAGS: [(&str, &str, MountFlags); 5] = [
    ("ro", "rw", MountFlags::RDONLY),
    ("nosuid", "suid", MountFlags::NOSUID),
    ("nodev", "dev", MountFlags::NODEV),
    ("noexec", "exec", MountFlags::NOEXEC),
    ("nosymfollow", "symfollow", MountFlags::NOSYMFOLLOW),
];

/// Changes the mount at `mountpoint`; `options` as given, with the word `remount`.
pub fn remount(mountpoint: &Path, options: &[String]) -> Result<CommandEnd> {
    let shown = mountpoint.display();
    let (at, running) = control::at(mountpoint)?;
    let running = running.ok_or_else(|| Usage(format!("{shown}: no mount of ours")))?;
    let place = mounts::at(&at).map_err(|e| Usage(format!("{shown}: {e}")))?;
    let had: Vec<String> = serde_json::from_value(running.status["options_in_force"].clone())
        .with_context(|| format!("{shown}: the status of the mount"))?;
    // With noload it has no force, and fstab says it again.
    let given = running.status["options"].as_str().unwrap_or_default().split(',');
    let commit = given.filter(|word| word.starts_with("commit=")).map(ToOwned::to_owned);
    let had: Vec<String> = commit.chain(had).collect();
    refuse_lasting(&had.join(","), options).map_err(|e| Usage(format!("{shown}: {e}")))?;
    let words = options.join(",");
    let words: Vec<&str> = words.split(',').collect();
    let now = options::parse(&[&[had.join(",")], options].concat())?;
    let flags = changed(&place.mount.flags, &words) | now.fuse.access_times.flag();
    let read_only = flags.contains(MountFlags::RDONLY);
    let ask = |verb: &str| {
        let by_flag = FLAGS.map(|(on, off, flag)| if flags.contains(flag) { on } else { off });
        let words: Vec<&str> = words.iter().copied().chain(by_flag).collect();
        let request = json!({ "do": verb, "read_only": read_only, "words": words });
        control::ask(&running.socket, &request, None)
    };
    ask("may-remount").map_err(|e| match e.downcast::<Usage>() {
        Ok(e) => Usage(format!("{shown}: {e}")).into(),
        Err(e) => e.context(shown.to_string()),
    })?;
    rustix::mount::mount_remount(&at, flags, c"").map_err(|e| match e {
        rustix::io::Errno::BUSY => {
            let what = "files of it are open for writing, or open and removed";
            holders::named(anyhow!("{shown}: {what}"), what, mountpoint)
        }
        rustix::io::Errno::PERM => Usage(format!("{shown}: only root may remount")).into(),
        e => anyhow!("{shown}: remounting failed: {e}"),
    })?;
    ask("remounted").with_context(|| shown.to_string())?;
    Ok(CommandEnd::Good)
}

/// Refuses options that a mount keeps for as long as it lasts, where they are not as it has them:
/// mount(8) hands back what the table of mounts and fstab say, which changes nothing.
fn refuse_lasting(had: &str, given: &[String]) -> Result<(), Usage> {
    let before = options::parse(&[had.to_owned()])?;
    let both = [&[had.to_owned()], given].concat();
    let (was, is) = (before.lasting(), options::parse(&both)?.lasting());
    let changed: Vec<String> = is.into_iter().filter(|option| !was.contains(option)).collect();
    if !changed.is_empty() {
        usage!(
            "{} cannot be changed by a remount: unmount it and mount it anew",
            changed.join(", ")
        );
    }
    Ok(())
}

/// The flags of a mount, changed by the words of some options.
fn changed(now: &str, words: &[&str]) -> MountFlags {
    // mount(8) takes them out of the table, with the words of the kernel's FUSE: `exec` is then a
    // list without `noexec`.
    let is_whole = words.iter().any(|word| word.starts_with("user_id="));
    let mut flags = MountFlags::empty();
    for (on, off, flag) in FLAGS {
        let was = !is_whole && now.split(',').any(|w| w == on);
        let named = words.iter().rev().find(|w| **w == on || **w == off);
        let is = named.map_or(was, |w| *w == on);
        flags.set(flag, is);
    }
    flags
}

/// The mount's side: what a request of this module asks for; `None` if it is none.
pub fn answer(request: &Value, served: &ServedMount) -> Option<Result<Value>> {
    let read_only = request["read_only"] == true;
    match request["do"].as_str()? {
        "may-remount" => Some(may_remount(served, read_only).map(|()| json!({}))),
        "remounted" => {
            let words = request["words"].as_array().map(Vec::as_slice).unwrap_or_default();
            let words: Vec<String> =
                words.iter().filter_map(Value::as_str).map(ToOwned::to_owned).collect();
            Some(remounted(served, read_only, &words).map(|()| json!({})))
        }
        _ => None,
    }
}

fn may_remount(served: &ServedMount, read_only: bool) -> Result<()> {
    if read_only {
        return Ok(());
    }
    let source = &served.source;
    if served.wanted.ext4.read_only {
        usage!("{source} was mounted read-only: unmount it and mount it anew");
    }
    match served.fs.read_only_because() {
        Some(why) => Err(anyhow!("{source} has become read-only: {why}; check it (e2fsck)")),
        None => Ok(()),
    }
}

/// The kernel lets nobody write any more, or does again; other options by their words.
fn remounted(served: &ServedMount, read_only: bool, words: &[String]) -> Result<()> {
    let now = {
        let mut in_force = served.in_force.lock().unwrap_or_else(PoisonError::into_inner);
        *in_force = in_force.remounted(words)?;
        in_force.ext4.clone()
    };
    served.fs.set_access_times(now.access_times, now.no_directory_access_times);
    served.kept_read_only.store(read_only, Ordering::Release);
    let how = if read_only { "read-only" } else { "writable" };
    tracing::info!("{} remounted {how}", served.source);
    if read_only && !served.wanted.ext4.read_only { Ok(served.fs.sync()?) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_stay_unless_they_are_named() {
        let now = "rw,nosuid,nodev,relatime";
        let kept = MountFlags::NOSUID | MountFlags::NODEV;
        assert_eq!(changed(now, &["remount"]), kept);
        assert_eq!(changed(now, &["rw", "remount", "ro"]), kept | MountFlags::RDONLY);
        assert_eq!(
            changed(now, &["remount", "dev", "noexec"]),
            MountFlags::NOSUID | MountFlags::NOEXEC
        );
        assert_eq!(changed("ro,nodev", &["remount", "rw"]), MountFlags::NODEV);
        let by_mount8 = ["rw", "nodev", "remount", "user_id=0", "group_id=0"];
        assert_eq!(changed("ro,nosuid,nodev,noexec", &by_mount8), MountFlags::NODEV);
    }

    #[test]
    fn what_a_remount_cannot_change_is_refused() {
        let had = options::parse(&["data=journal,commit=9,journal=a,noatime".into()]).unwrap();
        let had = had.in_force().join(",");
        let given = |text: &str| refuse_lasting(&had, &[text.to_owned()]);
        for same in [
            "remount,ro",
            "remount,ro,data=journal,commit=9,journal=a,user_id=0,nodev",
            "remount,rw,relatime",
            "remount,strictatime,nodiratime,suid,dev,exec",
        ] {
            assert!(given(same).is_ok(), "{same}");
        }
        for (other, named) in [("remount,commit=5", "commit=5"), ("remount,dirsync", "dirsync")] {
            let said = given(other).unwrap_err().0;
            assert!(said.contains(named) && said.contains("mount it anew"), "{said}");
        }
        assert!(given("remount,comit=5").is_err());
        let had = "data=transact,transact=fsync,create,timed=9000ms";
        let given = |text: &str| refuse_lasting(had, &[text.to_owned()]);
        assert!(given("remount,ro,transact=create:fsync,timed=9s").is_ok());
        for lasting in ["remount,ro,transact=create", "remount,data=journal"] {
            let said = given(lasting).unwrap_err().0;
            assert!(said.contains("cannot be changed by a remount"), "{said}");
        }
    }

    #[test]
    fn every_flag_is_an_option_that_can_be_changed() {
        for word in FLAGS.into_iter().flat_map(|(on, off, _)| [on, off]) {
            assert!(refuse_lasting("", &[word.to_owned()]).is_ok(), "{word}");
        }
    }
}
