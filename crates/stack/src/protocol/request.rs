//! Requests.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use steadfast_setup::NewVolume;
use steadfast_volume::ondisk::label::LayoutKind;
use steadfast_volume::{MirrorOptions, NewLeg, Pass, Policies, ReadPolicy, WritePolicy};

use super::Refusal;
use super::RefusalKind::UsedWrongly;

/// What a host can be asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "do", rename_all = "kebab-case")]
pub enum Request {
    /// Everything there is.
    Status,
    /// What went through devices and volumes since the host was started.
    Counters,
    /// Makes a volume; or puts a retired mirror into use.
    Create(Create),
    /// Destroys a volume.
    Destroy(Destroy),
    /// Assembles a configured volume that could not be when the host was started.
    Assemble(Assemble),
    /// Adds a leg to a mirror, or a spare.
    Add(NewComponent),
    /// Removes a leg from a mirror for good.
    Remove(Leg),
    /// Takes a leg offline; the regions it misses are recorded.
    Offline(Leg),
    /// Brings a leg online; the regions it missed are copied.
    Online(Leg),
    /// Puts another component, or the same again, into a leg's place.
    Replace(Replace),
    /// Copies to every leg what it lacks.
    Resync(Resync),
    /// Stops a resync that runs; what was copied stays. It goes on at the next request, the next
    /// change of a leg, or the next start.
    CancelResync(NameRequest),
    /// Reads everything from every leg and compares.
    Scrub(Scrub),
    /// Changes a mirror's policies.
    Set(Set),
    /// Makes a mirror larger.
    Grow(Grow),
    /// Makes a RAM disk, which the host recreates, blank, at every start.
    CreateRamDisk(CreateRamDisk),
    /// Removes a RAM disk that nobody uses.
    DeleteRamDisk(NameRequest),
    /// Opens a file or block device under a name.
    AddDevice(NewName),
    /// Forgets a device that nobody uses.
    RemoveDevice(NameRequest),
    /// Gives a device, RAM disk or volume another name: `name` is the alias, `target` the name.
    AddAlias(NewName),
    /// Removes an alias.
    RemoveAlias(NameRequest),
    /// Makes a volume, device or RAM disk a block device of the kernel: a loop device with direct
    /// I/O. The answer has its path (`kernel`).
    AttachKernel(NameRequest),
    /// Detaches that block device.
    DetachKernel(NameRequest),
    /// Mounts the file system that is on a volume or device.
    Mount(NewMount),
    /// Unmounts one: by the mount's name, or where it is.
    Umount(NameRequest),
    /// Makes everything that was written durable.
    Sync,
    /// Closes everything and ends the host. Refused while a file of the tree is open.
    Stop,
}

/// Something by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRequest {
    /// Of a volume, device, RAM disk or alias.
    pub name: String,
}

impl NameRequest {
    /// Of this name.
    pub fn of(name: &str) -> NameRequest {
        NameRequest { name: name.to_owned() }
    }
}

/// A name for something.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewName {
    /// The new name.
    pub name: String,
    /// Path of a device; of an alias the name that it stands for.
    pub target: String,
    /// Of a device: it does not count as keeping its contents without power.
    #[serde(default)]
    pub volatile: bool,
}

/// A file system that is to be mounted, until it is unmounted or the host ends.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewMount {
    /// What it is on; or, without `at`, the name of a mount of the configuration.
    pub name: String,
    /// Where: an absolute path.
    pub at: Option<PathBuf>,
    /// Options, as `steadfast mount -o` takes them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub options: String,
    /// Its external journal: a name of the host, or a path.
    pub journal: Option<String>,
}

/// A new volume.
///
/// A mirror of components that are legs of a retired mirror takes that mirror's data up. All its
/// legs are in use again then, so that the data stays as safe as it was: those that are not among
/// `components` are shown as not attached until they are added, which copies nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    /// The volume's name.
    pub name: String,
    /// What it is.
    #[serde(default)]
    pub kind: LayoutKind,
    /// Names of devices, RAM disks and volumes, in order.
    pub components: Vec<String>,
    /// Those of them that do not count as keeping their contents without power, though they would
    /// otherwise. RAM disks, and volumes over them, never count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub volatile: Vec<String>,
    /// Those of a mirror that may be smaller than it, and hold the regions that are read most. They
    /// do not count as keeping their contents. One at most.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partial: Vec<String>,
    /// Bytes of each component in turn, of a stripe.
    pub interlace: Option<u32>,
    /// Bytes of a mirror; all that its legs have room for without it.
    pub size: Option<u64>,
    /// Bytes of a mirror's regions.
    pub region_bytes: Option<u32>,
    /// A mirror keeps checksums, and repairs legs that return something else than was written.
    #[serde(default)]
    pub checksums: bool,
    /// See [`Set`].
    pub read: Option<String>,
    /// See [`Set`].
    pub write: Option<String>,
    /// See [`Set`].
    pub pass: Option<u8>,
    /// Overwrite labels and file systems that are on the components. A retired mirror is not taken
    /// up: its data is given up.
    #[serde(default)]
    pub force: bool,
    /// Say whether it could be done, and write nothing.
    #[serde(default)]
    pub dry_run: bool,
}

impl Create {
    /// The policies of the new volume.
    ///
    /// # Errors
    /// There is no such policy, or it is no mirror.
    pub fn policies(&self) -> Result<Policies, Refusal> {
        let (read, write, pass) = (self.read.clone(), self.write.clone(), self.pass);
        let set = Set { name: String::new(), read, write, pass };
        let (is_set, what) = (set != Set::default(), ["policies", "checksums"]);
        if self.kind != LayoutKind::Mirror && (is_set || self.checksums) {
            let (kind, what) = (self.kind.name(), what[usize::from(!is_set)]);
            return Err(
                UsedWrongly.about(&self.name, format!("is a {kind}: {what} are for mirrors only"))
            );
        }
        set.policies(Policies::default())
    }

