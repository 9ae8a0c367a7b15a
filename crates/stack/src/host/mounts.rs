//! File systems on volumes and devices, mounted for as long as the host runs.
//!
//! The host does not know file systems; a [`Mounter`] does. This module decides who may use a
//! volume: only its file system writes to a mounted one.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::registry::{HostState, Registry};
use super::{Device, Result};
use crate::config::HostConfig;
use crate::protocol::RefusalKind::{Busy, NotFound, UsedWrongly};
use crate::protocol::{Answer, MountStatus, NewMount, Refusal};

/// Mounts file systems.
pub trait Mounter: Send + Sync {
    /// Mounts one, and serves it beside.
    ///
    /// # Errors
    /// What is there is no file system, or is damaged; the folder is in use; an option is wrong.
    fn mount(&self, what: &ToMount) -> Result<Arc<dyn MountedFs>>;
}

/// A file system that is mounted.
pub trait MountedFs: Send + Sync {
    /// Unmounts it, and returns when everything is written. With `cut_off` also while files are in
    /// use.
    ///
    /// # Errors
    /// It is in use; or not everything could be written, and then it is unmounted even so.
    fn unmount(&self, cut_off: bool) -> Result<()>;

    /// Whether it could be unmounted now, as far as that can be known without doing it.
    ///
    /// # Errors
    /// It is in use.
    fn check_unused(&self) -> Result<()>;

    /// The options that are in force: they can be changed while it is mounted.
    fn options(&self) -> String;

    /// Whether it is mounted no more: others can unmount it too.
    fn has_ended(&self) -> bool;
}

/// What is to be mounted.
pub struct ToMount {
    /// What the file system is on.
    pub device: Device,
    /// Its external journal, if the host has it.
    pub journal: Option<Device>,
    /// The same as a path.
    pub journal_path: Option<PathBuf>,
    /// Where.
    pub at: PathBuf,
    /// Options.
    pub options: String,
    /// What the table of mounts calls it: the same at each start of this host.
    pub source: String,
}

/// A file system that the host has mounted, or should have.
#[derive(Clone, Default)]
pub(crate) struct MountRecord {
    volume: String,
    at: PathBuf,
    options: String,
    journal: Option<String>,
    /// It is in the configuration.
    configured: bool,
    /// Names of what it is on. While it is being mounted they are there already.
    uses: Vec<String>,
    mounted: Option<Arc<dyn MountedFs>>,
    problem: Option<String>,
}

impl MountRecord {
    fn is_in_use(&self) -> bool {
        !self.uses.is_empty() && self.mounted.as_ref().is_none_or(|m| !m.has_ended())
    }
}

impl HostState {
    /// Refuses what a mounted file system is on.
    pub fn check_unmounted(&self, name: &str) -> Result<()> {
        let user = |(_, place): &(&String, &MountRecord)| {
            place.is_in_use() && place.uses.iter().any(|used| used == name)
        };
        let Some((mount, place)) = self.mounts.iter().find(user) else { return Ok(()) };
        let at = place.at.display();
        Err(Busy.about(name, format!("is mounted at {at}: steadfast host umount {mount} first")))
    }

    pub(super) fn mount_status(&self) -> Vec<MountStatus> {
        let status = |(name, place): (&String, &MountRecord)| MountStatus {
            name: name.clone(),
            volume: place.volume.clone(),
            at: place.at.clone(),
            options: place.options.clone(),
            journal: place.journal.clone(),
            mounted: place.mounted.is_some() && place.is_in_use(),
            problem: place.problem.clone(),
        };
        self.mounts.iter().map(status).collect()
    }
}

/// The file systems that a host has mounted.
pub(crate) struct HostMounts {
    registry: Arc<Registry>,
    mounter: Box<dyn Mounter>,
    /// The host's configuration file: relative paths are from its folder.
    config: PathBuf,
}

impl HostMounts {
    pub fn new(registry: &Arc<Registry>, mounter: Box<dyn Mounter>, config: &Path) -> HostMounts {
        HostMounts { registry: Arc::clone(registry), mounter, config: config.to_path_buf() }
    }

