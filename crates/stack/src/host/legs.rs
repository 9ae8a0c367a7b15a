//! Changes of legs while the volume is in use.

use std::sync::Arc;

use steadfast_volume::{LegState, Mirror, NewLeg};

use super::devices::open_path;
use super::registry::said;
use super::volumes::HostVolumes;
use super::{Device, Result};
use crate::protocol::RefusalKind::{Failed, NotFound};
use crate::protocol::{Answer, Leg, NewComponent, Replace};
use crate::record::{Records, VolumeRecord};

/// A leg that was named.
struct LegRef {
    /// The mirror.
    name: String,
    mirror: Mirror,
    slot: usize,
    /// Name of its component.
    component: String,
    state: LegState,
    volatile: bool,
    /// It was named by the device under a concat of one component.
    device: Option<String>,
}

impl LegRef {
    /// Whether the mirror would refuse it: asked before anything is written, since what is
    /// overwritten by force would be gone.
    fn check_put(&self, new: &NewLeg, lose_data: bool) -> Result<()> {
        said(&self.name, self.mirror.check_replace(self.slot, Some(new), lose_data))
    }

    fn put(&self, new: &NewLeg, lose_data: bool) -> Result<Option<u64>> {
        let (name, slot) = (&self.name, self.slot);
        if lose_data {
            return said(name, self.mirror.replace_and_lose(slot, Some(new))).map(Some);
        }
        said(name, self.mirror.replace(slot, Some(new))).map(|()| None)
    }
}

/// A volume's record without a component.
fn forgetting<'n>(name: &'n str, component: &'n str) -> impl FnOnce(&mut Records) + 'n {
    move |records| {
        if let Some(record) = records.volume_mut(name) {
            record.forget(component);
        }
    }
}

impl HostVolumes {
    fn leg(&self, name: &str, leg: &str) -> Result<LegRef> {
        let (name, mirror) = self.registry.mirror(name)?;
        let records = self.registry.lock().records.clone();
        let leg = records.resolved(leg);
        let legs = mirror.status().legs;
        let by_name = |wanted: &str| legs.iter().find(|l| l.name == wanted);
        let by_place = || legs.iter().find(|l| leg.parse() == Ok(l.slot));
        let under = |l: &&steadfast_volume::LegStatus| {
            records.volume(&l.name).is_some_and(|v| v.components == [leg])
        };
        let named = by_name(leg).or_else(by_place);
        let device = named.is_none().then(|| leg.to_owned());
        let Some(found) = named.or_else(|| legs.iter().find(under)) else {
            let names: Vec<&str> = legs.iter().map(|l| l.name.as_str()).collect();
            let what = format!("is no leg of '{name}', which has {}", names.join(", "));
            return Err(NotFound.about(leg, what));
        };
        Ok(LegRef {
            slot: found.slot,
            component: found.name.clone(),
            state: found.state,
            volatile: found.volatile,
            name,
            mirror,
            device,
        })
    }

    /// Forgets a component that the labels do not know: it was removed while no host ran. `None`:
    /// there is no such component.
    fn forget_absent(
        &self,
        name: &str,
        mirror: &Mirror,
        component: &str,
    ) -> Result<Option<Records>> {
        let is_absent = {
            let (inner, status) = (self.registry.lock(), mirror.status());
            let record = inner.records.volume(name);
            record.is_some_and(|r| inner.absent(&status, r).any(|absent| absent == component))
        };
        is_absent
            .then(|| self.registry.change_record(name, |record| record.forget(component)))
            .transpose()
    }

    pub(super) fn add(&self, new: &NewComponent) -> Result<Answer> {
        let _one = self.registry.one_change();
        let (name, mirror) = self.registry.mirror(&new.name)?;
        let component = self.registry.lock().records.resolved(&new.component).to_owned();
        let was_absent = self.forget_absent(&name, &mirror, &component)?;
        let added = self.add_component(new, &name, &mirror, component);
        if let (Some(before), true) = (was_absent, added.is_err() || new.dry_run) {
            self.registry.forget(before);
        }
        added
    }

