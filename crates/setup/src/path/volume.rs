//! Volumes by the names of their members: `volume:MEMBER,MEMBER` in place of an image.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use steadfast_block::BlockDevice;
use steadfast_volume::member::{End, LabelledDevice, read_label};
use steadfast_volume::{
    AssembleOptions, AssemblyReport, LegState, LegStatus, Mirror, NewLeg, ResyncThrottle, Volume,
    VolumeError, assemble,
};

use super::{OpenPath, PathOptions, memory, open, open_file};
use crate::error::SetupError;

type Result<T> = std::result::Result<T, SetupError>;

/// What stands before the members where an image is asked for.
const PREFIX: &str = "volume:";
/// How often regions that nobody writes to become clean.
const UPKEEP: Duration = Duration::from_secs(5);

/// The members that a path names, if it names a volume.
pub fn members_of(path: &Path) -> Option<Vec<PathBuf>> {
    let members = path.to_str()?.strip_prefix(PREFIX)?;
    Some(members.split(',').map(PathBuf::from).collect())
}

/// Refuses a name of a volume that leaves a member's name out.
fn refuse_empty(members: &[PathBuf]) -> Result<()> {
    match members.iter().all(|member| !member.as_os_str().is_empty()) {
        true => Ok(()),
        false => {
            let given: Vec<_> = members.iter().map(|m| m.display().to_string()).collect();
            let given = given.join(",");
            let what = format!("{PREFIX}{given}: a member's name is empty; it is {PREFIX}A,B");
            Err(SetupError::Refused(what))
        }
    }
}

/// What a path names that a file in this folder says.
pub fn from_folder(folder: &Path, path: &Path) -> PathBuf {
    if let Some(members) = members_of(path) {
        let members = members.iter().map(|m| from_folder(folder, m).display().to_string());
        return format!("{PREFIX}{}", members.collect::<Vec<_>>().join(",")).into();
    }
    memory::with_file(path, |file| folder.join(file))
}

/// The same name from any folder; `None` if it names no volume.
pub fn absolute(path: &Path) -> Option<String> {
    let whole = |member: PathBuf| {
        member.canonicalize().or_else(|_| std::path::absolute(&member)).unwrap_or(member)
    };
    let members = members_of(path)?.into_iter().map(whole);
    let members: Vec<String> = members.map(|member| member.display().to_string()).collect();
    Some(format!("{PREFIX}{}", members.join(",")))
}

/// Opens all, none of them twice.
pub fn open_all(paths: &[PathBuf], read_only: bool) -> Result<Vec<OpenPath>> {
    // Also beside the volume that it is a member of.
    let inner: Vec<PathBuf> = paths.iter().filter_map(|path| members_of(path)).flatten().collect();
    refuse_twice(paths.iter().chain(&inner).map(PathBuf::as_path))?;
    let options = PathOptions { read_only, ..PathOptions::default() };
    let open = |path: &PathBuf| match members_of(path) {
        Some(_) => open(path, options),
        None => open_file(path, options),
    };
    paths.iter().map(open).collect()
}

/// Refuses the same file or device under two names.
pub fn refuse_twice<'p>(paths: impl Iterator<Item = &'p Path>) -> Result<()> {
    let mut seen: BTreeMap<(u64, u64, u64), &Path> = BTreeMap::new();
    for path in paths {
        let Ok(meta) = path.metadata() else { continue };
        // A device has one number under all its names, and many nodes.
        let key = if meta.rdev() != 0 { (0, 0, meta.rdev()) } else { (meta.dev(), meta.ino(), 0) };
        if let Some(first) = seen.insert(key, path) {
            let (first, path) = (first.display(), path.display());
            let what = format!("{path}: is given twice (also as {first})");
            return Err(SetupError::Refused(what));
        }
    }
    Ok(())
}

/// Members of volumes, which may not be all, and what came of them.
pub struct MemberDevices {
    /// The members, in their order.
    pub devices: Vec<Arc<dyn BlockDevice>>,
    /// All that was found.
    pub found: AssemblyReport,
    /// What members themselves are made of.
    pub inner: Vec<AssemblyReport>,
    /// What was noticed: a line each, for people.
    pub notes: Vec<String>,
}

