//! What a run is recorded on and how it is judged: from the command line, or from a recording.

use std::collections::BTreeMap;
use std::iter;
use std::sync::Arc;

use steadfast_crash::e2fsck::E2fsck;
use steadfast_crash::explore::{JoinedMachine, JoinedPart, OnRam, RebootTarget, System};
use steadfast_crash::program::{Command, Names, ProgramRun};
use steadfast_crash::states::{Choice, StateBound};
use steadfast_devices::filter::record::{DeviceId, Media, MediaError};
use steadfast_devices::store::Store;
use steadfast_ext4::MountOptions;
use steadfast_lab::size;
use steadfast_peers::KernelFs;
use steadfast_vfs::options::choose;

use super::budget::seconds;
use super::cli::{CrashRun, JudgeArgs};
use super::devices::{Disk, JournalMedium};
use super::joined::{self, JoinedSetup};
use super::kernel;
use super::on_stack::OnStack;
use crate::Usage;
use crate::cli::FsKind;
use crate::commands::bytes_of;
use crate::mount::{options, stack};

/// A file system under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fs {
    /// Steadfast's own.
    Own(FsKind),
    /// The kernel's.
    Kernel(KernelFs),
}

/// What a run is recorded on.
#[derive(Debug, Clone)]
pub struct Setup {
    /// As it was asked for: the file system, with its own mount options.
    pub name: String,
    /// The file system.
    pub fs: Fs,
    /// Its mount options, separated by commas.
    pub options: String,
    /// Where its journal is.
    pub journal: JournalMedium,
    /// The disk.
    pub disk: Disk,
    /// What a cut does to it.
    pub media: Media,
    /// The disk's size in bytes.
    pub size: u64,
    /// When the run began, in seconds since 1970: what a recovering machine's clock shows.
    pub epoch: u64,
    /// A described stack, instead of disk and journal.
    pub stack: Option<OnStack>,
    /// Others that are mounted in folders of it, and lose power with it.
    pub joined: Vec<JoinedSetup>,
}

/// Largest disk of a run, in bytes.
const SIZE_MAX: u64 = 64 << 30;

const OWN: [(&str, FsKind); 3] =
    [("ext2", FsKind::Ext2), ("ext3", FsKind::Ext3), ("ext4", FsKind::Ext4)];

/// A file system by its name.
pub fn known(fs: &str) -> Result<Fs, Usage> {
    if let Some((_, kind)) = OWN.iter().find(|(name, _)| *name == fs) {
        return Ok(Fs::Own(*kind));
    }
    // There is only one of these.
    let kernel = fs.strip_prefix("kernel-").unwrap_or(fs);
    KernelFs::of_name(kernel).map(Fs::Kernel).ok_or_else(|| {
        let own = OWN.map(|(name, _)| name.to_owned());
        let kernel = KernelFs::ALL.map(|fs| format!("kernel-{}", fs.name()));
        Usage(format!("--fs {fs} is unknown: {}", choose(own.into_iter().chain(kernel))))
    })
}

impl Fs {
    /// Its name on the command line.
    pub fn name(self) -> String {
        match self {
            Fs::Own(kind) => {
                OWN.iter().find(|(_, k)| *k == kind).map_or("", |(name, _)| *name).into()
            }
            Fs::Kernel(fs) => format!("kernel-{}", fs.name()),
        }
    }

    /// The smallest device that it is put on if nobody says otherwise, in bytes.
    fn default_size(self) -> u64 {
        match self {
            Fs::Own(_) => 64 << 20,
            Fs::Kernel(fs) => fs.least_bytes().max(64 << 20),
        }
    }
}