    fn add_component(
        &self,
        new: &NewComponent,
        name: &str,
        mirror: &Mirror,
        component: String,
    ) -> Result<Answer> {
        let is_kept = self
            .registry
            .lock()
            .records
            .volume(name)
            .is_some_and(|record| record.kept.contains(&component));
        if is_kept && new.dry_run {
            return Ok(Answer::default());
        }
        if is_kept {
            self.registry.change_record(name, |record| {
                record.kept.retain(|n| *n != component);
                record.components.push(component.clone());
            })?;
            let slot = self.leg(name, &component)?.slot;
            self.start_resync(name, None);
            return Ok(Answer { slot: Some(slot), ..Answer::default() });
        }
        let endpoint = self.new_component(&component, new.force)?;
        let leg = NewLeg {
            device: Arc::clone(&endpoint) as Device,
            volatile: new.volatile,
            partial: new.partial,
            force: new.force,
        };
        // Before anything is written: what is overwritten by force would be gone.
        let would = match new.spare {
            true => mirror.check_add_spare(&leg),
            false => mirror.check_attach(&leg),
        };
        said(name, would)?;
        if new.dry_run {
            return Ok(Answer::default());
        }
        let before = self.registry.remember(|records| {
            records.forget_retired(&component);
            if let Some(record) = records.volume_mut(name) {
                let list = if new.spare { &mut record.spares } else { &mut record.components };
                list.push(component.clone());
            }
        })?;
        let added = self.forget_signatures(&endpoint, new.force).and_then(|()| {
            let added = match new.spare {
                true => mirror.add_spare(&leg).map(|()| None),
                false => mirror.attach(&leg).map(Some),
            };
            said(name, added)
        });
        let slot = added.inspect_err(|_| self.registry.forget(before))?;
        self.forget_occupant(&endpoint)?;
        tracing::info!("{name}: {component} was added");
        self.start_resync(name, None);
        Ok(Answer { slot, ..Answer::default() })
    }

    pub(super) fn remove(&self, leg: &Leg) -> Result<Answer> {
        let _one = self.registry.one_change();
        if let Some(done) = self.remove_spare(leg)? {
            return Ok(done);
        }
        let (name, mirror) = self.registry.mirror(&leg.name)?;
        let component = self.registry.lock().records.resolved(&leg.leg).to_owned();
        if self.forget_absent(&name, &mirror, &component)?.is_some() {
            tracing::info!("{name}: {component} is forgotten: it was no leg any more");
            return Ok(Answer::default());
        }
        let found = self.leg(&leg.name, &leg.leg)?;
        let (name, component) = (&found.name, &found.component);
        let lost =
            self.registry.remember_after(forgetting(name, component), || match leg.lose_data {
                false => said(name, found.mirror.detach(found.slot)).map(|()| None),
                true => said(name, found.mirror.detach_and_lose(found.slot)).map(Some),
            })?;
        self.apply_first(name)?;
        tracing::info!("{name}: {component} was removed");
        Ok(Answer { bytes: lost, ..Answer::default() })
    }

    /// Takes a spare back, if that is what was named.
    fn remove_spare(&self, leg: &Leg) -> Result<Option<Answer>> {
        let (name, mirror) = self.registry.mirror(&leg.name)?;
        let spare = self.registry.lock().records.resolved(&leg.leg).to_owned();
        if !mirror.status().spares.contains(&spare) {
            return Ok(None);
        }
        let wiped = self.registry.remember_after(forgetting(&name, &spare), || {
            said(&name, mirror.remove_spare(&spare))
        })?;
        tracing::info!("{name}: {spare} is no spare any more");
        let mut answer = Answer::default();
        if !wiped {
            let what = "could not be reached, and still has the spare's label; it is not trusted";
            answer.notes.push(format!("{spare}: {what}"));
        }
        Ok(Some(answer))
    }

    pub(super) fn offline(&self, leg: &Leg) -> Result<Answer> {
        let _one = self.registry.one_change();
        let found = self.leg(&leg.name, &leg.leg)?;
        said(&found.name, found.mirror.offline(found.slot))?;
        tracing::info!("{}: {} was taken offline", found.name, found.component);
        Ok(Answer::default())
    }

    pub(super) fn online(&self, leg: &Leg) -> Result<Answer> {
        let _one = self.registry.one_change();
        let found = self.leg(&leg.name, &leg.leg)?;
        self.reopen_if_away(&found)?;
        let device: Device = self.registry.endpoint(&found.component)?;
        said(&found.name, found.mirror.online(found.slot, Some(device)))?;
        tracing::info!("{}: {} is online", found.name, found.component);
        self.start_resync(&found.name, None);
        Ok(Answer::default())
    }

    pub(super) fn replace(&self, replace: &Replace) -> Result<Answer> {
        let _one = self.registry.one_change();
        let found = self.leg(&replace.name, &replace.leg)?;
        let resolved = |with: &String| self.registry.lock().records.resolved(with).to_owned();
        let with = replace.with.as_ref().map(resolved);
        let lost = match (&with, &found.device) {
            (None, _) => self.replace_by_itself(&found, replace)?,
            (Some(with), None) => self.replace_by_other(&found, with, replace)?,
            (Some(with), Some(device)) => {
                self.replace_under_concat(&found, device, with, replace)?
            }
        };
        self.apply_first(&found.name)?;
        self.start_resync(&found.name, None);
        Ok(Answer { slot: Some(found.slot), bytes: lost, ..Answer::default() })
    }

    fn replace_by_itself(&self, found: &LegRef, replace: &Replace) -> Result<Option<u64>> {
        self.reopen_if_away(found)?;
        let device: Device = self.registry.endpoint(&found.component)?;
        let volatile = (found.volatile || replace.volatile) && !replace.durable;
        let new = NewLeg { volatile, force: true, ..NewLeg::new(device) };
        let lost = found.put(&new, replace.lose_data)?;
        tracing::info!("{}: {} gets everything again", found.name, found.component);
        Ok(lost)
    }

