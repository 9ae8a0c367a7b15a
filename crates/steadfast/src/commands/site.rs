//! Where a benchmark's files and devices are: on this machine, in an image, or on a scenario's
//! variant that is made for it, in virtual or in real time.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, anyhow};
use clap::Args;
use steadfast_block::BlockDevice;
use steadfast_ext4::Ext4;
use steadfast_ext4_mkfs::Contents;
use steadfast_lab::scenario::{Scenario, Variant};
use steadfast_lab::stack::{self, Blocks};
use steadfast_runtime::Sim;
use steadfast_vfs::{FileSystem, size};

use super::image;
use crate::Usage;
use crate::cli::Image;
use crate::mount::stack::choose;

/// Options that name an image or a stack.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "In an image or on a variant of a scenario")]
pub struct SiteArgs {
    /// Paths are in this image, a file or block device with ext2, ext3 or ext4
    #[arg(long, value_name = "IMAGE", conflicts_with = "stack")]
    pub image: Option<PathBuf>,
    /// The image's external journal
    #[arg(long, value_name = "JOURNAL_IMAGE", requires = "image")]
    pub journal: Option<PathBuf>,
    /// Paths are on a variant of this scenario (name or TOML file), made for this run
    #[arg(long, value_name = "SCENARIO")]
    pub stack: Option<String>,
    /// Which of the scenario's variants
    #[arg(long, value_name = "NAME", requires = "stack")]
    pub variant: Option<String>,
    /// With --stack: as long as the models say, on this machine's clock; without, in virtual time
    #[arg(long, requires = "stack")]
    pub real_time: bool,
    /// With --stack: memory of the machine's page cache
    #[arg(long, value_name = "SIZE", requires = "stack")]
    pub memory: Option<String>,
    /// With --stack: seed of every random choice
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

/// What will be done to an image.
#[derive(Debug, Clone, Copy)]
pub struct Wants {
    /// Files in it are written.
    pub writes: bool,
    /// Reading changes no times.
    pub noatime: bool,
}

impl SiteArgs {
    /// Does `work` at the place that was named: in a simulation, if that is a stack in virtual
    /// time.
    pub fn at<T: 'static>(
        &self,
        wants: Wants,
        work: impl FnOnce(&Site) -> Result<T> + 'static,
    ) -> Result<T> {
        if let Some(image) = &self.image {
            let image = Image { image: image.clone(), journal: self.journal.clone() };
            return Site::new(What::Image(image, wants)).finish(work);
        }
        let Some(name) = &self.stack else { return Site::new(What::Here).finish(work) };
        let scenario = super::lab::find(name)?;
        let memory = self.memory.as_deref().map(memory).transpose()?;
        // Whoever asks for nothing but devices need not name a variant.
        let one = match &self.variant {
            Some(variant) => Some(choose(&scenario, Some(variant))?.clone()),
            None => choose(&scenario, None).ok().cloned(),
        };
        let cpus = scenario.machine.cpus;
        let (seed, real) = (self.seed, self.real_time);
        let stack = Stack { scenario, variant: one, memory, devices: Mutex::default() };
        let run = move || Site::new(What::Stack(Box::new(stack))).finish(work);
        if real {
            return run();
        }
        Sim::new(seed).cpus(cpus).run(run).map_err(|e| anyhow!(e))?
    }
}

fn memory(text: &str) -> Result<u64> {
    let least = 64 << 12;
    match size::parse(text) {
        Ok(bytes) if bytes >= least => Ok(bytes),
        _ => Err(Usage(format!("--memory: \"{text}\" is no size of at least 256k")).into()),
    }
}

enum What {
    Here,
    Image(Image, Wants),
    Stack(Box<Stack>),
}

struct Stack {
    scenario: Scenario,
    variant: Option<Variant>,
    memory: Option<u64>,
    devices: Mutex<BTreeMap<String, Arc<dyn BlockDevice>>>,
}

/// A place that is open. Its file system is mounted when it is first asked for.
pub struct Site {
    what: What,
    mounted: Arc<Mutex<Option<Arc<Ext4>>>>,
}

impl Site {
    fn new(what: What) -> Site {
        Site { what, mounted: Arc::default() }
    }

    fn finish<T>(self, work: impl FnOnce(&Site) -> Result<T>) -> Result<T> {
        let done = work(&self);
        let unmounted = self.unmount();
        let done = done?;
        unmounted.map(|()| done)
    }

    fn mounted(&self) -> std::sync::MutexGuard<'_, Option<Arc<Ext4>>> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes everything back and forgets what was kept of it: what is read next is read from the
    /// devices.
    pub fn unmount(&self) -> Result<()> {
        // Held until all is written: whoever rescues meanwhile waits for it.
        let mut mounted = self.mounted();
        let fs = mounted.take();
        fs.map_or(Ok(()), |fs| fs.unmount().context("unmounting"))
    }