/// Opens members, none of them twice, and assembles what can be: what cannot is in the report.
///
/// # Errors
/// A member cannot be opened.
pub fn open_members(members: &[PathBuf], how: &AssembleOptions) -> Result<MemberDevices> {
    let (mut devices, mut inner, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for open in open_all(members, how.read_only)? {
        devices.push(open.device);
        inner.extend(open.assembled);
        notes.extend(open.notes);
    }
    let found = assemble(&devices, how);
    Ok(MemberDevices { devices, found, inner, notes })
}

/// Assembles what the members belong to; also the outermost volume. With `rejoin` blank memory is a
/// leg again.
///
/// # Errors
/// A member cannot be opened or has no label; not one volume comes of it, or it cannot be
/// assembled.
pub fn assembled(
    members: &[PathBuf],
    how: &AssembleOptions,
    rejoin: bool,
) -> Result<(MemberDevices, Volume)> {
    let mut open = open_members(members, how)?;
    let found = &mut open.found;
    if !found.problems.is_empty() {
        // The first error says why; there may be several members of one volume among them.
        let (_, error) = found.problems.swap_remove(0);
        return Err(error.into());
    }
    if rejoin {
        open.notes.extend(rejoin_memory(found, how.read_only)?);
    }
    if let Some(blank) = found.blank.first() {
        let name = blank.info().name;
        return Err(SetupError::Refused(format!(
            "{name}: is no member of a volume: it has no label; leave it out, or make it a leg by \
             steadfast volume add or replace (only what is blank takes the place of a volatile leg \
             by itself)"
        )));
    }
    let outer: Vec<Volume> = found.outer().cloned().collect();
    match <[Volume; 1]>::try_from(outer) {
        Ok([volume]) => Ok((open, volume)),
        Err(several) => {
            let names: Vec<&str> = several.iter().map(|v| v.name.as_str()).collect();
            let what = format!("these are members of several volumes: {}", names.join(", "));
            Err(SetupError::Refused(what))
        }
    }
}

/// Opens the volume of these members, to be used as an image is.
pub(super) fn open_volume(members: &[PathBuf], read_only: bool) -> Result<OpenPath> {
    refuse_empty(members)?;
    let how = AssembleOptions { read_only, ..AssembleOptions::default() };
    let (MemberDevices { found, inner, mut notes, .. }, volume) = assembled(members, &how, true)?;
    for mirror in found.volumes.iter().filter_map(|v| v.mirror.as_ref()) {
        let status = mirror.status();
        for leg in status.legs.iter().filter(|leg| !leg.volatile && leg.state != LegState::Okay) {
            let (volume, state, name) = (&status.name, leg.state.name(), &leg.name);
            notes.push(format!("volume '{volume}': {name}: {state}"));
        }
        if !read_only {
            mirror.keep(UPKEEP, ResyncThrottle::default());
        }
    }
    let assembled = inner.into_iter().chain([found]).collect();
    Ok(OpenPath { device: volume.device, assembled, notes })
}

/// Memory is blank after a boot: a device that holds nothing takes the place of a volatile leg that
/// is not there. Who only reads leaves it out.
fn rejoin_memory(found: &mut AssemblyReport, read_only: bool) -> Result<Vec<String>> {
    let mut notes = Vec::new();
    let missing = |leg: &LegStatus| leg.volatile && leg.state == LegState::Unavailable;
    let mirrors: Vec<Mirror> = found.volumes.iter().filter_map(|v| v.mirror.clone()).collect();
    for mirror in mirrors {
        for leg in mirror.status().legs.into_iter().filter(missing) {
            let is_blank = |device: &Arc<dyn BlockDevice>| device.first_data() == Ok(None);
            let Some(at) = found.blank.iter().position(is_blank) else {
                return Ok(notes);
            };
            let device = found.blank.remove(at);
            if !read_only {
                let (new, name) = (device.info().name, mirror.name());
                mirror
                    .replace(leg.slot, Some(&NewLeg { volatile: true, ..NewLeg::new(device) }))?;
                let slot = leg.slot;
                notes.push(format!("volume '{name}': {new} is leg {slot} again, blank"));
            }
        }
    }
    Ok(notes)
}

/// Refuses a member of a volume where an image is asked for. What it holds is the volume's, and who
/// writes to it alone makes the legs of a mirror differ.
///
/// # Errors
/// Says which volume it is. A device whose start belongs to somebody else by now is no member.
pub fn refuse_member(device: &Arc<dyn BlockDevice>) -> Result<()> {
    match read_label(device) {
        Ok(Some(found)) if found.overwritten != Some(End::Start) => Err(is_member(&found)),
        // Whoever reads it reports the error.
        Ok(_) | Err(VolumeError::Io(_)) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn is_member(found: &LabelledDevice) -> SetupError {
    let (name, label) = (found.name(), &found.label);
    let others: Vec<&str> = label.members.iter().map(|m| m.name.as_str()).collect();
    let others: Vec<&str> = others.into_iter().filter(|name| !name.is_empty()).collect();
    SetupError::Refused(format!(
        "{name}: is member {} of the {} '{}' ({}): name the volume by its members, \
         {PREFIX}MEMBER,MEMBER (they were last seen as {})",
        label.slot,
        label.kind.name(),
        label.name,
        label.volume,
        others.join(", "),
    ))
}