impl Setup {
    /// As the command line says, on the file system `name`: that may have mount options of its own.
    pub fn of(args: &CrashRun, name: &str) -> Result<Setup, Usage> {
        let (fs, own) = name.split_once(':').unwrap_or((name, ""));
        if fs.is_empty() {
            usage!("--fs: a name is missing");
        }
        let own = own.replace(':', ",");
        let epoch = u64::try_from(jiff::Timestamp::now().as_second()).unwrap_or(0);
        let (stack, joined) = joined::stacks(&args.stack, epoch)?;
        let described = "the stack says what it is on";
        let (other_device, other_media) = (args.device != "ssd", args.media != "sectors");
        if stack.is_some() && (other_device || other_media || args.size.is_some()) {
            usage!("--stack: {described}: no --device, --size, --media");
        }
        if stack.is_some() && (name != "ext4" || args.journal != "internal") {
            usage!("--stack: {described}: no --fs, --journal");
        }
        let of_stack = stack.as_ref().map_or("", |stack| stack.mount_options());
        let given = args.options.iter().map(String::as_str);
        let options: Vec<&str> =
            [of_stack, &own].into_iter().chain(given).filter(|list| !list.is_empty()).collect();
        let fs = known(fs)?;
        let disk: Disk = args.device.parse().map_err(Usage)?;
        let size = bytes_of("--size", args.size.as_deref())?;
        let size = size.unwrap_or_else(|| fs.default_size().max(disk.least_bytes()));
        if let (Fs::Kernel(_), Some((folder, _))) = (fs, joined.first()) {
            usage!("--stack {folder}=: only Steadfast's own file systems are mounted in folders");
        }
        let setup = Setup {
            name: name.to_owned(),
            fs,
            options: options.join(","),
            journal: args.journal.parse().map_err(Usage)?,
            disk,
            media: args.media.parse().map_err(|e| Usage(format!("--media: {e}")))?,
            size,
            epoch,
            stack,
            joined,
        };
        setup.checked()
    }

    /// The same, with the size in whole blocks, if it can be made.
    pub fn checked(self) -> Result<Setup, Usage> {
        let Setup { size, .. } = self;
        if !((1 << 20)..=SIZE_MAX).contains(&size) {
            usage!("--size {}: choose from 1m to 64g, in steps of 4k", size::shown(size));
        }
        if size < self.disk.least_bytes() {
            let (name, least) = (self.disk.name(), self.disk.least_bytes() >> 20);
            usage!("--device {name}: the model is of {least}m at the least");
        }
        if self.fs == Fs::Own(FsKind::Ext2) && self.journal == JournalMedium::Nvram {
            usage!("--journal nvram: ext2 has no journal");
        }
        match self.fs {
            Fs::Own(_) => drop(self.wanted()?),
            Fs::Kernel(fs) => drop(kernel::peer(&self, fs)?),
        }
        Ok(Setup { size: size / 4096 * 4096, ..self })
    }

    /// The mount options of Steadfast's own file system, understood.
    pub fn wanted(&self) -> Result<options::MountSettings, Usage> {
        // Reading back what was written must not be a change.
        let mut wanted = options::parse_without_times(std::slice::from_ref(&self.options))?;
        let unwritten = wanted.ext4.read_only || wanted.ext4.no_load || wanted.remount;
        if unwritten || !wanted.journals.is_empty() {
            usage!(
                "crash run makes and mounts the devices itself: no ro, noload, journal=, remount"
            );
        }
        if let Some(described) = &self.stack {
            stack::apply(described.machine(), &mut wanted);
        }
        wanted.ext4.simulated_epoch = self.epoch;
        wanted.fuse.source = format!("crash-{}", self.fs.name());
        Ok(wanted)
    }

    /// The recorded disk is of this medium.
    pub fn on_media(&self, run: ProgramRun) -> ProgramRun {
        let (mut run, mut first) = (run, 0);
        for setup in self.each() {
            let media = |device: u32| match &setup.stack {
                Some(stack) => stack.media(device),
                None => {
                    if device == 0 {
                        setup.media
                    } else {
                        Media::default()
                    }
                }
            };
            for device in 0..setup.devices() {
                let id = DeviceId(first + device);
                run.recording = run.recording.with_media(id, media(device));
            }
            first += setup.devices();
        }
        run
    }

    /// This file system, and those in its folders.
    pub fn each(&self) -> impl Iterator<Item = &Setup> {
        iter::once(self).chain(self.joined.iter().map(|(_, setup)| setup))
    }

    /// How many recorded devices it is on, without those of the others.
    fn devices(&self) -> u32 {
        let described = self.stack.as_ref().map(OnStack::devices);
        described.unwrap_or(1 + u32::from(self.journal == JournalMedium::Nvram))
    }

