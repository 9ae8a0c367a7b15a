//! Assembly: at the start, and later.

use std::path::PathBuf;
use std::sync::Arc;

use steadfast_vfs::size;
use steadfast_volume::assemble::assemble_one;
use steadfast_volume::member::{LabelledDevice, has_zero_ends, read_label};
use steadfast_volume::{
    AssembleOptions, Event, LegState, Mirror, NewLeg, Volume, create_rows, planned_rows,
};

use super::{Device, Host, Result, VolumeSlot, of_volume, said};
use crate::config::HostConfig;
use crate::endpoint::Endpoint;
use crate::protocol::{Answer, Assemble, Create, Refusal, RefusalKind, VolumeKind};
use crate::record::{DeviceRecord, VolumeRecord};

impl Host {
    /// Opens and assembles everything; makes what the configuration has and nobody made so far.
    pub(super) fn open_all(self: &Arc<Self>, config: &HostConfig) -> Result<()> {
        self.take_configuration(config)?;
        let records = self.lock().records.clone();
        for (name, record) in &records.devices {
            let opened = self.open_device(name, record);
            if let Some(problem) = &opened.problem {
                tracing::error!("device '{name}': {problem}");
            }
            self.lock().devices.insert(name.clone(), opened);
        }
        for (name, bytes) in &records.ramdisks {
            let opened = self.open_ramdisk(name, *bytes);
            self.lock().devices.insert(name.clone(), opened);
        }
        for alias in records.aliases.keys() {
            let number = self.number();
            self.lock().aliases.insert(alias.clone(), number);
        }
        for record in &records.volumes {
            let assembled = self.assemble(record, &AssembleOptions::default());
            self.keep(record, assembled);
        }
        self.make_configured(config);
        self.log_unknown_members();
        Ok(())
    }

    /// Devices of volumes that nobody remembers: a state file was lost, or they are another host's.
    fn log_unknown_members(&self) {
        let devices: Vec<Arc<Endpoint>> = {
            let inner = self.lock();
            let all = inner.devices.values().filter_map(|d| d.endpoint.clone());
            all.filter(|d| inner.records.user_of(d.name()).is_none()).collect()
        };
        for device in devices {
            let name = device.name().to_owned();
            let Ok(Some(found)) = read_label(&(device as Device)) else { continue };
            let retired = |r: &VolumeRecord| {
                r.uuid.as_ref().is_some_and(|uuid| *uuid == found.label.volume.to_string())
            };
            if self.lock().records.retired.iter().any(retired) {
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
        let records = self.lock().records.clone();
        let sections = |kind: &'static str, names: Vec<&str>| {
            names.into_iter().map(move |name| (kind, name.to_owned())).collect::<Vec<_>>()
        };
        let named = [
            sections("device", config.device.keys().map(|n| n.get_ref().as_str()).collect()),
            sections("ramdisk", config.ramdisk.keys().map(|n| n.get_ref().as_str()).collect()),
            sections("volume", config.volume.keys().map(|n| n.get_ref().as_str()).collect()),
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
                let config = self.options.config.display();
                Err(Refusal::new(RefusalKind::Refused, format!("{config}: {}", wrong.join("; "))))
            }
        }
    }

    /// Devices and RAM disks of the configuration: what it says now counts.
    fn take_configuration(&self, config: &HostConfig) -> Result<()> {
        let base = self.options.config.parent().map(PathBuf::from).unwrap_or_default();
        self.check_configured_names(config)?;
        self.remember(|records| {
            for (name, device) in &config.device {
                let name = name.get_ref();
                if !records.removed.contains(name) {
                    let path = base.join(&device.path);
                    let path = std::path::absolute(&path).unwrap_or(path);
                    let record = DeviceRecord { path, volatile: device.volatile };
                    records.devices.insert(name.clone(), record);
                }
            }
            for (name, disk) in &config.ramdisk {
                let name = name.get_ref();
                // OK to leave out: the configuration was checked.
                if let (false, Ok(bytes)) =
                    (records.removed.contains(name), size::parse(disk.size.get_ref()))
                {
                    records.ramdisks.insert(name.clone(), bytes - bytes % 512);
                }
            }
        })
        .map(drop)
    }

