//! Where a benchmark's files and devices are: on this machine, in an image, or on a stack
//! that is made for it, in virtual or in real time.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use clap::Args;
use steadfast_bench::dd::place::OWN_DISK;
use steadfast_block::BlockDevice;
use steadfast_ext4::Ext4;
use steadfast_runtime::Sim;
use steadfast_setup::{Machine, NamedDevices, Overwrite, Stack};
use steadfast_vfs::{FileSystem, size};

use super::image;
use super::stack_file::{NamedStack, StackFile};
use crate::Usage;
use crate::cli::Image;
use crate::setup_error::to_anyhow;

/// Options that name an image or a stack.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "In an image or on a stack")]
pub struct SiteArgs {
    /// Paths are in this image, a file or block device with ext2, ext3 or ext4
    #[arg(long, value_name = "IMAGE", conflicts_with = "stack")]
    pub image: Option<PathBuf>,
    /// The image's external journal
    #[arg(long, value_name = "JOURNAL_IMAGE", requires = "image")]
    pub journal: Option<PathBuf>,
    /// Paths are on this setup (TOML file) or a variant of this scenario (name or TOML file), made
    /// for this run
    #[arg(long, value_name = "SETUP_OR_SCENARIO")]
    pub stack: Option<String>,
    /// Which of the scenario's variants
    #[arg(long, value_name = "NAME", requires = "stack")]
    pub variant: Option<String>,
    /// With --stack: as long as the models say, on this machine's clock; without, in virtual time
    #[arg(long, requires = "stack")]
    pub real_time: bool,
    /// With --stack: overwrite devices that have a path, whatever they hold
    #[arg(long, requires = "real_time")]
    pub destroy: bool,
    /// With --stack: memory of the machine's page cache
    #[arg(long, value_name = "SIZE", requires = "stack")]
    pub memory: Option<String>,
    /// With --stack: seed of every random choice
    #[arg(long, value_name = "S", default_value_t = 1)]
    pub seed: u64,
}

/// What will be done to an image.
#[derive(Debug, Clone, Copy)]
pub struct ImageAccess {
    /// Files in it are written.
    pub writes: bool,
    /// Reading changes no times.
    pub noatime: bool,
    /// Bytes of a benchmark's data, of which the machine's memory may be a share.
    pub data_bytes: Option<u64>,
}

impl SiteArgs {
    /// Does `work` at the place that was named: in a simulation, if that is a stack in virtual
    /// time.
    pub fn at<T: 'static>(
        &self,
        wants: ImageAccess,
        work: impl FnOnce(&Site) -> Result<T> + 'static,
    ) -> Result<T> {
        if let Some(image) = &self.image {
            let image = Image { image: image.clone(), journal: self.journal.clone() };
            return Site::new(SiteTarget::Image(image, wants)).finish(work);
        }
        let Some(name) = &self.stack else { return Site::new(SiteTarget::Here).finish(work) };
        let file = StackFile::find(name)?;
        let memory = self.memory.as_deref().map(memory).transpose()?;
        let overwrite = Overwrite::of(self.destroy);
        // Whoever asks for nothing but devices need not name a variant.
        let chosen = match file.choose(self.variant.as_deref(), "--variant") {
            Err(e) if self.variant.is_some() => return Err(e.into()),
            chosen => chosen.and_then(|stack| stack.of_ours("only its devices can be used here")),
        };
        let what = match chosen {
            Err(why) => {
                let devices = NamedDevices::new(file.topology.clone(), overwrite);
                let machine = Box::new(file.machine.clone());
                SiteTarget::Devices(Box::new(devices), machine, why.to_string())
            }
            Ok(NamedStack { setup, .. }) => {
                let said = || setup.machine.page_cache_bytes(wants.data_bytes);
                let memory = memory.unwrap_or_else(said);
                SiteTarget::Stack(Box::new(Stack::new(setup, memory, overwrite)))
            }
        };
        let sim = what.simulation(self.seed);
        let run = move || Site::new(what).finish(work);
        if self.real_time {
            return run();
        }
        sim.run(run).map_err(|e| anyhow!(e))?
    }
}

fn memory(text: &str) -> Result<u64> {
    let least = 64 << 12;
    match size::parse(text) {
        Ok(bytes) if bytes >= least => Ok(bytes),
        _ => Err(Usage(format!("--memory: \"{text}\" is no size of at least 256k")).into()),
    }
}

enum SiteTarget {
    Here,
    Image(Image, ImageAccess),
    Stack(Box<Stack>),
    /// Devices of a stack on its machine; why there is no file system.
    Devices(Box<NamedDevices>, Box<Machine>, String),
}

impl SiteTarget {
    /// A simulation of the machine.
    fn simulation(&self, seed: u64) -> Sim {
        match self {
            SiteTarget::Stack(stack) => stack.setup().simulation(seed),
            SiteTarget::Devices(_, machine, _) => Sim::new(seed).cpus(machine.cpus),
            SiteTarget::Here | SiteTarget::Image(..) => Sim::new(seed),
        }
    }
}