    /// Mounts the configured file systems; a failure is reported, and the others are mounted.
    pub fn mount_configured(&self, config: &HostConfig) {
        let base = self.config.parent().map(PathBuf::from).unwrap_or_default();
        for (name, mount) in &config.mount {
            let at = base.join(&mount.at);
            let place = MountRecord {
                volume: mount.volume.clone(),
                at: std::path::absolute(&at).unwrap_or(at),
                options: mount.options.clone(),
                journal: mount.journal.clone(),
                configured: true,
                ..MountRecord::default()
            };
            let _one = self.registry.one_change();
            self.registry.lock().mounts.insert(name.clone(), place);
            if let Err(e) = self.mount_place(name) {
                tracing::error!("mount '{name}': {e}");
            }
        }
    }

    pub(super) fn mount(&self, new: &NewMount) -> Result<Answer> {
        let _one = self.registry.one_change();
        let name = match &new.at {
            None => {
                if !self.registry.lock().mounts.contains_key(&new.name) {
                    let what = "the configuration has no such mount: say where to mount it";
                    return Err(NotFound.about(&new.name, what));
                }
                new.name.clone()
            }
            Some(at) => self.new_place(new, at)?,
        };
        let mounted = self.mount_place(&name);
        let mut inner = self.registry.lock();
        if mounted.is_err() && inner.mounts.get(&name).is_some_and(|place| !place.configured) {
            inner.mounts.remove(&name);
        }
        drop(inner);
        mounted.map(|()| Answer::default())
    }

    /// A place of a command, by the name of what is mounted.
    fn new_place(&self, new: &NewMount, at: &Path) -> Result<String> {
        if !at.is_absolute() {
            let what = "a folder is named by its whole path, from /";
            return Err(UsedWrongly.because(format!("{}: {what}", at.display())));
        }
        let mut inner = self.registry.lock();
        let name = inner.endpoint(&new.name)?.name().to_owned();
        inner.check_unused(&name)?;
        if inner.mounts.get(&name).is_some_and(|place| place.configured || place.is_in_use()) {
            return Err(Busy.about(&name, "a mount of this name is in the configuration"));
        }
        let place = MountRecord {
            volume: name.clone(),
            at: at.to_path_buf(),
            options: new.options.clone(),
            journal: new.journal.clone(),
            ..MountRecord::default()
        };
        inner.mounts.insert(name.clone(), place);
        Ok(name)
    }

    /// Mounts what is to be in a place.
    fn mount_place(&self, name: &str) -> Result<()> {
        let wanted = self.reserve(name);
        let mounted = wanted.and_then(|wanted| {
            let mounted = self.mounter.mount(&wanted)?;
            tracing::info!("{}: mounted at {}", wanted.source, wanted.at.display());
            Ok(mounted)
        });
        let mut inner = self.registry.lock();
        let place = inner.mounts.get_mut(name);
        match (mounted, place) {
            (Ok(mounted), Some(place)) => {
                (place.mounted, place.problem) = (Some(mounted), None);
                Ok(())
            }
            (Ok(_), None) => Ok(()),
            (Err(e), place) => {
                if let Some(place) = place.filter(|place| place.mounted.is_none()) {
                    place.uses.clear();
                    place.problem = Some(e.error.clone());
                }
                Err(e)
            }
        }
    }

    /// What is to be mounted; nobody else may use it from here on.
    fn reserve(&self, name: &str) -> Result<ToMount> {
        let mut inner = self.registry.lock();
        let Some(place) = inner.mounts.get(name) else {
            return Err(NotFound.about(name, "there is no such mount"));
        };
        if place.is_in_use() {
            return Err(Busy.about(name, format!("is mounted at {} already", place.at.display())));
        }
        let (volume, at, options) = (place.volume.clone(), place.at.clone(), place.options.clone());
        let journal = place.journal.clone();
        let on = inner.endpoint(&volume)?;
        inner.check_unused(on.name())?;
        let mut uses = vec![on.name().to_owned()];
        let mut wanted = ToMount {
            device: Arc::clone(&on) as Device,
            journal: None,
            journal_path: None,
            at,
            options,
            source: format!("{}:{}", self.config.display(), on.name()),
        };
        if let Some(journal) = journal.filter(|j| j.contains('/')) {
            let base = self.config.parent().map(PathBuf::from).unwrap_or_default();
            wanted.journal_path = Some(base.join(journal));
        } else if let Some(journal) = &inner.mounts.get(name).and_then(|p| p.journal.clone()) {
            let journal = inner.endpoint(journal)?;
            inner.check_unused(journal.name())?;
            if Arc::ptr_eq(&journal, &on) {
                let what = "a file system cannot have its journal on itself by another name";
                return Err(UsedWrongly.about(name, what));
            }
            uses.push(journal.name().to_owned());
            wanted.journal = Some(journal as Device);
        }
        if let Some(place) = inner.mounts.get_mut(name) {
            (place.uses, place.mounted) = (uses, None);
        }
        Ok(wanted)
    }

