//! Assembly of volumes from their components.

use std::sync::Arc;

use steadfast_setup::NewVolume;
use steadfast_volume::assemble::assemble_one;
use steadfast_volume::member::{LabelledDevice, read_label};
use steadfast_volume::ondisk::label::LayoutKind;
use steadfast_volume::{AssembleOptions, Event, LegState, Mirror, MirrorOptions, NewLeg, Volume};

use super::registry::{VolumeSlot, of_volume, said};
use super::volumes::HostVolumes;
use super::{Device, Result};
use crate::endpoint::Endpoint;
use crate::protocol::RefusalKind::{NotFound, Refused, UsedWrongly};
use crate::protocol::{Answer, Assemble, Refusal};
use crate::record::VolumeRecord;

impl HostVolumes {
    /// Puts a volume where everybody finds it, or the reason why it is not there.
    pub(super) fn keep(&self, record: &VolumeRecord, assembled: Result<Volume>) {
        let name = &record.name;
        let kept = match assembled {
            Ok(volume) => {
                self.remember_identity(name, &volume);
                let device: Device = volume.device.clone();
                let endpoint = Endpoint::new(name, self.registry.number(), device, false);
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
        self.registry.lock().volumes.insert(name.clone(), kept);
    }

    /// A volume of memory that was made again is another one than before.
    fn remember_identity(&self, name: &str, volume: &Volume) {
        let uuid = volume.uuid.to_string();
        let remembered = self.registry.remember(|records| {
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
    fn maintain(&self, name: &str, mirror: &Mirror) {
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
        let inner = self.registry.lock();
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
            match self.registry.endpoint(name) {
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
                    missing.push(Refused.about(name, what));
                }
                Err(e) => missing.push(of_volume(endpoint.name(), e)),
            }
        }
        match record.kind {
            LayoutKind::Mirror => self.assemble_mirror(record, members, &blank, &missing, options),
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
            return Err(Refused.about(durable.name(), what));
        }
        for endpoint in blank {
            if let Some(what) = self.held_by(endpoint) {
                let what = format!(
                    "was memory of '{}' and is not blank ({what}): it is not overwritten; see \
                     whether the name stands for another device now",
                    record.name
                );
                return Err(Refused.about(endpoint.name(), what));
            }
        }
        said(&record.name, self.new_rows(record, true)?.make())
    }

    /// What keeps a device without a label from being taken for memory that is blank after a
    /// start: a name may stand for another disk than before. A RAM disk of this host is its own.
    fn held_by(&self, endpoint: &Arc<Endpoint>) -> Option<String> {
        if self.registry.lock().records.ramdisks.contains_key(endpoint.name()) {
            return None;
        }
        let device = endpoint.inner_device();
        let data = || match device.first_data() {
            Ok(at) => at.map(|at| format!("byte {at} is not zero")),
            Err(e) => Some(e.to_string()),
        };
        (self.occupant)(&device).map(|what| format!("it holds {what}")).or_else(data)
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

    /// The concat or stripe of a record, to be made anew.
    pub(super) fn new_rows<'r>(
        &self,
        record: &'r VolumeRecord,
        force: bool,
    ) -> Result<NewVolume<'r>> {
        let member = |name: &String| {
            let device = self.registry.endpoint(name)? as Device;
            Ok(NewLeg { force, ..NewLeg::new(device) })
        };
        Ok(NewVolume {
            name: &record.name,
            kind: record.kind,
            members: record.components.iter().map(member).collect::<Result<_>>()?,
            interlace: record.interlace,
            mirror: MirrorOptions::default(),
        })
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
            return Err(Refused.about(&record.name, why));
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
    pub(super) fn reassemble(&self, what: &Assemble) -> Result<Answer> {
        let _one = self.registry.one_change();
        let record = {
            let inner = self.registry.lock();
            let name = inner.records.resolved(&what.name);
            let Some(record) = inner.records.volume(name) else {
                return Err(NotFound.about(name, "there is no such volume"));
            };
            if inner.volumes.get(name).is_some_and(|v| v.volume.is_some()) {
                return Err(Refused.about(name, "is assembled"));
            }
            record.clone()
        };
        self.open_missing(&record);
        let keep = what.keep.as_deref().map(str::parse).transpose();
        let keep = keep.map_err(|_| UsedWrongly.because("that is no UUID"))?;
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
                let inner = self.registry.lock();
                let name = inner.records.resolved(name);
                let is_there = inner.devices.get(name).is_some_and(|d| d.endpoint.is_some());
                let device = inner.records.devices.get(name).filter(|_| !is_there);
                device.map(|d| (name.to_owned(), d.clone()))
            };
            if let Some((name, device)) = device {
                let opened = self.devices.open_device(&name, &device);
                self.registry.lock().devices.insert(name, opened);
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