    /// Volumes of the configuration that were never made, or were made without a host.
    fn make_configured(self: &Arc<Self>, config: &HostConfig) {
        for (name, volume) in config.volumes_from_inside() {
            let known = {
                let inner = self.lock();
                inner.records.volume(name).is_some()
                    || inner.records.removed.contains(name)
                    || inner.records.retired.iter().any(|r| r.name == name)
            };
            if known {
                continue;
            }
            let names = |all: &[toml::Spanned<String>]| -> Vec<String> {
                all.iter().map(|c| c.get_ref().clone()).collect()
            };
            let text =
                |given: &Option<toml::Spanned<String>>| given.as_ref().map(|t| t.get_ref().clone());
            let interlace = text(&volume.interlace).and_then(|t| size::parse(&t).ok());
            let create = Create {
                name: name.to_owned(),
                kind: volume.kind,
                components: names(volume.components.get_ref()),
                volatile: names(&volume.volatile),
                partial: names(&volume.partial),
                interlace: interlace.and_then(|bytes| u32::try_from(bytes).ok()),
                read: text(&volume.read_policy),
                write: text(&volume.write_policy),
                pass: volume.pass,
                checksums: volume.checksums,
                ..Create::default()
            };
            let made = self.take_existing(&create).unwrap_or_else(|| self.create(&create));
            if let Err(e) = made {
                tracing::error!("volume '{name}' of the configuration: {e}");
            }
        }
    }

    /// A volume whose labels are there already, made by `steadfast volume create`. `None`: they are
    /// not.
    fn take_existing(self: &Arc<Self>, create: &Create) -> Option<Result<Answer>> {
        let endpoints = create.components.iter().filter_map(|name| self.endpoint(name).ok());
        let uuid = endpoints.filter_map(|e| read_label(&(e as Device)).ok().flatten()).next()?;
        if uuid.label.name != create.name {
            return None;
        }
        let record = VolumeRecord {
            uuid: Some(uuid.label.volume.to_string()),
            reads_first: create.read.as_deref() == Some("first"),
            ..super::create::record_of(create)
        };
        let remembered = self.remember(|records| records.volumes.push(record.clone()));
        if let Err(e) = remembered {
            return Some(Err(e));
        }
        let assembled = self.assemble(&record, &AssembleOptions::default());
        let outcome = match &assembled {
            Ok(volume) => {
                Ok(Answer { bytes: Some(volume.device.info().size), ..Answer::default() })
            }
            Err(e) => Err(e.clone()),
        };
        self.keep(&record, assembled);
        Some(outcome)
    }

    /// Puts a volume where everybody finds it, or the reason why it is not there.
    pub(super) fn keep(self: &Arc<Self>, record: &VolumeRecord, assembled: Result<Volume>) {
        let name = &record.name;
        let kept = match assembled {
            Ok(volume) => {
                self.remember_identity(name, &volume);
                let device: Device = volume.device.clone();
                let endpoint = Endpoint::new(name, self.number(), device, false);
                if let Some(mirror) = &volume.mirror {
                    self.maintain(name, mirror);
                }
                VolumeSlot {
                    volume: Some(volume),
                    endpoint: Some(endpoint),
                    ..VolumeSlot::default()
                }
            }
            Err(e) => {
                let problem = e.error.replace("--degraded", "'steadfast volume resync --degraded'");
                tracing::error!("volume '{name}' is not assembled: {problem}");
                VolumeSlot { problem: Some(problem), ..VolumeSlot::default() }
            }
        };
        self.lock().volumes.insert(name.clone(), kept);
    }

    /// A volume of memory that was made again is another one than before.
    fn remember_identity(&self, name: &str, volume: &Volume) {
        let uuid = volume.uuid.to_string();
        let remembered = self.remember(|records| {
            let record = records.volumes.iter_mut().find(|v| v.name == name);
            if let Some(record) = record.filter(|r| r.uuid.as_ref() != Some(&uuid)) {
                record.uuid = Some(uuid);
            }
        });
        if let Err(e) = remembered {
            tracing::error!("volume '{name}': {e}; the next start will not know it");
        }
    }

    /// Has what happens to a mirror logged, and what its legs lack copied.
    fn maintain(self: &Arc<Self>, name: &str, mirror: &Mirror) {
        let volume_name = name.to_owned();
        mirror.listen(Arc::new(move |event: &Event| match event {
            Event::Dropped(t) if t.volatile => tracing::warn!("{volume_name}: {event}"),
            Event::SpareUsed { .. } | Event::WrongData { repaired: true, .. } => {
                tracing::warn!("{volume_name}: {event}");
            }
            _ => tracing::error!("{volume_name}: {event}"),
        }));
        let status = mirror.status();
        for leg in status.legs.iter().filter(|leg| leg.volatile) {
            let (leg_name, state) = (&leg.name, leg.state.name());
            match leg.state {
                LegState::Okay => {}
                LegState::Resyncing => {
                    let lacks = leg.lacking_bytes;
                    tracing::info!("{name}: {leg_name} lacks {lacks} bytes, which are copied");
                }
                _ => tracing::info!("{name}: {leg_name}: {state}"),
            }
        }
        let inner = self.lock();
        let record = inner.records.volume(name).cloned().unwrap_or_default();
        for lacks in inner.lacking(&status, &record) {
            tracing::warn!("{name}: degraded: {lacks}");
        }
    }

