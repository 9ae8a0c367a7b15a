//! Creating volumes, and retired mirrors that are used again.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_setup::NewVolume;
use steadfast_volume::member::check_new;
use steadfast_volume::ondisk::label::LayoutKind;
use steadfast_volume::{AssembleOptions, DEPTH_MAX, NewLeg, Policies, ReadPolicy};

use super::claim::ClaimedComponent;
use super::registry::{failed, said};
use super::volumes::HostVolumes;
use super::{Device, Result};
use crate::endpoint::Endpoint;
use crate::protocol::RefusalKind::{Failed, Refused, UsedWrongly};
use crate::protocol::{Answer, Create};
use crate::record::VolumeRecord;

/// Bytes at the start of a member that are nobody's: a superblock that is left there would be taken
/// for a file system's.
const START: usize = 4096;

impl HostVolumes {
    pub(super) fn create(&self, create: &Create) -> Result<Answer> {
        let _one = self.registry.one_change();
        self.registry.check_new_name(&create.name)?;
        let create = &self.with_own_names(create)?;
        let policies = create.policies()?;
        if !create.force
            && create.kind == LayoutKind::Mirror
            && let Some(taken) = self.take_up(create, policies)?
        {
            return Ok(taken);
        }
        let endpoints = self.components(create)?;
        let record = record_of(create);
        let new = new_volume(create, &endpoints, policies);
        said(&create.name, new.look())?;
        if create.dry_run {
            return Ok(Answer::default());
        }
        let before = self.registry.remember(|records| {
            record.uses().for_each(|name| records.forget_retired(name));
            records.volumes.push(record.clone());
            records.removed.remove(&create.name);
        })?;
        let forgotten = endpoints.iter().try_for_each(|e| self.forget_signatures(e, create.force));
        let made = forgotten.and_then(|()| said(&create.name, new.make()));
        let made = made.and_then(|volume| {
            endpoints.iter().try_for_each(|e| self.forget_occupant(e)).map(|()| volume)
        });
        let volume = made.inspect_err(|_| self.registry.forget(before))?;
        let bytes = volume.device.info().size;
        let uuid = volume.uuid.to_string();
        // OK to go on: without it the volume is found by its name.
        let noted = self.registry.change_record(&create.name, |record| record.uuid = Some(uuid));
        if let Err(e) = noted {
            tracing::warn!("{e}");
        }
        self.keep(&record, Ok(volume));
        self.apply_first(&create.name)?;
        tracing::info!("{}: a {} of {bytes} bytes was made", create.name, create.kind.name());
        Ok(Answer { bytes: Some(bytes), ..Answer::default() })
    }

    /// The request with the components' own names in place of aliases.
    fn with_own_names(&self, create: &Create) -> Result<Create> {
        let inner = self.registry.lock();
        let own = |names: &Vec<String>| -> Vec<String> {
            names.iter().map(|n| inner.records.resolved(n).to_owned()).collect()
        };
        let own = Create {
            components: own(&create.components),
            volatile: own(&create.volatile),
            partial: own(&create.partial),
            ..create.clone()
        };
        let mut seen: Vec<&String> = Vec::new();
        for name in &own.components {
            if seen.contains(&name) {
                return Err(UsedWrongly.about(name, "is given twice"));
            }
            seen.push(name);
        }
        if seen.iter().any(|name| inner.records.levels(name) >= DEPTH_MAX) {
            let what = format!("would be volumes of volumes in more than {DEPTH_MAX} levels");
            return Err(Refused.about(&own.name, what));
        }
        if own.components.is_empty() {
            return Err(UsedWrongly.about(&own.name, "a volume has at least one component"));
        }
        for (names, what) in [(&own.volatile, "volatile"), (&own.partial, "partial")] {
            if let Some(name) = names.iter().find(|name| !seen.contains(name)) {
                let what = format!("is said to be {what}, and is no component");
                return Err(UsedWrongly.about(name, what));
            }
        }
        if own.kind != LayoutKind::Mirror && !own.partial.is_empty() {
            let what = format!("a {} has no partial legs", own.kind.name());
            return Err(UsedWrongly.about(&own.name, what));
        }
        if own.kind != LayoutKind::Mirror && !own.volatile.is_empty() {
            let what = format!(
                "a {} has no volatile legs: say it of the device, or where it is a leg of a mirror",
                own.kind.name()
            );
            return Err(UsedWrongly.about(&own.name, what));
        }
        Ok(own)
    }

