//! The status of the host.

use steadfast_block::BlockDevice;
use steadfast_runtime::now;
use steadfast_volume::{
    LegState, LegStatus as VolumeLeg, Mirror, MirrorStatus as MirrorNow, ReadPolicy, Volume,
};

use super::Host;
use super::registry::{HostState, VolumeSlot};
use crate::protocol::{
    Alias, Counters, DeviceKind, DeviceStatus, LegStatus, MirrorStatus, RegionCounts,
    RetiredMirror, StackCounters, StackStatus, VolumeStatus,
};
use crate::record::VolumeRecord;

impl Host {
    /// Everything there is.
    pub fn status(&self) -> StackStatus {
        let inner = self.registry.lock();
        let up = now().since(self.started);
        let mut status = StackStatus {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            up_ns: u64::try_from(up.as_nanos()).unwrap_or(u64::MAX),
            config: self.config.clone(),
            tree: inner.tree.clone(),
            devices: inner.devices.keys().map(|name| inner.device_status(name)).collect(),
            volumes: inner.records.volumes.iter().map(|v| inner.volume_status(v)).collect(),
            aliases: Vec::new(),
            retired: Vec::new(),
            mounts: inner.mount_status(),
        };
        for (name, target) in &inner.records.aliases {
            status.aliases.push(Alias { name: name.clone(), target: target.clone() });
        }
        for retired in &inner.records.retired {
            status.retired.push(RetiredMirror {
                name: retired.name.clone(),
                uuid: retired.uuid.clone().unwrap_or_default(),
                components: retired.uses().cloned().collect(),
            });
        }
        // Of a volume that is no member there is no label to be read.
        let mut endpoints = inner.endpoints();
        let records = &inner.records;
        endpoints
            .retain(|e| records.volume(e.name()).is_none() || records.user_of(e.name()).is_some());
        drop(inner);
        // Labels are read without the lock: a device may take its time.
        let known = self.labels.read(&endpoints);
        for endpoint in endpoints {
            let name = endpoint.name();
            let Some(known) = known.get(&endpoint.number()) else { continue };
            let (start, blocks) = known.layout;
            let silent = || known.silent().map(|time| format!("has not answered for {time:.1?}"));
            for device in status.devices.iter_mut().filter(|d| d.name == name) {
                (device.data_start, device.map_blocks) = (start, blocks);
                device.problem = device.problem.take().or_else(silent);
            }
            for volume in status.volumes.iter_mut().filter(|v| v.name == name) {
                (volume.data_start, volume.map_blocks) = (start, blocks);
            }
        }
        status
    }

    /// What went through everything.
    pub fn counters(&self) -> StackCounters {
        let endpoints = self.registry.lock().endpoints();
        let of = endpoints.iter().map(|endpoint| {
            let c = endpoint.counters();
            let ns = |time: std::time::Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            Counters {
                name: endpoint.name().to_owned(),
                reads: c.read.done,
                writes: c.write.done,
                read_bytes: c.read.bytes,
                written_bytes: c.write.bytes,
                flushes: c.flush.done,
                errors: c.read.failed + c.write.failed + c.flush.failed + c.discard.failed,
                in_flight: c.in_flight,
                run_ns: ns(c.busy),
                run_len_ns: ns(c.weighted),
            }
        });
        let of = of.collect();
        let now_ns = u64::try_from(now().since(self.started).as_nanos()).unwrap_or(u64::MAX);
        StackCounters { now_ns, of }
    }
}

impl HostState {
    fn kernel_name(&self, name: &str) -> Option<String> {
        self.kernel_device(name).map(|device| device.name().to_owned())
    }

    fn device_status(&self, name: &str) -> DeviceStatus {
        let opened = self.devices.get(name);
        let endpoint = opened.and_then(|d| d.endpoint.as_ref());
        let record = self.records.devices.get(name);
        DeviceStatus {
            name: name.to_owned(),
            kind: match record {
                Some(_) => DeviceKind::File,
                None => DeviceKind::RamDisk,
            },
            path: record.map(|r| r.path.display().to_string()),
            bytes: endpoint.map_or(0, |e| e.info().size),
            volatile: endpoint.map_or(record.is_none_or(|r| r.volatile), |e| e.is_volatile()),
            problem: opened.and_then(|d| d.problem.clone()),
            used_by: self.records.user_of(name).map(|v| v.name.clone()),
            data_start: None,
            map_blocks: None,
            open: endpoint.map_or(0, |e| e.open_count()),
            kernel: self.kernel_name(name),
        }
    }

    fn volume_status(&self, record: &VolumeRecord) -> VolumeStatus {
        let nothing = VolumeSlot::default();
        let assembled = self.volumes.get(&record.name).unwrap_or(&nothing);
        let endpoint = assembled.endpoint.as_ref();
        let mirror = assembled.volume.as_ref().and_then(|v| v.mirror.as_ref());
        VolumeStatus {
            name: record.name.clone(),
            uuid: record.uuid.clone().unwrap_or_default(),
            kind: record.kind,
            bytes: endpoint.map_or(0, |e| e.info().size),
            components: record.components.clone(),
            interlace: record.interlace,
            volatile: endpoint.is_some_and(|e| e.is_volatile()),
            problem: assembled.problem.clone(),
            used_by: self.records.user_of(&record.name).map(|v| v.name.clone()),
            data_start: None,
            map_blocks: None,
            open: endpoint.map_or(0, |e| e.open_count()),
            kernel: self.kernel_name(&record.name),
            degraded: mirror.map_or_else(Vec::new, |m| self.lacking(&m.status(), record)),
            mirror: mirror.map(|m| self.mirror_status(m, record, assembled)),
        }
    }

