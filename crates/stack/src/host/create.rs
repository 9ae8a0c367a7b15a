//! Creating volumes, and retired mirrors that are used again.

use std::sync::Arc;

use bytes::Bytes;
use steadfast_block::BlockDevice;
use steadfast_volume::member::check_new;
use steadfast_volume::ondisk::label::LayoutKind as LabelKind;
use steadfast_volume::{
    AssembleOptions, MirrorOptions, NewLeg, Pass, Policies, ReadPolicy, Volume, WritePolicy,
    check_mirror, create_mirror,
};

use super::claim::ClaimedComponent;
use super::{Device, Host, Result, failed, said};
use crate::endpoint::Endpoint;
use crate::protocol::{Answer, Create, Refusal, RefusalKind, VolumeKind};
use crate::record::VolumeRecord;

/// Bytes at the start of a member that are nobody's: a superblock that is left there would be taken
/// for a file system's.
const START: usize = 4096;

impl Host {
    pub(super) fn create(self: &Arc<Self>, create: &Create) -> Result<Answer> {
        let _one = self.one_change();
        self.check_volume_name(&create.name)?;
        let create = &self.with_own_names(create)?;
        let policies = policies(create, Policies::default())?;
        if !create.force
            && create.kind == VolumeKind::Mirror
            && let Some(taken) = self.take_up(create, policies)?
        {
            return Ok(taken);
        }
        let endpoints = self.components(create)?;
        let record = record_of(create);
        self.check_making(create, &record, &endpoints, policies)?;
        if create.dry_run {
            return Ok(Answer::default());
        }
        let before = self.remember(|records| {
            record.uses().for_each(|name| records.forget_retired(name));
            records.volumes.push(record.clone());
            records.removed.remove(&create.name);
        })?;
        let forgotten = endpoints.iter().try_for_each(|e| self.forget_signatures(e, create.force));
        let made = forgotten.and_then(|()| match create.kind {
            VolumeKind::Mirror => self.make_mirror(create, &endpoints, policies),
            _ => self.make_rows(&record, create.force),
        });
        let made = made.and_then(|volume| {
            endpoints.iter().try_for_each(|e| self.forget_occupant(e)).map(|()| volume)
        });
        let volume = match made {
            Ok(volume) => volume,
            Err(e) => {
                self.forget(before);
                return Err(e);
            }
        };
        let bytes = volume.device.info().size;
        let uuid = volume.uuid.to_string();
        // OK to go on: without it the volume is found by its name.
        let noted = self.remember(|records| {
            if let Some(record) = records.volume_mut(&create.name) {
                record.uuid = Some(uuid);
            }
        });
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
        let inner = self.lock();
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
                return Err(Refusal::about(RefusalKind::UsedWrongly, name, "is given twice"));
            }
            seen.push(name);
        }
        if own.components.is_empty() {
            let what = "a volume has at least one component";
            return Err(Refusal::about(RefusalKind::UsedWrongly, &own.name, what));
        }
        for (names, what) in [(&own.volatile, "volatile"), (&own.partial, "partial")] {
            if let Some(name) = names.iter().find(|name| !seen.contains(name)) {
                let what = format!("is said to be {what}, and is no component");
                return Err(Refusal::about(RefusalKind::UsedWrongly, name, what));
            }
        }
        if own.kind != VolumeKind::Mirror && !own.partial.is_empty() {
            let what = format!("a {} has no partial legs", own.kind.name());
            return Err(Refusal::about(RefusalKind::UsedWrongly, &own.name, what));
        }
        if own.kind != VolumeKind::Mirror && !own.volatile.is_empty() {
            let what = format!(
                "a {} has no volatile legs: say it of the device, or where it is a leg of a mirror",
                own.kind.name()
            );
            return Err(Refusal::about(RefusalKind::UsedWrongly, &own.name, what));
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
            let inner = self.lock();
            let endpoint = inner.endpoint(name)?;
            inner.check_unused(endpoint.name())?;
            let kept = inner.records.retired.iter().find(|r| r.uses().any(|n| n == name));
            if let Some(kept) = kept.filter(|_| !force) {
                let what = format!(
                    "holds data of the mirror '{}', which was taken apart: make that mirror again, \
                     or overwrite it by force",
                    kept.name
                );
                return Err(Refusal::about(RefusalKind::Refused, name, what));
            }
            let claim = self.claim(&inner, [&endpoint.name().to_owned()]);
            ClaimedComponent::new(endpoint, claim)
        };
        let device = Arc::clone(&component) as Device;
        said(name, check_new(&device, force))?;
        match (self.options.occupant)(&device) {
            Some(what) if !force => {
                let what = format!("holds {what}; force makes it a member, and that is lost");
                Err(Refusal::about(RefusalKind::Refused, name, what))
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
        (self.options.forget)(&device)
            .map_err(|what| Refusal::about(RefusalKind::Failed, endpoint.name(), what))
    }

    /// Takes a superblock away that is before the label of a new member.
    pub(super) fn forget_occupant(&self, endpoint: &Arc<Endpoint>) -> Result<()> {
        let device: Device = Arc::clone(endpoint) as Device;
        if (self.options.occupant)(&device).is_some() {
            let zeros = Bytes::from(vec![0; START]);
            device.write_fua(0, zeros.into()).map_err(|e| failed(endpoint.name(), e))?;
        }
        Ok(())
    }

    /// Refuses what cannot be made, before anything is written.
    fn check_making(
        &self,
        create: &Create,
        record: &VolumeRecord,
        endpoints: &[ClaimedComponent<'_>],
        policies: Policies,
    ) -> Result<()> {
        let name = &create.name;
        if create.kind == VolumeKind::Mirror {
            let (legs, options) = mirror_of(create, endpoints, policies);
            return said(name, check_mirror(name, &legs, &options));
        }
        self.planned(record, create.force).map(drop)
    }

    fn make_mirror(
        &self,
        create: &Create,
        endpoints: &[ClaimedComponent<'_>],
        policies: Policies,
    ) -> Result<Volume> {
        let (legs, options) = mirror_of(create, endpoints, policies);
        let mirror = said(&create.name, create_mirror(&create.name, &legs, &options))?;
        Ok(Volume {
            uuid: mirror.uuid(),
            name: create.name.clone(),
            kind: LabelKind::Mirror,
            device: Arc::new(mirror.clone()),
            mirror: Some(mirror),
            members: create.components.clone(),
            member_of: None,
        })
    }

    /// A mirror of legs of a retired one is that one again: all its legs are in use at once, so the
    /// data is as safe as it was. `None`: none of the components is a leg of one.
    fn take_up(self: &Arc<Self>, create: &Create, policies: Policies) -> Result<Option<Answer>> {
        let retired = {
            let inner = self.lock();
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
            return Err(Refusal::about(RefusalKind::Refused, new, what));
        }
        let _claim = {
            let inner = self.lock();
            retired.uses().try_for_each(|name| inner.check_unused(name))?;
            self.claim(&inner, retired.uses())
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
            return Err(Refusal::about(RefusalKind::Refused, &retired.name, what));
        }
        let before = self.remember(|records| {
            records.retired.retain(|r| r.uuid != retired.uuid);
            records.volumes.push(record.clone());
            records.removed.remove(&create.name);
        })?;
        if let Some(mirror) = &volume.mirror
            && let Err(e) = mirror.set_policies(policies)
        {
            self.forget(before);
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

/// The legs of a new mirror, and how it is made.
fn mirror_of(
    create: &Create,
    endpoints: &[ClaimedComponent<'_>],
    policies: Policies,
) -> (Vec<NewLeg>, MirrorOptions) {
    let leg = |endpoint: &ClaimedComponent<'_>| NewLeg {
        device: Arc::clone(endpoint) as Device,
        volatile: create.volatile.iter().any(|name| name == endpoint.name()),
        partial: create.partial.iter().any(|name| name == endpoint.name()),
        force: create.force,
    };
    let options = MirrorOptions {
        size: create.size,
        region_bytes: create.region_bytes,
        policies,
        checksums: create.checksums,
        ..MirrorOptions::default()
    };
    (endpoints.iter().map(leg).collect(), options)
}

/// The record of a new volume.
pub(super) fn record_of(create: &Create) -> VolumeRecord {
    VolumeRecord {
        name: create.name.clone(),
        kind: create.kind,
        components: create.components.clone(),
        volatile: create.volatile.clone(),
        interlace: match create.kind {
            VolumeKind::Stripe => Some(create.interlace.unwrap_or(64 << 10)),
            _ => None,
        },
        reads_first: create.read.as_deref() == Some("first"),
        ..VolumeRecord::default()
    }
}

fn policies(create: &Create, now: Policies) -> Result<Policies> {
    let given = (create.read.as_deref(), create.write.as_deref(), create.pass);
    if create.kind != VolumeKind::Mirror && given != (None, None, None) {
        let what = format!("is a {}: policies are a mirror's", create.kind.name());
        return Err(Refusal::about(RefusalKind::UsedWrongly, &create.name, what));
    }
    if create.kind != VolumeKind::Mirror && create.checksums {
        let what = format!("is a {}: checksums are a mirror's", create.kind.name());
        return Err(Refusal::about(RefusalKind::UsedWrongly, &create.name, what));
    }
    changed_policies(now, create.read.as_deref(), create.write.as_deref(), create.pass)
}

/// The policies that were asked for, the others as they are.
pub(super) fn changed_policies(
    now: Policies,
    read: Option<&str>,
    write: Option<&str>,
    pass: Option<u8>,
) -> Result<Policies> {
    let no = |what: String| Refusal::new(RefusalKind::UsedWrongly, what);
    let mut policies = now;
    if let Some(read) = read {
        policies.read = ReadPolicy::named(read)
            .ok_or_else(|| no(format!("'{read}': there is no such read policy")))?;
    }
    if let Some(write) = write {
        policies.write = WritePolicy::named(write)
            .ok_or_else(|| no(format!("'{write}': there is no such write policy")))?;
    }
    if let Some(pass) = pass {
        policies.pass = Pass::new(pass).ok_or_else(|| no(format!("{pass}: a pass is 0 to 9")))?;
    }
    Ok(policies)
}
