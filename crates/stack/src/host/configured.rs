//! What a configuration says, at the start of a host.

use std::path::PathBuf;
use std::sync::Arc;

use steadfast_volume::AssembleOptions;
use steadfast_volume::member::read_label;

use super::registry::failed;
use super::{Device, Host, Result};
use crate::config::HostConfig;
use crate::endpoint::Endpoint;
use crate::protocol::RefusalKind::Refused;
use crate::protocol::{Answer, Create};
use crate::record::{DeviceRecord, VolumeRecord};

impl Host {
    /// Opens and assembles everything; makes what the configuration has and nobody made so far.
    pub(super) fn open_all(&self, config: &HostConfig) -> Result<()> {
        self.take_configuration(config)?;
        let records = self.registry.lock().records.clone();
        for (name, record) in &records.devices {
            let opened = self.devices.open_device(name, record);
            if let Some(problem) = &opened.problem {
                tracing::error!("device '{name}': {problem}");
            }
            self.registry.lock().devices.insert(name.clone(), opened);
        }
        for (name, bytes) in &records.ramdisks {
            let opened = self.devices.open_ramdisk(name, *bytes);
            self.registry.lock().devices.insert(name.clone(), opened);
        }
        for alias in records.aliases.keys() {
            let number = self.registry.number();
            self.registry.lock().aliases.insert(alias.clone(), number);
        }
        for record in &records.volumes {
            let assembled = self.volumes.assemble(record, &AssembleOptions::default());
            self.volumes.keep(record, assembled);
        }
        self.make_configured(config);
        self.log_unknown_members();
        Ok(())
    }

    /// Devices of volumes that nobody remembers: a state file was lost, or they are another host's.
    fn log_unknown_members(&self) {
        let devices: Vec<Arc<Endpoint>> = {
            let inner = self.registry.lock();
            let all = inner.devices.values().filter_map(|d| d.endpoint.clone());
            all.filter(|d| inner.records.user_of(d.name()).is_none()).collect()
        };
        for device in devices {
            let name = device.name().to_owned();
            let Ok(Some(found)) = read_label(&(device as Device)) else { continue };
            let retired = |r: &VolumeRecord| {
                r.uuid.as_ref().is_some_and(|uuid| *uuid == found.label.volume.to_string())
            };
            if self.registry.lock().records.retired.iter().any(retired) {
                continue;
            }
            let (slot, volume) = (found.label.slot, &found.label.name);
            tracing::warn!(
                "{name}: is member {slot} of '{volume}', which this host does not know: a section \
                 [volume.{volume}] of the configuration with its components takes it up at the \
                 next start"
            );
        }
    }