/// A place that is open. Its file system is mounted when it is first asked for.
pub struct Site {
    what: SiteTarget,
    mounted: Arc<Mutex<Option<Arc<Ext4>>>>,
}

impl Site {
    fn new(what: SiteTarget) -> Site {
        Site { what, mounted: Arc::default() }
    }

    fn finish<T>(self, work: impl FnOnce(&Site) -> Result<T>) -> Result<T> {
        let done = work(&self);
        let unmounted = match &self.what {
            SiteTarget::Stack(stack) => stack.shut_down().map_err(to_anyhow),
            SiteTarget::Devices(devices, ..) => devices.close().map_err(to_anyhow),
            _ => self.unmount(),
        };
        let done = done?;
        unmounted.map(|()| done)
    }

    fn mounted(&self) -> std::sync::MutexGuard<'_, Option<Arc<Ext4>>> {
        self.mounted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes everything back and forgets what was kept of it: what is read next is read from the
    /// devices.
    pub fn unmount(&self) -> Result<()> {
        if let SiteTarget::Stack(stack) = &self.what {
            return stack.unmount().map_err(to_anyhow);
        }
        // Held until all is written: whoever rescues meanwhile waits for it.
        let mut mounted = self.mounted();
        let fs = mounted.take();
        fs.map_or(Ok(()), |fs| fs.unmount().context("unmounting"))
    }

    /// The file system; made, where it is a stack's, when it is asked for the first time.
    pub fn fs(&self) -> Result<Arc<dyn FileSystem>> {
        let (image, wants) = match &self.what {
            SiteTarget::Here => anyhow::bail!("paths are this machine's"),
            SiteTarget::Image(image, wants) => (image, wants),
            SiteTarget::Stack(stack) => return Ok(stack.mounted().map_err(to_anyhow)?),
            SiteTarget::Devices(_, _, why) => return Err(Usage(why.clone()).into()),
        };
        let mut mounted = self.mounted();
        if let Some(fs) = &*mounted {
            return Ok(Arc::clone(fs) as Arc<dyn FileSystem>);
        }
        let fs = image::mounted(image, !wants.writes, wants.noatime)?;
        *mounted = Some(Arc::clone(&fs));
        Ok(fs)
    }

    /// Makes all durable that was written to an image so far, from whatever thread; `None` where
    /// there is no image.
    pub fn rescue(&self) -> Option<Box<dyn Fn() -> Result<()> + Send>> {
        let mounted = Arc::clone(&self.mounted);
        matches!(self.what, SiteTarget::Image(..)).then(|| {
            let rescue = move || -> Result<()> {
                let fs = mounted.lock().unwrap_or_else(PoisonError::into_inner).clone();
                fs.map_or(Ok(()), |fs| Ok(fs.sync()?))
            };
            Box::new(rescue) as Box<dyn Fn() -> Result<()> + Send>
        })
    }

    /// Refuses a path of this machine that is the image itself, which is in use.
    pub fn refuse_own_image(&self, path: Option<&Path>) -> Result<()> {
        let (SiteTarget::Image(image, _), Some(path)) = (&self.what, path) else { return Ok(()) };
        let identity = |path: &Path| path.metadata().ok().map(|m| (m.dev(), m.ino()));
        let own = [Some(&image.image), image.journal.as_ref()];
        let is_own = own.into_iter().flatten().any(|o| identity(o) == identity(path));
        if is_own && path.exists() {
            let shown = path.display();
            usage!("host:{shown}: is the image, which is in use");
        }
        Ok(())
    }

    /// Whether paths are this machine's.
    pub fn is_here(&self) -> bool {
        matches!(self.what, SiteTarget::Here)
    }

    /// A device of the stack, by its name in the file ([`Stack::device`]), or its disk.
    pub fn device(&self, name: &str) -> Result<Arc<dyn BlockDevice>> {
        let device = match &self.what {
            SiteTarget::Stack(stack) if name == OWN_DISK => stack.own_disk(),
            SiteTarget::Stack(stack) => stack.device(name),
            SiteTarget::Devices(_, _, why) if name == OWN_DISK => {
                return Err(Usage(why.clone()).into());
            }
            SiteTarget::Devices(devices, ..) => devices.get(name),
            SiteTarget::Here | SiteTarget::Image(..) => {
                usage!("device {name}: devices have names with --stack only");
            }
        };
        Ok(device.map_err(|e| Usage(e.to_string()))?)
    }

    /// Bytes of a stack's page cache.
    pub fn memory_bytes(&self) -> Option<u64> {
        match &self.what {
            SiteTarget::Stack(stack) => Some(stack.memory_bytes()),
            SiteTarget::Here | SiteTarget::Image(..) | SiteTarget::Devices(..) => None,
        }
    }

    /// Processor time of a record that dd copies there.
    pub fn record_cost(&self, of_device: bool) -> Duration {
        match &self.what {
            SiteTarget::Stack(stack) => stack.setup().machine.dd_record(of_device),
            SiteTarget::Devices(_, machine, _) => machine.dd_record(of_device),
            SiteTarget::Here | SiteTarget::Image(..) => Duration::ZERO,
        }
    }
}