    /// What a mirror lacks of the redundancy that it should have, each with what to do.
    pub(super) fn lacking(&self, status: &MirrorNow, record: &VolumeRecord) -> Vec<String> {
        let mut lacking: Vec<String> = status.failed.iter().cloned().collect();
        for leg in status.legs.iter().filter(|l| !l.volatile && l.state != LegState::Okay) {
            let (slot, name, state) = (leg.slot, &leg.name, leg.state.name());
            let bytes = match leg.lacking_bytes {
                0 => String::new(),
                bytes => format!(", it lacks {bytes} bytes"),
            };
            let way_out = match leg.state {
                LegState::Okay | LegState::Resyncing => "",
                LegState::Offline => ": take it online again",
                LegState::NeedsMaintenance | LegState::LastErred | LegState::Unavailable => {
                    ": repair it and take it online, or replace it"
                }
            };
            lacking.push(format!("leg {slot} ({name}) is {state}{bytes}{way_out}"));
        }
        lacking.extend(self.absent(status, record).map(|component| {
            let (name, of) = (&record.name, "its labels do not know it");
            format!(
                "component '{component}' is no leg, {of}: make it one (steadfast volume add {name} \
                 --leg {component}), or forget it (steadfast volume remove {name} --leg \
                 {component})"
            )
        }));
        lacking
    }

    /// Durable components of a mirror that are none of its legs. A leg that is away may be known
    /// to the labels by another name: there are no more than the mirror lacks.
    pub(super) fn absent<'r>(
        &'r self,
        status: &'r MirrorNow,
        record: &'r VolumeRecord,
    ) -> impl Iterator<Item = &'r String> {
        let is_leg = |name: &String| status.legs.iter().any(|leg| leg.name == *name);
        let is_volatile = |name: &String| {
            record.volatile.contains(name)
                || self
                    .devices
                    .get(name)
                    .and_then(|d| d.endpoint.as_ref())
                    .is_some_and(|e| e.is_volatile())
        };
        let lacks = record.uses().count().saturating_sub(status.legs.len() + status.spares.len());
        let absent = record.components.iter().filter(move |n| !is_leg(n) && !is_volatile(n));
        absent.take(lacks)
    }
}

impl HostState {
    fn mirror_status(
        &self,
        mirror: &Mirror,
        record: &VolumeRecord,
        assembled: &VolumeSlot,
    ) -> MirrorStatus {
        let status = mirror.status();
        let resync = assembled.resync.progress(&status);
        let whole = status.is_whole() && self.absent(&status, record).next().is_none();
        MirrorStatus { resync, whole, ..mirror_status(status, record) }
    }
}

impl VolumeStatus {
    /// The status of a volume that no host keeps.
    pub fn of(volume: &Volume) -> VolumeStatus {
        let mirror = volume.mirror.as_ref().map(Mirror::status);
        VolumeStatus {
            name: volume.name.clone(),
            uuid: volume.uuid.to_string(),
            kind: volume.kind,
            bytes: volume.device.info().size,
            components: volume.members.clone(),
            mirror: mirror.map(|status| mirror_status(status, &VolumeRecord::default())),
            ..VolumeStatus::default()
        }
    }
}

fn mirror_status(status: MirrorNow, record: &VolumeRecord) -> MirrorStatus {
    let [unwritten, filling, dirty, clean] = status.regions;
    let is_preferred = matches!(status.policies.read, ReadPolicy::Preferred(_));
    let read = match record.reads_first && is_preferred {
        true => "first".to_owned(),
        false => status.policies.read.name(),
    };
    let whole = status.is_whole();
    let mut legs: Vec<LegStatus> =
        status.legs.into_iter().map(|leg| leg_status(leg, record)).collect();
    let attached_at = |leg: &LegStatus| record.components.iter().position(|n| *n == leg.component);
    legs.sort_by_key(|leg| (attached_at(leg).unwrap_or(usize::MAX), leg.slot));
    MirrorStatus {
        legs,
        spares: status.spares,
        read,
        write: status.policies.write.name().to_string(),
        pass: status.policies.pass.number(),
        region_bytes: status.region_bytes,
        checksums: status.checksums,
        unchecked_bytes: status.unchecked_bytes,
        regions: RegionCounts { unwritten, filling, dirty, clean },
        generation: status.generation,
        resync: None,
        whole,
        failed: status.failed,
    }
}

fn leg_status(leg: VolumeLeg, record: &VolumeRecord) -> LegStatus {
    LegStatus {
        slot: leg.slot,
        uuid: leg.uuid.to_string(),
        attached: !record.kept.contains(&leg.name),
        component: leg.name,
        state: leg.state.name().to_owned(),
        volatile: leg.volatile,
        lacking_bytes: leg.lacking_bytes,
        held_bytes: leg.held_bytes,
        room: leg.room,
        error: leg.error,
        counters: leg.counters,
        read_latency_ns: leg.read_latency_ns,
    }
}