    fn replace_by_other(
        &self,
        found: &LegRef,
        with: &str,
        replace: &Replace,
    ) -> Result<Option<u64>> {
        let endpoint = self.new_component(with, replace.force)?;
        let volatile = (found.volatile || replace.volatile) && !replace.durable;
        let device: Device = Arc::clone(&endpoint) as Device;
        let new = NewLeg { volatile, force: replace.force, ..NewLeg::new(device) };
        found.check_put(&new, replace.lose_data)?;
        // Both are named until the labels say which it is.
        let before =
            self.registry.change_record(&found.name, |record| record.kept.push(with.to_owned()))?;
        let lost = self
            .forget_signatures(&endpoint, replace.force)
            .and_then(|()| found.put(&new, replace.lose_data))
            .inspect_err(|_| self.registry.forget(before))?;
        let kept = self.registry.change_record(&found.name, |record| {
            record.kept.retain(|n| n != with);
            for names in [&mut record.components, &mut record.kept, &mut record.volatile] {
                for name in names.iter_mut().filter(|n| **n == found.component) {
                    *name = with.to_owned();
                }
            }
        });
        // Both are named in what is kept, and the labels say which it is.
        if let Err(e) = kept {
            tracing::error!("{}: {with} takes the place of {}: {e}", found.name, found.component);
        }
        self.forget_occupant(&endpoint)?;
        tracing::info!("{}: {with} takes the place of {}", found.name, found.component);
        Ok(lost)
    }

    /// A leg that is a concat of one device gets another device.
    fn replace_under_concat(
        &self,
        found: &LegRef,
        device: &str,
        with: &str,
        replace: &Replace,
    ) -> Result<Option<u64>> {
        let endpoint = self.new_component(with, replace.force)?;
        let (record, _old) = {
            let inner = self.registry.lock();
            inner.check_closed(&found.component)?;
            let record = inner.records.volume(&found.component).cloned().unwrap_or_default();
            // It is a component until its label is removed.
            (record, self.registry.claim(&inner, [&device.to_owned()]))
        };
        let record = VolumeRecord { uuid: None, components: vec![with.to_owned()], ..record };
        let volatile = (found.volatile || replace.volatile) && !replace.durable;
        let leg = |device| NewLeg { volatile, force: true, ..NewLeg::new(device) };
        let new = self.new_rows(&record, replace.force)?;
        found.check_put(&leg(said(&record.name, new.look())?), replace.lose_data)?;
        self.forget_signatures(&endpoint, replace.force)?;
        let volume = said(&record.name, new.make())?;
        let record = VolumeRecord { uuid: Some(volume.uuid.to_string()), ..record };
        let before = self.registry.change_record(&found.component, |now| *now = record.clone())?;
        let old = self.registry.lock().volumes.remove(&found.component);
        self.keep(&record, Ok(volume));
        let new = leg(self.registry.endpoint(&found.component)? as Device);
        match found.put(&new, replace.lose_data) {
            Ok(lost) => {
                self.forget_occupant(&endpoint)?;
                if let Ok(old) = self.registry.endpoint(device) {
                    // OK to ignore: it failed, most likely.
                    drop(steadfast_volume::member::wipe_label(&(old as Device)));
                }
                Ok(lost)
            }
            Err(e) => {
                self.registry.forget(before);
                if let Some(old) = old {
                    self.registry.lock().volumes.insert(found.component.clone(), old);
                }
                drop(steadfast_volume::member::wipe_label(&(Arc::clone(&endpoint) as Device)));
                Err(e)
            }
        }
    }

    /// Opens the devices of a leg anew that is out of use: a file that failed may be another one by
    /// now, and a failure of a flush is recorded for as long as it is open.
    fn reopen_if_away(&self, found: &LegRef) -> Result<()> {
        let in_use = [LegState::Okay, LegState::Resyncing, LegState::LastErred];
        if in_use.contains(&found.state) {
            return Ok(());
        }
        let mut names = vec![found.component.clone()];
        while let Some(name) = names.pop() {
            let (record, device) = {
                let inner = self.registry.lock();
                let volume = inner.records.volume(&name).cloned();
                names.extend(volume.iter().flat_map(|v| v.uses().cloned()));
                (volume, inner.records.devices.get(&name).cloned())
            };
            if record.is_some() {
                continue;
            }
            let Some(device) = device else { continue };
            let endpoint = self.registry.lock().devices.get(&name).and_then(|d| d.endpoint.clone());
            let Some(endpoint) = endpoint else {
                let opened = self.devices.open_device(&name, &device);
                self.registry.lock().devices.insert(name, opened);
                continue;
            };
            endpoint
                .reopen(|| open_path(&device.path))
                .map_err(|e| Failed.about(&name, format!("is not there: {e}")))?;
        }
        Ok(())
    }
}