    /// What recovers from what a cut leaves.
    pub fn system(&self) -> Result<Box<dyn System>, Usage> {
        if let Fs::Kernel(fs) = self.fs {
            let peer = kernel::peer(self, fs)?;
            peer.fs.available().map_err(|e| Usage(e.to_string()))?;
            return Ok(Box::new(peer));
        }
        if self.joined.is_empty() {
            return Ok(Box::new(self.machine()?));
        }
        let folders = iter::once("").chain(self.joined.iter().map(|(folder, _)| &folder[..]));
        let part = |(setup, folder): (&Setup, &str)| {
            let (folder, devices) = (folder.as_bytes().to_vec(), setup.devices() as usize);
            Ok(JoinedPart { folder, machine: setup.machine()?, devices })
        };
        let parts = self.each().zip(folders).map(part).collect::<Result<_, Usage>>()?;
        Ok(Box::new(JoinedMachine { parts }.shared()))
    }

    /// The same of Steadfast's own, without those in its folders.
    fn machine(&self) -> Result<Arc<dyn RebootTarget>, Usage> {
        if let Some(stack) = &self.stack {
            return Ok(Arc::new(stack.stack_machine(self.wanted()?.for_fs())));
        }
        let machine = OnRam::new(self.wanted()?.for_fs());
        let machine = match self.fs {
            Fs::Own(FsKind::Ext2) => machine.repaired_by(E2fsck::find().ok_or_else(|| {
                let why = "--fs ext2: e2fsck repairs it at each boot: install e2fsprogs";
                Usage(why.into())
            })?),
            _ => machine,
        };
        Ok(machine.shared())
    }

    /// What lies where on the devices, once recovered; nothing is known of XFS, btrfs and F2FS.
    pub fn names(&self, mut contents: Vec<Store>) -> Names {
        let mut rest = contents.split_off(contents.len().min(self.devices() as usize));
        let mut names = self.own_names(contents);
        let mut first = self.devices();
        for (folder, setup) in &self.joined {
            let later = rest.split_off(rest.len().min(setup.devices() as usize));
            names.join((first, folder.as_bytes()), setup.own_names(rest));
            (rest, first) = (later, first + setup.devices());
        }
        names
    }

    fn own_names(&self, contents: Vec<Store>) -> Names {
        match self.fs {
            Fs::Own(_) => match (self.wanted(), &self.stack) {
                (Err(_), _) => Names::default(),
                (Ok(wanted), None) => Names::of(contents, &wanted.for_fs()),
                (Ok(wanted), Some(stack)) => stack.names(contents, &wanted.for_fs()),
            },
            Fs::Kernel(KernelFs::Ext2 | KernelFs::Ext3 | KernelFs::Ext4) => {
                Names::of(contents, &MountOptions::default())
            }
            Fs::Kernel(KernelFs::Xfs | KernelFs::Btrfs | KernelFs::F2fs) => Names::default(),
        }
    }

    /// How many cuts are made of a run, and how many states of each, if nobody says otherwise: the
    /// kernel takes a hundred times as long to recover.
    fn default_bound(&self) -> (&'static str, u64) {
        match self.fs {
            Fs::Own(_) => ("200", StateBound::default().states),
            Fs::Kernel(_) => ("40", 4),
        }
    }

    /// In one line, for people.
    pub fn in_words(&self) -> String {
        let joined =
            self.joined.iter().map(|(folder, on)| format!(", {folder}/ on {}", on.in_words()));
        joined.fold(self.own_words(), |words, more| words + &more)
    }

    fn own_words(&self) -> String {
        let options = match &self.options[..] {
            "" => String::new(),
            options => format!(" -o {options}"),
        };
        if let Some(stack) = &self.stack {
            return format!("{}{options}", stack.in_words());
        }
        let journal = match self.journal {
            JournalMedium::Internal => String::new(),
            JournalMedium::Nvram => ", its journal on nvram".into(),
        };
        let mib = self.size as f64 / f64::from(1 << 20);
        let media = match self.media {
            Media::Sectors => String::new(),
            media => format!(", medium {media}"),
        };
        let (fs, disk) = (self.fs.name(), self.disk.name());
        format!("{fs}{options} on {disk} of {mib} MiB{media}{journal}")
    }

    /// For the recording.
    pub fn about(&self) -> BTreeMap<String, String> {
        let texts = [
            ("fs", self.fs.name()),
            ("options", self.options.clone()),
            ("journal", self.journal.name().to_owned()),
            ("device", self.disk.name().to_owned()),
            ("media", self.media.to_string()),
            ("size", self.size.to_string()),
            ("epoch", self.epoch.to_string()),
        ];
        let stack = self.stack.iter().flat_map(OnStack::about);
        let own = texts.into_iter().chain(stack).map(|(key, text)| (key.to_owned(), text));
        own.chain(joined::about(&self.joined)).collect()
    }