    /// The components of a new volume, all of which can be used.
    fn components(&self, create: &Create) -> Result<Vec<ClaimedComponent<'_>>> {
        let endpoints = create.components.iter().map(|name| self.new_component(name, create.force));
        endpoints.collect()
    }

    /// Claims a future component: it is not in use, and holds nothing that must not be overwritten.
    /// It cannot be opened for writing until it is a component or released.
    pub(super) fn new_component(&self, name: &str, force: bool) -> Result<ClaimedComponent<'_>> {
        let component = {
            let inner = self.registry.lock();
            let endpoint = inner.endpoint(name)?;
            inner.check_unused(endpoint.name())?;
            let kept = inner.records.retired.iter().find(|r| r.uses().any(|n| n == name));
            if let Some(kept) = kept.filter(|_| !force) {
                let what = format!(
                    "holds data of the mirror '{}', which was taken apart: make that mirror again, \
                     or overwrite it by force",
                    kept.name
                );
                return Err(Refused.about(name, what));
            }
            let claim = self.registry.claim(&inner, [&endpoint.name().to_owned()]);
            ClaimedComponent::new(endpoint, claim)
        };
        let device = Arc::clone(&component) as Device;
        said(name, check_new(&device, force))?;
        match (self.occupant)(&device) {
            Some(what) if !force => {
                let what =
                    format!("holds {what}; --force makes it a member, and what it holds is lost");
                Err(Refused.about(name, what))
            }
            _ => Ok(component),
        }
    }

    /// Wipes the signatures of other formats on a device that is overwritten by force. Before it
    /// becomes a member: the same bytes may be data then.
    pub(super) fn forget_signatures(&self, endpoint: &Arc<Endpoint>, force: bool) -> Result<()> {
        if !force {
            return Ok(());
        }
        let device: Device = Arc::clone(endpoint) as Device;
        (self.forget)(&device).map_err(|what| Failed.about(endpoint.name(), what))
    }

    /// Takes a superblock away that is before the label of a new member.
    pub(super) fn forget_occupant(&self, endpoint: &Arc<Endpoint>) -> Result<()> {
        let device: Device = Arc::clone(endpoint) as Device;
        if (self.occupant)(&device).is_some() {
            let zeros = Bytes::from(vec![0; START]);
            device.write_fua(0, zeros.into()).map_err(|e| failed(endpoint.name(), e))?;
        }
        Ok(())
    }

    /// A mirror of legs of a retired one is that one again: all its legs are in use at once, so the
    /// data is as safe as it was. `None`: none of the components is a leg of one.
    fn take_up(&self, create: &Create, policies: Policies) -> Result<Option<Answer>> {
        let retired = {
            let inner = self.registry.lock();
            let of = |r: &&VolumeRecord| r.uses().any(|n| create.components.contains(n));
            inner.records.retired.iter().find(of).cloned()
        };
        let Some(retired) = retired else { return Ok(None) };
        let (ours, new): (Vec<String>, Vec<String>) =
            create.components.iter().cloned().partition(|c| retired.uses().any(|n| n == c));
        if let Some(new) = new.first() {
            let what = format!(
                "is no leg of '{}', of which the others hold the data: make the mirror of those, \
                 and add this one then",
                retired.name
            );
            return Err(Refused.about(new, what));
        }
        let _claim = {
            let inner = self.registry.lock();
            retired.uses().try_for_each(|name| inner.check_unused(name))?;
            self.registry.claim(&inner, retired.uses())
        };
        let mut record = VolumeRecord {
            name: create.name.clone(),
            kept: retired.uses().filter(|n| !ours.contains(n)).cloned().collect(),
            spares: Vec::new(),
            components: ours,
            reads_first: policies.read == ReadPolicy::First,
            lost_a_leg: false,
            ..retired.clone()
        };
        record.volatile.extend(create.volatile.iter().cloned());
        if create.dry_run {
            return Ok(Some(Answer::default()));
        }
        // Without the leg this once: the labels say then that it is gone.
        let options =
            AssembleOptions { degraded: retired.lost_a_leg, ..AssembleOptions::default() };
        let volume = self.assemble(&record, &options)?;
        let has_checksums = volume.mirror.as_ref().is_some_and(|m| m.status().checksums);
        if create.checksums && !has_checksums {
            let what = "is a mirror that was made without checksums, and keeps none";
            return Err(Refused.about(&retired.name, what));
        }
        let before = self.registry.remember(|records| {
            records.retired.retain(|r| r.uuid != retired.uuid);
            records.volumes.push(record.clone());
            records.removed.remove(&create.name);
        })?;
        if let Some(mirror) = &volume.mirror
            && let Err(e) = mirror.set_policies(policies)
        {
            self.registry.forget(before);
            return said(&create.name, Err(e));
        }
        let bytes = volume.device.info().size;
        self.keep(&record, Ok(volume));
        self.apply_first(&record.name)?;
        self.start_resync(&record.name, None);
        let mut notes = vec![format!(
            "{}: has the data of '{}', which was taken apart",
            record.name, retired.name
        )];
        if !record.kept.is_empty() {
            notes.push(format!(
                "{}: {} keep their copies up to date, and copy nothing when they are added",
                record.name,
                record.kept.join(", ")
            ));
        }
        for note in &notes {
            tracing::info!("{note}");
        }
        Ok(Some(Answer { bytes: Some(bytes), notes, ..Answer::default() }))
    }
}

/// What is to be made of these components.
fn new_volume<'c>(
    create: &'c Create,
    components: &[ClaimedComponent<'_>],
    policies: Policies,
) -> NewVolume<'c> {
    let member = |component: &ClaimedComponent<'_>| NewLeg {
        device: Arc::clone(component) as Device,
        volatile: create.volatile.iter().any(|name| name == component.name()),
        partial: create.partial.iter().any(|name| name == component.name()),
        force: create.force,
    };
    create.new_volume(components.iter().map(member).collect(), policies)
}

/// The record of a new volume.
pub(super) fn record_of(create: &Create) -> VolumeRecord {
    VolumeRecord {
        name: create.name.clone(),
        kind: create.kind,
        components: create.components.clone(),
        volatile: create.volatile.clone(),
        interlace: match create.kind {
            LayoutKind::Stripe => Some(create.interlace.unwrap_or(64 << 10)),
            _ => None,
        },
        reads_first: create.read.as_deref() == Some("first"),
        ..VolumeRecord::default()
    }
}