    pub(super) fn umount(&self, name: &str) -> Result<Answer> {
        let _one = self.registry.one_change();
        let found = {
            let inner = self.registry.lock();
            let named = |(n, place): &(&String, &MountRecord)| {
                place.is_in_use() && (*n == name || place.at == Path::new(name))
            };
            inner.mounts.iter().find(named).map(|(n, _)| n.clone())
        };
        let Some(found) = found else {
            let what = "nothing of this name, or at this place, is mounted by the host";
            return Err(NotFound.about(name, what));
        };
        self.umount_place(&found, false).map(|()| Answer::default())
    }

    fn umount_place(&self, name: &str, cut_off: bool) -> Result<()> {
        let mounted = self.registry.lock().mounts.get(name).and_then(|place| place.mounted.clone());
        let Some(mounted) = mounted else { return Ok(()) };
        let unmounted = mounted.unmount(cut_off);
        if mounted.has_ended() {
            let mut inner = self.registry.lock();
            if let Some(place) = inner.mounts.get_mut(name) {
                (place.mounted, place.uses) = (None, Vec::new());
            }
            if inner.mounts.get(name).is_some_and(|place| !place.configured) {
                inner.mounts.remove(name);
            }
        }
        unmounted
    }

    /// Unmounts everything, or leaves everything mounted: what is in use is looked for first. What
    /// comes into use just then is found out when others are unmounted already, and these are
    /// mounted again.
    pub(super) fn umount_all_or_none(&self) -> Result<()> {
        let places: Vec<(String, MountRecord)> = {
            let inner = self.registry.lock();
            let mounted = inner.mounts.iter().filter(|(_, place)| place.is_in_use());
            mounted.map(|(name, place)| (name.clone(), place.clone())).collect()
        };
        let mounted = places.iter().filter_map(|(_, place)| place.mounted.as_ref());
        mounted.clone().try_for_each(|mounted| mounted.check_unused())?;
        let options: Vec<String> = mounted.map(|mounted| mounted.options()).collect();
        for (count, (name, _)) in places.iter().enumerate() {
            if let Err(e) = self.umount_place(name, false) {
                let gone = places.into_iter().zip(options).take(count);
                return Err(gone.fold(e, |e, ((name, place), options)| {
                    self.restore_mount(&name, place, options, e)
                }));
            }
        }
        Ok(())
    }

    /// Mounts again after an unmount whose operation was refused; returns `why`, with what is to be
    /// said of that.
    fn restore_mount(
        &self,
        name: &str,
        place: MountRecord,
        options: String,
        why: Refusal,
    ) -> Refusal {
        let (at, asked) = (place.at.display().to_string(), place.options.clone());
        let back = MountRecord { options, uses: Vec::new(), mounted: None, ..place };
        self.registry.lock().mounts.insert(name.to_owned(), back);
        let mounted = self.mount_place(name);
        if let Some(place) = self.registry.lock().mounts.get_mut(name) {
            place.options = asked;
        }
        match mounted {
            Ok(()) => why,
            Err(e) => {
                tracing::error!("{name}: was unmounted, and cannot be mounted again at {at}: {e}");
                why.with(&format!("{name} was unmounted, and cannot be mounted again: {e}"))
            }
        }
    }

    /// Unmounts everything, at the end: the first error; all are tried.
    pub(super) fn umount_all(&self, cut_off: bool) -> Result<()> {
        let names: Vec<String> = self.registry.lock().mounts.keys().cloned().collect();
        let mut outcome = Ok(());
        for name in names {
            outcome = outcome.and(self.umount_place(&name, cut_off));
        }
        outcome
    }
}