    /// The file system; made, where it is a stack's, when it is asked for the first time.
    pub fn fs(&self) -> Result<Arc<dyn FileSystem>> {
        if let Some(fs) = &*self.mounted() {
            return Ok(Arc::clone(fs) as Arc<dyn FileSystem>);
        }
        let fs = match &self.what {
            What::Here => anyhow::bail!("paths are this machine's"),
            What::Image(image, wants) => image::mounted(image, !wants.writes, wants.noatime)?,
            What::Stack(stack) => stack.mount()?,
        };
        *self.mounted() = Some(Arc::clone(&fs));
        Ok(fs)
    }

    /// Makes all durable that was written to an image so far, from whatever thread; `None` where
    /// there is no image.
    pub fn rescue(&self) -> Option<Box<dyn Fn() -> Result<()> + Send>> {
        let mounted = Arc::clone(&self.mounted);
        matches!(self.what, What::Image(..)).then(|| {
            let rescue = move || -> Result<()> {
                let fs = mounted.lock().unwrap_or_else(PoisonError::into_inner).clone();
                fs.map_or(Ok(()), |fs| Ok(fs.sync()?))
            };
            Box::new(rescue) as Box<dyn Fn() -> Result<()> + Send>
        })
    }

    /// Refuses a path of this machine that is the image itself, which is in use.
    pub fn refuse_own_image(&self, path: Option<&Path>) -> Result<()> {
        let (What::Image(image, _), Some(path)) = (&self.what, path) else { return Ok(()) };
        let identity = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
        let own = [Some(&image.image), image.journal.as_ref()];
        let is_own = own.into_iter().flatten().any(|o| identity(o) == identity(path));
        if is_own && path.exists() {
            let shown = path.display();
            return Err(Usage(format!("host:{shown}: is the image, which is in use")).into());
        }
        Ok(())
    }

    /// Whether paths are this machine's.
    pub fn is_here(&self) -> bool {
        matches!(self.what, What::Here)
    }

    /// A device of the stack, by its name in the scenario.
    pub fn device(&self, name: &str) -> Result<Arc<dyn BlockDevice>> {
        match &self.what {
            What::Stack(stack) => stack.device(name),
            _ => Err(Usage(format!("device {name}: devices have names with --stack only")).into()),
        }
    }
}

impl Stack {
    /// A device or volume. One that is a member of a volume is not that member: it is new.
    fn device(&self, name: &str) -> Result<Arc<dyn BlockDevice>> {
        let mut devices = self.devices.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(device) = devices.get(name) {
            return Ok(Arc::clone(device));
        }
        let Scenario { devices: known, volumes, .. } = &self.scenario;
        if !known.contains_key(name) && !volumes.contains_key(name) {
            let names: Vec<&str> = known.keys().chain(volumes.keys()).map(String::as_str).collect();
            let names = names.join(", ");
            let what = format!("{}: no device '{name}'; it has {names}", self.scenario.name);
            return Err(Usage(what).into());
        }
        let device = stack::device(&self.scenario, name).map_err(|e| Usage(e.to_string()))?;
        devices.insert(name.to_owned(), Arc::clone(&device));
        Ok(device)
    }

    /// Makes the file system, if there is none yet, and mounts it.
    fn mount(&self) -> Result<Arc<Ext4>> {
        let variant = match &self.variant {
            Some(variant) => variant,
            // Says which there are.
            None => choose(&self.scenario, None)?,
        };
        if let Some(kernel) = &variant.kernel {
            let name = &variant.name;
            return Err(Usage(format!("variant '{name}' is the kernel's own {kernel}")).into());
        }
        let disk = self.device(&variant.disk)?;
        let journal = variant.journal.as_ref().map(|name| self.device(name)).transpose()?;
        let scheduler = self.scenario.scheduler_of(variant);
        let Blocks { disk, journal, .. } = Blocks::new(disk, journal, scheduler);
        let mut options = stack::mount_options(&variant.mount).map_err(|e| anyhow!(e))?;
        options.journal_device = journal.clone();
        let machine = self.scenario.machine_of(variant);
        let memory = self.memory.or(machine.memory_mb.map(|mb| mb << 20));
        machine.apply(memory.unwrap_or(options.page_cache.memory_bytes), &mut options);
        if steadfast_ext4_check::info(&disk).is_err() {
            stack::make(&disk, journal.as_ref(), variant, Contents::Zeros)
                .map_err(|e| anyhow!(e))?;
        }
        Ok(Ext4::mount(disk, options)?)
    }
}
