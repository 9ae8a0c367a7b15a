//! `crash run --stack`: a setup or a variant of a scenario under test, with its volumes, memory,
//! external journal and scheduler.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use steadfast_crash::explore::StackMachine;
use steadfast_crash::program::Names;
use steadfast_devices::filter::record::{Media, RecordLog};
use steadfast_devices::store::Store;
use steadfast_ext4::MountOptions;
use steadfast_ext4_mkfs::{Contents, JournalChoice};
use steadfast_lab::scenario::Scenario;
use steadfast_runtime::sleep;
use steadfast_setup::{Blocks, Devices, Machine, Setup, SetupError, Volumes, options};

use crate::Usage;
use crate::commands::stack_file::{NamedStack, StackFile};

/// In virtual time, after which nothing of mkfs waits in memory any more.
const WRITTEN_BACK: Duration = Duration::from_secs(3600);

/// A setup or a variant of a scenario. The recording keeps the file's text, so that it can be
/// recovered from wherever the file is.
#[derive(Debug, Clone)]
pub struct OnStack {
    text: String,
    origin: String,
    stack: NamedStack,
}

impl OnStack {
    /// `FILE[:VARIANT]`: a setup's file, or a scenario by its name or file, and which of its
    /// variants.
    ///
    /// # Errors
    /// There is none, or it is no file system of ours with a journal.
    pub fn named(argument: &str) -> Result<OnStack, Usage> {
        let (origin, variant) = match argument.rsplit_once(':') {
            Some((origin, variant)) if Scenario::text_of(argument).is_err() => {
                (origin, Some(variant))
            }
            _ => (argument, None),
        };
        let text = Scenario::text_of(origin).map_err(|e| Usage(format!("--stack: {e}")))?;
        OnStack::of(text, origin, variant)
    }

    fn of(text: String, origin: &str, variant: Option<&str>) -> Result<OnStack, Usage> {
        let how = format!("--stack {origin}:VARIANT");
        let stack = StackFile::parse(&text, origin)?.choose(variant, &how)?.of_ours("say --fs")?;
        // A recording may be anybody's: what it names is not even opened.
        let devices = &stack.setup.topology.devices;
        let is_path = |name: &&String| devices.get(*name).is_some_and(|d| d.model().is_none());
        if let Some(name) = stack.setup.leaves().iter().find(is_path) {
            usage!("device '{name}' is a path of this machine, whose power cannot be cut here");
        }
        let mkfs = options::mkfs(&stack.setup.mkfs).map_err(|e| Usage(e.to_string()))?;
        if stack.setup.journal.is_none() && matches!(mkfs.journal, JournalChoice::None) {
            let name = stack.name_in(origin);
            usage!("{name} has no journal, and e2fsck repairs no stack at its boot: say --fs ext2");
        }
        Ok(OnStack { text, origin: origin.to_owned(), stack })
    }

    /// Its mount options.
    pub fn mount_options(&self) -> &str {
        &self.stack.setup.mount
    }

    /// Its machine.
    pub fn machine(&self) -> &Machine {
        &self.stack.setup.machine
    }

    /// For people.
    pub fn in_words(&self) -> String {
        self.stack.name_in(&self.origin)
    }

    /// For the recording.
    pub fn about(&self) -> impl Iterator<Item = (&'static str, String)> {
        let file = [("stack", &self.text), ("stack_origin", &self.origin)];
        let variant = self.stack.variant.iter().map(|variant| ("variant", variant));
        file.into_iter().chain(variant).map(|(key, text)| (key, text.clone()))
    }

    /// From a recording, if it was on a stack.
    ///
    /// # Errors
    /// Its file cannot be read any more.
    pub fn from_about(about: &BTreeMap<String, String>) -> Result<Option<OnStack>, String> {
        let text = |key: &str| about.get(key).cloned();
        let (Some(stack), Some(origin)) = (text("stack"), text("stack_origin")) else {
            return Ok(None);
        };
        let variant = text("variant");
        OnStack::of(stack, &origin, variant.as_deref()).map(Some).map_err(|e| e.to_string())
    }

    /// The machine that recovers, mounting with these options.
    pub fn stack_machine(&self, options: MountOptions) -> StackMachine {
        // They are all in `options` already.
        let setup = Setup { mount: String::new(), ..self.stack.setup.clone() };
        let change = move |to: &mut MountOptions| *to = options.clone();
        StackMachine {
            memory_bytes: self.stack.setup.machine.page_cache_bytes(None),
            setup,
            is_reset: self.stack.is_reset,
            change: Some(Arc::new(change)),
        }
    }

    /// New devices with a file system on them, as they are after a restart, recorded; the recording
    /// is the caller's to begin.
    ///
    /// # Errors
    /// They cannot be built, or the file system cannot be made.
    pub fn recorded(
        &self,
        machine: &StackMachine,
        owner: (u32, u32),
        log: &RecordLog,
    ) -> Result<(Devices, Blocks), SetupError> {
        // In virtual time: a model of a slow disk would take its time.
        let setup = machine.setup.clone();
        let made = machine.setup.simulation(1).run(move || -> Result<Vec<Store>, SetupError> {
            let devices = Devices::build(&setup)?;
            let blocks = devices.blocks()?;
            blocks.make(&setup, Contents::Zeros, owner)?;
            blocks.flush()?;
            // What a model of a cache in memory writes back later, block by block, is on its disk.
            sleep(WRITTEN_BACK);
            blocks.close()?;
            Ok(devices.all().map(|device| device.contents()).collect())
        });
        // The power has stayed: memory holds what it held.
        let devices = machine.devices_holding(made??, |_| true)?;
        let blocks = machine.recorded(&devices, Volumes::Found, log)?;
        Ok((devices, blocks))
    }

    /// How many devices it is on.
    pub fn devices(&self) -> u32 {
        self.stack.setup.leaves().len() as u32
    }

    /// The medium of a device, as the description says.
    pub fn media(&self, device: u32) -> Media {
        let setup = &self.stack.setup;
        let name = setup.leaves().into_iter().nth(device as usize);
        let device = name.and_then(|name| setup.topology.devices.get(&name));
        device.map(|device| device.media).unwrap_or_default()
    }

    /// Whether the file system sees what the devices hold, byte by byte.
    fn is_seen_as_it_is(&self) -> bool {
        Devices::build(&self.stack.setup).is_ok_and(|devices| devices.are_seen_as_they_are())
    }

    /// What lies where, where that can be said.
    pub fn names(&self, contents: Vec<Store>, options: &MountOptions) -> Names {
        match self.is_seen_as_it_is() {
            true => Names::of(contents, options),
            false => Names::default(),
        }
    }

    /// Refuses to write the first device as an image, where it is but a part of the disk.
    ///
    /// # Errors
    /// It is.
    pub fn refuse_image(&self) -> Result<(), Usage> {
        if self.is_seen_as_it_is() {
            return Ok(());
        }
        usage!("--image: the disk of {} is no single device: take --tree", self.in_words())
    }
}
