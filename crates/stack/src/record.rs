//! What a host remembers: the state file beside the configuration.
//!
//! # Invariants
//!
//! 1. It is replaced as a whole: a new file is written, made durable, and takes the old one's name.
//!    A full disk, or a cut, leaves the old one.
//! 2. What is to be changed is written here before it is done: a leg that a label names is named
//!    here too. The other way round it may be that something is named here and was never made; that
//!    is seen, and said, at the next start.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};

use crate::protocol::{Kind, Refusal, VolumeKind};

/// What the file says that it is.
const FORMAT: &str = "steadfast-stack";
const VERSION: u32 = 1;

/// Everything that is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Records {
    format: String,
    version: u32,
    /// Files and block devices by name.
    pub devices: BTreeMap<String, DeviceRecord>,
    /// RAM disks by name: their bytes.
    pub ramdisks: BTreeMap<String, u64>,
    /// Other names: what they stand for.
    pub aliases: BTreeMap<String, String>,
    /// Volumes; what one is made of comes before it.
    pub volumes: Vec<VolumeRecord>,
    /// Mirrors that were taken apart, and their data kept.
    pub retired: Vec<VolumeRecord>,
    /// Names of the configuration file that commands have removed.
    pub removed: BTreeSet<String>,
}

/// A file or block device.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeviceRecord {
    /// Where it is.
    pub path: PathBuf,
    /// It does not count as keeping its contents without power.
    pub volatile: bool,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VolumeRecord {
    /// Its name.
    pub name: String,
    /// UUID, as the labels have it; `None`: it is found by its name.
    pub uuid: Option<String>,
    /// What it is.
    pub kind: VolumeKind,
    /// Components: of a mirror those that were attached, in that order.
    pub components: Vec<String>,
    /// Legs of a mirror that was taken up again, which nobody has attached since.
    pub kept: Vec<String>,
    /// Spares.
    pub spares: Vec<String>,
    /// Components that do not count as keeping their contents.
    pub volatile: Vec<String>,
    /// Bytes of each component in turn, of a stripe.
    pub interlace: Option<u32>,
    /// Reads go to the leg that was attached first.
    pub reads_first: bool,
    /// A leg with data of the mirror was used for something else while it was retired.
    pub lost_a_leg: bool,
}

impl VolumeRecord {
    /// All names that it uses.
    pub fn uses(&self) -> impl Iterator<Item = &String> {
        self.components.iter().chain(&self.kept).chain(&self.spares)
    }

    /// Forgets a component.
    pub fn forget(&mut self, name: &str) {
        for names in [&mut self.components, &mut self.kept, &mut self.spares, &mut self.volatile] {
            names.retain(|n| n != name);
        }
    }
}

impl Records {
    /// The volume that something is a component of.
    pub fn user_of(&self, name: &str) -> Option<&VolumeRecord> {
        self.volumes.iter().find(|v| v.uses().any(|used| used == name))
    }

    /// A volume's record.
    pub fn volume(&self, name: &str) -> Option<&VolumeRecord> {
        self.volumes.iter().find(|v| v.name == name)
    }

    /// The same, to change it.
    pub fn volume_mut(&mut self, name: &str) -> Option<&mut VolumeRecord> {
        self.volumes.iter_mut().find(|v| v.name == name)
    }

    /// Whether anything has this name.
    pub fn has(&self, name: &str) -> bool {
        self.devices.contains_key(name)
            || self.ramdisks.contains_key(name)
            || self.aliases.contains_key(name)
            || self.volume(name).is_some()
    }

    /// What a name stands for.
    pub fn resolved<'n>(&'n self, name: &'n str) -> &'n str {
        self.aliases.get(name).map_or(name, String::as_str)
    }
}

/// The state file, and the lock that says that one host has it.
#[derive(Debug)]
pub struct StateFile {
    path: PathBuf,
    // Its lock goes with it, also when the process is killed.
    _lock: File,
}