    /// From a recording.
    pub fn from_about(about: &BTreeMap<String, String>) -> Result<Setup, String> {
        let text = |key| text(about, key);
        let setup = Setup {
            name: text("fs")?.to_owned(),
            fs: known(text("fs")?).map_err(|e| e.to_string())?,
            options: text("options")?.to_owned(),
            journal: text("journal")?.parse()?,
            disk: text("device")?.parse()?,
            media: media(about)?,
            size: number(about, "size")?,
            epoch: number(about, "epoch")?,
            stack: OnStack::from_about(about)?,
            joined: joined::from_about(about)?,
        };
        setup.checked().map_err(|e| e.to_string())
    }
}

/// Recordings of before there were media do not say it.
fn media(about: &BTreeMap<String, String>) -> Result<Media, String> {
    let media = about.get("media").map(|media| media.parse()).transpose();
    Ok(media.map_err(|e: MediaError| e.to_string())?.unwrap_or_default())
}

fn text<'a>(about: &'a BTreeMap<String, String>, key: &str) -> Result<&'a str, String> {
    about
        .get(key)
        .map(String::as_str)
        .ok_or_else(|| format!("the recording does not say its {key}"))
}

fn number(about: &BTreeMap<String, String>, key: &str) -> Result<u64, String> {
    let text = text(about, key)?;
    text.parse().map_err(|_| format!("the recording's {key} is {text:?}"))
}

/// The judge that was asked for.
pub fn judge(args: &JudgeArgs) -> Result<Option<Command>, Usage> {
    let Some(command) = &args.command else { return Ok(None) };
    let limit = seconds("--judge-limit", args.limit)?;
    if limit.is_zero() {
        usage!("--judge-limit 0: no judge would ever end");
    }
    let supervisor = args.namespaces.supervisor()?;
    Ok(Some(Command { command: command.clone(), prints: args.prints.clone(), limit, supervisor }))
}

/// Which cuts and states.
pub fn choice(setup: &Setup, args: &CrashRun) -> Result<Choice, Usage> {
    let (cuts, states) = setup.default_bound();
    let cuts = args.cuts.as_deref().unwrap_or(cuts);
    let places = cuts.parse().map_err(|e| Usage(format!("--cuts: {e}")))?;
    let states = args.states.unwrap_or(states);
    if states == 0 {
        usage!("--states 0: at least one state a cut is needed");
    }
    let bound = StateBound { states, ..StateBound::default() };
    within_limits(Choice { places, bound, seed: args.seed }).map_err(Usage)
}

/// More cuts or states than this are a mistake, or somebody's attack: there is a list of them.
const MOST: u64 = 1_000_000;

fn within_limits(choice: Choice) -> Result<Choice, String> {
    let Choice { places, bound, .. } = choice;
    let cuts = places.count().unwrap_or(0);
    for (what, count) in [("cuts", cuts), ("states a cut", bound.states)] {
        if count > MOST {
            return Err(format!("{count} {what}: at most {MOST} are made"));
        }
    }
    Ok(choice)
}

/// For the recording: what gives a state its number.
pub fn about_choice(choice: &Choice, by_lines: bool) -> BTreeMap<String, String> {
    let Choice { places, bound, seed } = choice;
    let texts = [
        ("cuts", places.to_string()),
        ("states", bound.states.to_string()),
        ("combinations", bound.combinations.to_string()),
        ("drawn", bound.drawn.to_string()),
        ("seed", seed.to_string()),
        ("ages", if by_lines { "lines".into() } else { "calls".to_owned() }),
    ];
    texts.map(|(key, text)| (key.to_owned(), text)).into()
}

/// From a recording.
pub fn choice_from(about: &BTreeMap<String, String>) -> Result<(Choice, bool), String> {
    let bound = StateBound {
        states: number(about, "states")?,
        combinations: number(about, "combinations")?,
        drawn: number(about, "drawn")?,
        ..StateBound::default()
    };
    let choice =
        Choice { places: text(about, "cuts")?.parse()?, bound, seed: number(about, "seed")? };
    Ok((within_limits(choice)?, text(about, "ages")? == "lines"))
}
