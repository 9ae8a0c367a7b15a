//! `steadfast volume destroy`: labels are wiped, of a volume of volumes the outermost first.
//!
//! What a volume is made of may be volumes itself: its labels are inside of these, and are wiped
//! through them while they are assembled. Each label is wiped by itself; after a cut between two of
//! them `--degraded` wipes the rest.

use std::io::Write;
use std::sync::Arc;

use anyhow::Result;
use steadfast_block::BlockDevice;
use steadfast_setup::path::{MemberDevices, members_of};
use steadfast_volume::member::{End, LabelledDevice, read_label, wipe_label};
use steadfast_volume::{AssembleOptions, AssemblyReport, LegState, Volume};
use uuid::Uuid;

use super::cli::Members;
use super::open;
use crate::CommandEnd;
use steadfast_vfs::foreign::Foreign;

/// Labels that were found, and whose they are.
struct MemberLabels {
    /// Of the devices that were named.
    devices: Vec<LabelledDevice>,
    /// Of volumes inside of others, with their own UUIDs.
    inner: Vec<(Uuid, LabelledDevice)>,
}

/// A volume to be taken apart; one that lacks too much is not assembled.
struct Target {
    uuid: Uuid,
    name: String,
    volume: Option<Volume>,
}

/// Takes one volume apart.
///
/// # Errors
/// It is a component of another one, it cannot be assembled, or a device fails.
pub fn destroy(members: &Members, out: &mut dyn Write) -> Result<CommandEnd> {
    if members.members.iter().any(|path| members_of(path).is_some()) {
        usage!(
            "volume destroy takes the devices themselves, not volume:MEMBER,MEMBER; of volumes \
             inside of each other it takes the outermost apart, or that of --volume"
        );
    }
    let options = AssembleOptions {
        degraded: members.degraded,
        keep: members.keep,
        ..AssembleOptions::default()
    };
    let MemberDevices { devices, mut found, .. } = open::open_members(members, &options)?;
    if !found.problems.is_empty() && !members.degraded {
        return Err(found.problems.swap_remove(0).1.into());
    }
    if let Some(blank) = found.blank.first() {
        let name = blank.info().name;
        usage!("{name}: is no member of a volume: it has no label; leave it out");
    }
    let labels = MemberLabels::of(&devices, &found);
    let target = target(members, &found, &labels)?;
    open::close_at_the_end(&found)?;
    let missing = labels.missing(&target);
    if let Some(volume) = &target.volume {
        volume.close()?;
    }
    let is_its = |labelled: &&LabelledDevice| labelled.label.volume == target.uuid;
    let mut left = Vec::new();
    let mut wipe = |labelled: &LabelledDevice| match labelled.overwritten {
        None => wipe_label(&labelled.device),
        Some(end) => {
            left.push((labelled.name(), end));
            Ok(())
        }
    };
    labels.inner.iter().map(|(_, labelled)| labelled).filter(is_its).try_for_each(&mut wipe)?;
    // The volumes that stay are written before their members are free again.
    found.close()?;
    open::forget();
    labels.devices.iter().filter(is_its).try_for_each(&mut wipe)?;
    writeln!(out, "{}: is no volume any more", Foreign::new(&target.name))?;
    for name in missing {
        let name = Foreign::new(&name);
        writeln!(out, "  its component {name} was not there, and still has its label")?;
    }
    for (name, end) in left {
        let (name, why) = (Foreign::new(&name), End::overwritten(end));
        writeln!(out, "  {name} was left as it is: {why}")?;
    }
    Ok(CommandEnd::Good)
}

/// The volume that is meant: the outermost one, or that of `--volume`.
fn target(members: &Members, found: &AssemblyReport, labels: &MemberLabels) -> Result<Target> {
    let targets = labels.targets(found);
    let names = |of: &[&Target]| {
        let mut names: Vec<String> = of.iter().map(|t| Foreign::new(&t.name).to_string()).collect();
        // They were found by their UUIDs.
        names.sort_unstable();
        names.join(", ")
    };
    let all: Vec<&Target> = targets.iter().collect();
    let meant: Vec<&Target> = match &members.volume {
        Some(name) => targets.iter().filter(|t| t.name == *name).collect(),
        None => targets.iter().filter(|t| labels.around(t.uuid).is_none()).collect(),
    };
    let [one] = meant[..] else {
        match &members.volume {
            Some(name) if meant.is_empty() => {
                usage!("--volume {name}: there is none of this name among {}", names(&all))
            }
            Some(name) => usage!("--volume {name}: there are several of this name"),
            None if meant.is_empty() => usage!("there is no volume on these"),
            None => usage!(
                "these are members of several volumes: {}; say which by --volume NAME",
                names(&meant)
            ),
        }
    };
    if let Some(around) = labels.around(one.uuid) {
        let outer = Foreign::new(&around.label.name);
        usage!(
            "'{}' is a component of '{outer}': take that apart first (steadfast volume destroy \
             --volume {outer}, with all devices)",
            one.name
        );
    }
    // What could not be assembled for another reason than what it lacks keeps its labels.
    Ok(Target { uuid: one.uuid, name: one.name.clone(), volume: one.volume.clone() })
}

impl MemberLabels {
    fn of(devices: &[Arc<dyn BlockDevice>], found: &AssemblyReport) -> MemberLabels {
        let label = |device: &Arc<dyn BlockDevice>| read_label(device).ok().flatten();
        let inside = |v: &Volume| Some((v.uuid, label(&v.device)?));
        MemberLabels {
            devices: devices.iter().filter_map(label).collect(),
            inner: found.volumes.iter().filter_map(inside).collect(),
        }
    }

    fn all(&self) -> impl Iterator<Item = &LabelledDevice> {
        self.devices.iter().chain(self.inner.iter().map(|(_, labelled)| labelled))
    }

    /// The label that a volume carries as a component of another one.
    fn around(&self, uuid: Uuid) -> Option<&LabelledDevice> {
        let believed = |l: &LabelledDevice| l.overwritten != Some(End::Start);
        self.inner.iter().find(|(of, l)| *of == uuid && believed(l)).map(|(_, l)| l)
    }

    /// All volumes that these are labels of.
    fn targets(&self, found: &AssemblyReport) -> Vec<Target> {
        let target =
            |v: &Volume| Target { uuid: v.uuid, name: v.name.clone(), volume: Some(v.clone()) };
        let mut targets: Vec<Target> = found.volumes.iter().map(target).collect();
        for labelled in self.all().filter(|l| l.overwritten != Some(End::Start)) {
            let label = &labelled.label;
            if targets.iter().all(|t| t.uuid != label.volume) {
                let name = label.name.clone();
                targets.push(Target { uuid: label.volume, name, volume: None });
            }
        }
        targets
    }

    /// Names of the components that are not there.
    fn missing(&self, target: &Target) -> Vec<String> {
        if let Some(mirror) = target.volume.as_ref().and_then(|v| v.mirror.as_ref()) {
            let legs = mirror.status().legs.into_iter();
            let gone = legs.filter(|leg| leg.state == LegState::Unavailable);
            return gone.map(|leg| leg.name).collect();
        }
        let its: Vec<&LabelledDevice> =
            self.all().filter(|l| l.label.volume == target.uuid).collect();
        let named = its.first().map(|l| l.label.members.as_slice()).unwrap_or_default();
        let is_there = |slot| its.iter().any(|l| l.label.slot == slot);
        let gone =
            named.iter().enumerate().filter(|(slot, m)| !m.name.is_empty() && !is_there(*slot));
        gone.map(|(_, m)| m.name.clone()).collect()
    }
}