    /// Refuses a configuration that gives a new thing a name that is taken, by a command most
    /// likely: whoever names it would get the other one, and write to that.
    fn check_configured_names(&self, config: &HostConfig) -> Result<()> {
        let records = self.registry.lock().records.clone();
        let sections = |kind: &'static str, names: Vec<&str>| {
            names.into_iter().map(move |name| (kind, name.to_owned())).collect::<Vec<_>>()
        };
        let named = [
            sections("device", config.device.keys().map(String::as_str).collect()),
            sections("ramdisk", config.ramdisk.keys().map(String::as_str).collect()),
            sections("volume", config.volume.keys().map(String::as_str).collect()),
        ];
        let mut wrong: Vec<String> = Vec::new();
        for (kind, name) in named.into_iter().flatten() {
            let is_known = match kind {
                "device" => records.devices.contains_key(&name),
                "ramdisk" => records.ramdisks.contains_key(&name),
                _ => {
                    records.volume(&name).is_some()
                        || records.retired.iter().any(|r| r.name == name)
                }
            };
            let Some(what) = records.what_is(&name) else { continue };
            if records.removed.contains(&name) {
                continue;
            }
            if is_known {
                // Of a state file of an earlier version.
                if records.aliases.contains_key(&name) {
                    tracing::error!("{kind} '{name}' is out of reach: its name is {what}, too");
                }
                continue;
            }
            let way_out = match records.aliases.contains_key(&name) {
                true => format!(
                    "give it another name, or take the alias away while the host runs without \
                     this section (rm dsk/{name} rdsk/{name} in its tree)"
                ),
                false => "give it another name".to_owned(),
            };
            wrong.push(format!("[{kind}.{name}]: '{name}' is {what} already: {way_out}"));
        }
        match wrong.is_empty() {
            true => Ok(()),
            false => {
                let config = self.config.display();
                Err(Refused.because(format!("{config}: {}", wrong.join("; "))))
            }
        }
    }

    /// Devices and RAM disks of the configuration: what it says now counts.
    fn take_configuration(&self, config: &HostConfig) -> Result<()> {
        let base = self.config.parent().map(PathBuf::from).unwrap_or_default();
        self.check_configured_names(config)?;
        self.registry
            .remember(|records| {
                for (name, device) in &config.device {
                    if !records.removed.contains(name) {
                        let path = base.join(&device.path);
                        let path = std::path::absolute(&path).unwrap_or(path);
                        let record = DeviceRecord { path, volatile: device.volatile };
                        records.devices.insert(name.clone(), record);
                    }
                }
                for (name, disk) in &config.ramdisk {
                    if !records.removed.contains(name) {
                        records.ramdisks.insert(name.clone(), disk.size.0 / 512 * 512);
                    }
                }
            })
            .map(drop)
    }

    /// Volumes of the configuration that were never made, or were made without a host.
    fn make_configured(&self, config: &HostConfig) {
        for (name, volume) in config.volumes_from_inside() {
            let known = {
                let inner = self.registry.lock();
                inner.records.volume(name).is_some()
                    || inner.records.removed.contains(name)
                    || inner.records.retired.iter().any(|r| r.name == name)
            };
            if known {
                continue;
            }
            let create = Create {
                name: name.to_owned(),
                kind: volume.kind,
                components: volume.components.clone(),
                volatile: volume.volatile.clone(),
                partial: volume.partial.clone(),
                interlace: volume.interlace.and_then(|size| u32::try_from(size.0).ok()),
                read: volume.read_policy.clone(),
                write: volume.write_policy.map(|policy| policy.name().to_owned()),
                pass: volume.pass,
                checksums: volume.checksums,
                ..Create::default()
            };
            let new = || self.refuse_data(&create).and_then(|()| self.volumes.create(&create));
            let made = self.take_existing(&create).unwrap_or_else(new);
            if let Err(e) = made {
                tracing::error!("volume '{name}' of the configuration: {e}");
            }
        }
    }

    /// Refuses components that hold data of an unknown kind: a configuration does not say that they
    /// may be overwritten. What is known is refused where it becomes a component.
    fn refuse_data(&self, create: &Create) -> Result<()> {
        create.components.iter().try_for_each(|name| {
            let device = self.registry.endpoint(name)?.inner_device();
            let is_known = !matches!(read_label(&device), Ok(None));
            match device.first_data().map_err(|e| failed(name, e))? {
                Some(at) if !is_known && (self.volumes.occupant)(&device).is_none() => {
                    let what = format!(
                        "holds data (byte {at} is not zero): steadfast volume create --host makes \
                         it a component, and what it holds is lost"
                    );
                    Err(Refused.about(name, what))
                }
                _ => Ok(()),
            }
        })
    }

    /// A volume whose labels are there already, made by `steadfast volume create`. `None`: they are
    /// not.
    fn take_existing(&self, create: &Create) -> Option<Result<Answer>> {
        let endpoints =
            create.components.iter().filter_map(|name| self.registry.endpoint(name).ok());
        let uuid = endpoints.filter_map(|e| read_label(&(e as Device)).ok().flatten()).next()?;
        if uuid.label.name != create.name {
            return None;
        }
        let record = VolumeRecord {
            uuid: Some(uuid.label.volume.to_string()),
            reads_first: create.read.as_deref() == Some("first"),
            ..super::create::record_of(create)
        };
        let remembered = self.registry.remember(|records| records.volumes.push(record.clone()));
        if let Err(e) = remembered {
            return Some(Err(e));
        }
        let assembled = self.volumes.assemble(&record, &AssembleOptions::default());
        let outcome = match &assembled {
            Ok(volume) => {
                Ok(Answer { bytes: Some(volume.device.info().size), ..Answer::default() })
            }
            Err(e) => Err(e.clone()),
        };
        self.volumes.keep(&record, assembled);
        Some(outcome)
    }
}