    /// What is to be made of these members.
    pub fn new_volume(&self, members: Vec<NewLeg>, policies: Policies) -> NewVolume<'_> {
        NewVolume {
            name: &self.name,
            kind: self.kind,
            members,
            interlace: self.interlace,
            mirror: MirrorOptions {
                size: self.size,
                region_bytes: self.region_bytes,
                policies,
                checksums: self.checksums,
                ..MirrorOptions::default()
            },
        }
    }
}

/// A volume that is to go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Destroy {
    /// The volume.
    pub name: String,
    /// Of a mirror: it is retired, and its data stays on its legs until one of them is used for
    /// something else. [`Create`] takes it up again.
    #[serde(default)]
    pub keep_data: bool,
    /// Also the volumes that it is made of, if nobody else uses them.
    #[serde(default)]
    pub recursive: bool,
}

/// A volume that is to be assembled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assemble {
    /// The volume.
    pub name: String,
    /// Go on without legs that are missing, though they may hold newer data.
    #[serde(default)]
    pub degraded: bool,
    /// Use the contents of the leg with this UUID where legs have diverged.
    pub keep: Option<String>,
}

/// A leg that is to be added to a mirror.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NewComponent {
    /// The mirror.
    pub name: String,
    /// Name of the device, RAM disk or volume.
    pub component: String,
    /// It does not count as keeping its contents without power.
    #[serde(default)]
    pub volatile: bool,
    /// It may be smaller than the mirror, and holds the regions that are read most. It does not
    /// count as keeping its contents.
    #[serde(default)]
    pub partial: bool,
    /// It waits to take a failed leg's place.
    #[serde(default)]
    pub spare: bool,
    /// Overwrite a label or file system that is on it.
    #[serde(default)]
    pub force: bool,
    /// Say whether it could be done, and write nothing.
    #[serde(default)]
    pub dry_run: bool,
}

/// A leg of a mirror.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leg {
    /// The mirror.
    pub name: String,
    /// The leg: the name of its component, or its place as digits.
    pub leg: String,
    /// Give up what this leg alone holds: it reads as zeros from then on. Only to remove it.
    #[serde(default)]
    pub lose_data: bool,
}

impl Leg {
    /// A leg, or a spare, of this mirror.
    pub fn of(mirror: &str, leg: &str) -> Leg {
        Leg { name: mirror.to_owned(), leg: leg.to_owned(), lose_data: false }
    }
}

/// Another component for a leg's place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    /// The mirror.
    pub name: String,
    /// The leg: the name of its component, its place as digits, or the name of the device under a
    /// concat of one component.
    pub leg: String,
    /// Name of the new component; without it, the leg's own again. Where `leg` names the device
    /// under a concat, the concat gets the new device.
    pub with: Option<String>,
    /// The new one does not count as keeping its contents without power; nor does it where the leg
    /// before did not.
    #[serde(default)]
    pub volatile: bool,
    /// The new one counts, where the leg before did not.
    #[serde(default)]
    pub durable: bool,
    /// Overwrite a label or file system that is on it.
    #[serde(default)]
    pub force: bool,
    /// Give up what this leg alone holds: it reads as zeros from then on.
    #[serde(default)]
    pub lose_data: bool,
}

/// A resync.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resync {
    /// The mirror.
    pub name: String,
    /// At most so many bytes a second.
    pub rate: Option<u64>,
    /// Answer when it is done, with the bytes copied; otherwise at once.
    #[serde(default)]
    pub wait: bool,
}

/// A scrub; the answer comes when it is done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scrub {
    /// The mirror.
    pub name: String,
    /// Repair legs that differ.
    #[serde(default)]
    pub repair: bool,
    /// At most so many bytes a second.
    pub rate: Option<u64>,
}

/// Policies of a mirror; those that are not given stay.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// The mirror.
    pub name: String,
    /// `roundrobin`, `geometric`, `first`, `preferred:PLACE` or `adaptive`. `first` is the leg that
    /// was attached first.
    pub read: Option<String>,
    /// `parallel`, `serial` or `write-behind`.
    pub write: Option<String>,
    /// Order of resyncs of several mirrors: 1 first, 9 last, 0 not automatically.
    pub pass: Option<u8>,
}

impl Set {
    /// The policies that are asked for, the others as they are.
    ///
    /// # Errors
    /// There is no such policy.
    pub fn policies(&self, now: Policies) -> Result<Policies, Refusal> {
        let none = |of: &str, name: &str, all: &str| {
            UsedWrongly.because(format!("{of} policy '{name}': there is no such policy: {all}"))
        };
        let (reads, writes) = (
            "choose roundrobin, geometric, first, adaptive or preferred:PLACE",
            "choose parallel, serial or write-behind",
        );
        let mut policies = now;
        if let Some(read) = &self.read {
            policies.read = ReadPolicy::named(read).ok_or_else(|| none("read", read, reads))?;
        }
        if let Some(write) = &self.write {
            policies.write =
                WritePolicy::named(write).ok_or_else(|| none("write", write, writes))?;
        }
        if let Some(pass) = self.pass {
            let none = || UsedWrongly.because(format!("{pass}: a pass is 0 to 9"));
            policies.pass = Pass::new(pass).ok_or_else(none)?;
        }
        Ok(policies)
    }
}

/// A mirror that is to grow.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grow {
    /// The mirror.
    pub name: String,
    /// Its new size in bytes; as large as the legs allow without it.
    pub size: Option<u64>,
}

/// A new RAM disk.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CreateRamDisk {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
}