    /// Assembles a volume of the records from its components.
    pub(super) fn assemble(
        &self,
        record: &VolumeRecord,
        options: &AssembleOptions,
    ) -> Result<Volume> {
        let mut there: Vec<Arc<Endpoint>> = Vec::new();
        let mut missing: Vec<Refusal> = Vec::new();
        for name in record.uses() {
            match self.endpoint(name) {
                Ok(endpoint) => there.push(endpoint),
                Err(e) => missing.push(e),
            }
        }
        let mut members: Vec<LabelledDevice> = Vec::new();
        let mut blank: Vec<Arc<Endpoint>> = Vec::new();
        for endpoint in there {
            let device: Device = Arc::clone(&endpoint) as Device;
            match read_label(&device) {
                Ok(Some(found)) if is_of(&found, record) => members.push(found),
                Ok(None) => blank.push(endpoint),
                Ok(Some(found)) => {
                    let (other, name) = (&found.label.name, endpoint.name());
                    let what = format!("carries the label of volume '{other}'");
                    missing.push(Refusal::about(RefusalKind::Refused, name, what));
                }
                Err(e) => missing.push(of_volume(endpoint.name(), e)),
            }
        }
        match record.kind {
            VolumeKind::Mirror => self.assemble_mirror(record, members, &blank, &missing, options),
            _ => self.assemble_rows(record, members, &blank, &missing),
        }
    }

    fn assemble_rows(
        &self,
        record: &VolumeRecord,
        members: Vec<LabelledDevice>,
        blank: &[Arc<Endpoint>],
        missing: &[Refusal],
    ) -> Result<Volume> {
        if let Some(missing) = missing.first() {
            return Err(missing.clone());
        }
        if blank.is_empty() {
            let assembled = assemble_one(members, &AssembleOptions::default());
            return assembled.map_err(|e| of_volume(&record.name, e));
        }
        // Memory is blank after a start, so the whole is: it is made again.
        if let Some(durable) = blank.iter().find(|e| !e.is_volatile()) {
            let what = format!(
                "carries no label any more, and was a component of '{}': destroy that and make it \
                 again, what it held is lost",
                record.name
            );
            return Err(Refusal::about(RefusalKind::Refused, durable.name(), what));
        }
        for endpoint in blank {
            if let Some(what) = self.held_by(endpoint) {
                let what = format!(
                    "was memory of '{}' and is not blank ({what}): it is not overwritten; see \
                     whether the name stands for another device now",
                    record.name
                );
                return Err(Refusal::about(RefusalKind::Refused, endpoint.name(), what));
            }
        }
        self.make_rows(record, true)
    }

    /// What keeps a device without a label from being taken for memory that is blank after a
    /// start: a name may stand for another disk than before. A RAM disk of this host is its own.
    fn held_by(&self, endpoint: &Arc<Endpoint>) -> Option<String> {
        if self.lock().records.ramdisks.contains_key(endpoint.name()) {
            return None;
        }
        let device: Device = Arc::clone(endpoint) as Device;
        let not_zeros = || (!has_zero_ends(&device)).then(|| "there are bytes at its ends".into());
        (self.options.occupant)(&device).map(|what| format!("it holds {what}")).or_else(not_zeros)
    }

    /// Memory is blank after a start: it takes the place again that a label remembers by its name,
    /// and is filled from the others.
    fn refill(&self, name: &str, mirror: &Mirror, blank: &[Arc<Endpoint>]) {
        let away =
            |leg: &steadfast_volume::LegStatus| leg.volatile && leg.state == LegState::Unavailable;
        for leg in mirror.status().legs.into_iter().filter(away) {
            let Some(endpoint) = blank.iter().find(|e| e.name() == leg.name) else { continue };
            if let Some(what) = self.held_by(endpoint) {
                tracing::error!(
                    "{name}: {} is not taken as a leg again: it has no label and is not blank \
                     ({what}); if it is the device that it was, `steadfast volume replace` with \
                     --force takes it",
                    leg.name
                );
                continue;
            }
            let device: Device = Arc::clone(endpoint) as Device;
            let new = NewLeg { volatile: true, ..NewLeg::new(device) };
            match mirror.replace(leg.slot, Some(&new)) {
                Ok(()) => tracing::info!("{name}: {} is a leg again, blank", leg.name),
                Err(e) => {
                    tracing::error!("{name}: {} could not be made a leg again: {e}", leg.name);
                }
            }
        }
    }