impl StateFile {
    /// The state file of a configuration, which nobody else may have.
    ///
    /// # Errors
    /// Another host has it; the folder cannot be written to.
    pub fn open(config: &Path) -> Result<StateFile, Refusal> {
        let path = beside(config, "state.json");
        let lock_path = beside(config, "lock");
        let failed =
            |e: io::Error| Refusal::new(Kind::Failed, format!("{}: {e}", lock_path.display()));
        if let Some(folder) = path.parent().filter(|f| !f.as_os_str().is_empty()) {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let lock = OpenOptions::new().create(true).append(true).open(&lock_path).map_err(failed)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(StateFile { path, _lock: lock }),
            Err(rustix::io::Errno::WOULDBLOCK) => Err(Refusal::new(
                Kind::Busy,
                format!("{}: another host has this configuration", config.display()),
            )),
            Err(e) => Err(failed(e.into())),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What was remembered; nothing, the first time.
    ///
    /// # Errors
    /// It cannot be read, makes no sense, or is of a newer version.
    pub fn read(&self) -> Result<Records, Refusal> {
        let shown = self.path.display();
        let failed = |what: String| Refusal::new(Kind::Failed, format!("{shown}: {what}"));
        let text = match std::fs::read_to_string(&self.path) {
            Ok(text) => text,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Records::default()),
            Err(e) => return Err(failed(e.to_string())),
        };
        let version = serde_json::from_str::<serde_json::Value>(&text).map_err(|e| {
            failed(format!(
                "is damaged: {e}; restore it from a copy, or move it away: volumes that the \
                 configuration has are then found again by their labels, and the log names the \
                 devices of others"
            ))
        })?;
        if version["version"].as_u64().is_some_and(|v| v > u64::from(VERSION)) {
            let version = &version["version"];
            let what =
                format!("has version {version}, this program knows {VERSION}: use a newer one");
            return Err(Refusal::new(Kind::Unsupported, format!("{shown}: {what}")));
        }
        serde_json::from_str(&text).map_err(|e| failed(format!("makes no sense: {e}")))
    }

    /// Replaces it, durably.
    ///
    /// # Errors
    /// The disk is full or fails; what was remembered before stays.
    pub fn write(&self, records: &Records) -> Result<(), Refusal> {
        let records = Records { format: FORMAT.to_owned(), version: VERSION, ..records.clone() };
        let new = self.path.with_extension("json.new");
        let written = (|| -> io::Result<()> {
            let mut text = serde_json::to_string_pretty(&records)?;
            text.push('\n');
            let mut file = File::create(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&new, &self.path)?;
            let folder = self.path.parent().filter(|f| !f.as_os_str().is_empty());
            File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
        })();
        written.map_err(|e| {
            // OK to ignore: it is overwritten the next time.
            let _ = std::fs::remove_file(&new);
            let shown = self.path.display();
            Refusal::new(
                Kind::Failed,
                format!("{shown}: cannot be written: {e}; nothing was changed"),
            )
        })
    }
}

/// A file beside the configuration, of the same name.
fn beside(config: &Path, extension: &str) -> PathBuf {
    config.with_extension(extension)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read_and_one_host_has_it() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("stack.toml");
        let file = StateFile::open(&config).unwrap();
        assert_eq!(file.read().unwrap(), Records::default());
        let mut records = Records::default();
        records.ramdisks.insert("r0".into(), 1 << 20);
        file.write(&records).unwrap();
        assert_eq!(file.read().unwrap().ramdisks, records.ramdisks);
        assert_eq!(StateFile::open(&config).unwrap_err().kind, Kind::Busy);
        drop(file);
        StateFile::open(&config).unwrap();
    }

    #[test]
    fn damage_and_newer_versions_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("stack.toml");
        let file = StateFile::open(&config).unwrap();
        std::fs::write(file.path(), "{\"version\": 2}").unwrap();
        assert_eq!(file.read().unwrap_err().kind, Kind::Unsupported);
        std::fs::write(file.path(), "{").unwrap();
        assert!(file.read().unwrap_err().error.contains("is damaged"));
    }
}