    /// Writes the labels of a concat or stripe.
    pub(super) fn make_rows(&self, record: &VolumeRecord, force: bool) -> Result<Volume> {
        let (devices, interlace) = self.rows_of(record)?;
        said(&record.name, create_rows(&record.name, &devices, interlace, force))
    }

    /// The same volume as it would be, if it can be made: nothing is written.
    pub(super) fn planned(&self, record: &VolumeRecord, force: bool) -> Result<Device> {
        let (devices, interlace) = self.rows_of(record)?;
        said(&record.name, planned_rows(&record.name, &devices, interlace, force))
    }

    fn rows_of(&self, record: &VolumeRecord) -> Result<(Vec<Device>, Option<u32>)> {
        let names = record.components.iter();
        let devices = names.map(|name| self.endpoint(name).map(|e| e as Device));
        let interlace = match record.kind {
            VolumeKind::Stripe => Some(record.interlace.unwrap_or(64 << 10)),
            _ => None,
        };
        Ok((devices.collect::<Result<_>>()?, interlace))
    }

    fn assemble_mirror(
        &self,
        record: &VolumeRecord,
        members: Vec<LabelledDevice>,
        blank: &[Arc<Endpoint>],
        missing: &[Refusal],
        options: &AssembleOptions,
    ) -> Result<Volume> {
        if members.is_empty() {
            let why = missing.first().map_or_else(
                || "none of its legs carries its label".to_owned(),
                |e| format!("none of its legs is there: {e}"),
            );
            return Err(Refusal::about(RefusalKind::Refused, &record.name, why));
        }
        for e in missing {
            tracing::warn!("{}: {e}", record.name);
        }
        let volume = assemble_one(members, options).map_err(|e| of_volume(&record.name, e))?;
        if let Some(mirror) = &volume.mirror {
            self.refill(&record.name, mirror, blank);
        }
        Ok(volume)
    }

    /// Assembles what could not be at the start.
    pub(super) fn reassemble(self: &Arc<Self>, what: &Assemble) -> Result<Answer> {
        let _one = self.one_change();
        let record = {
            let inner = self.lock();
            let name = inner.records.resolved(&what.name);
            let Some(record) = inner.records.volume(name) else {
                return Err(Refusal::about(RefusalKind::NotFound, name, "there is no such volume"));
            };
            if inner.volumes.get(name).is_some_and(|v| v.volume.is_some()) {
                return Err(Refusal::about(RefusalKind::Refused, name, "is assembled"));
            }
            record.clone()
        };
        self.open_missing(&record);
        let keep = what.keep.as_deref().map(str::parse).transpose();
        let keep = keep.map_err(|_| Refusal::new(RefusalKind::UsedWrongly, "that is no UUID"))?;
        let options =
            AssembleOptions { degraded: what.degraded, keep, ..AssembleOptions::default() };
        let volume = self.assemble(&record, &options)?;
        let bytes = volume.device.info().size;
        self.keep(&record, Ok(volume));
        self.start_resync(&record.name, None);
        Ok(Answer { bytes: Some(bytes), ..Answer::default() })
    }

    /// Opens devices that were not there at the start.
    pub(super) fn open_missing(&self, record: &VolumeRecord) {
        for name in record.uses() {
            let device = {
                let inner = self.lock();
                let name = inner.records.resolved(name);
                let is_there = inner.devices.get(name).is_some_and(|d| d.endpoint.is_some());
                let device = inner.records.devices.get(name).filter(|_| !is_there);
                device.map(|d| (name.to_owned(), d.clone()))
            };
            if let Some((name, device)) = device {
                let opened = self.open_device(&name, &device);
                self.lock().devices.insert(name, opened);
            }
        }
    }
}

/// Whether a label is of the volume of a record.
fn is_of(found: &LabelledDevice, record: &VolumeRecord) -> bool {
    match &record.uuid {
        Some(uuid) => found.label.volume.to_string() == *uuid,
        None => found.label.name == record.name,
    }
}
