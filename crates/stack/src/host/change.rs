//! Policies, growing, scrubbing, and taking volumes apart.

use steadfast_block::BlockDevice;
use steadfast_volume::member::{read_label, wipe_label};
use steadfast_volume::ondisk::label::LayoutKind;
use steadfast_volume::{ReadPolicy, ResyncThrottle};

use super::registry::{of_volume, said};
use super::volumes::HostVolumes;
use super::{Device, Result};
use crate::protocol::RefusalKind::{NotFound, Refused};
use crate::protocol::{Answer, Destroy, Grow, Scrub, Set};
use crate::record::{Records, VolumeRecord};

impl HostVolumes {
    pub(super) fn set(&self, set: &Set) -> Result<Answer> {
        let _one = self.registry.one_change();
        let (name, mirror) = self.registry.mirror(&set.name)?;
        let read = set.read.as_deref();
        let policies = set.policies(mirror.policies())?;
        if let Some(read) = read {
            let first = read == "first";
            self.registry.change_record(&name, |record| record.reads_first = first)?;
        }
        said(&name, mirror.set_policies(policies))?;
        self.apply_first(&name)?;
        Ok(Answer::default())
    }

    /// `first` is the leg that was attached first, whatever its place in the labels: the policy is
    /// to prefer that.
    pub(super) fn apply_first(&self, name: &str) -> Result<()> {
        let Ok((_, mirror)) = self.registry.mirror(name) else { return Ok(()) };
        let first = {
            let inner = self.registry.lock();
            let record = inner.records.volume(name).filter(|r| r.reads_first);
            record.and_then(|r| r.components.first().cloned())
        };
        let Some(first) = first else { return Ok(()) };
        let legs = mirror.status().legs;
        let Some(leg) = legs.into_iter().find(|leg| leg.name == first) else { return Ok(()) };
        let wanted = ReadPolicy::Preferred(leg.slot);
        let now = mirror.policies();
        if now.read != wanted {
            let policies = steadfast_volume::Policies { read: wanted, ..now };
            said(name, mirror.set_policies(policies))?;
        }
        Ok(())
    }

    pub(super) fn grow(&self, grow: &Grow) -> Result<Answer> {
        let _one = self.registry.one_change();
        let (name, mirror) = self.registry.mirror(&grow.name)?;
        if let Some(user) = self.registry.lock().records.user_of(&name) {
            return Err(Refused.about(&name, format!("is a component of '{}'", user.name)));
        }
        let bytes = said(&name, mirror.grow(grow.size))?;
        Ok(Answer { bytes: Some(bytes), ..Answer::default() })
    }

    pub(super) fn scrub(&self, scrub: &Scrub) -> Result<Answer> {
        let (name, mirror) = self.registry.mirror(&scrub.name)?;
        // What legs lack is no difference: first they get it.
        said(&name, mirror.resync(ResyncThrottle::default()))?;
        let throttle = ResyncThrottle { bytes_per_second: scrub.rate, regions: None };
        let found = said(&name, mirror.scrub(scrub.repair, throttle))?;
        if !found.clean {
            tracing::error!("{name}: a scrub found {} blocks that differ", found.differing);
            if found.lost > 0 {
                let lost = found.lost;
                tracing::error!("{name}: of {lost} blocks no leg holds what was written");
            }
        }
        Ok(Answer { scrubbed: Some(found), ..Answer::default() })
    }

    pub(super) fn destroy(&self, destroy: &Destroy) -> Result<Answer> {
        let _one = self.registry.one_change();
        if destroy.recursive {
            self.check_all_under(&destroy.name)?;
        }
        self.destroy_one(&destroy.name, destroy)
    }

    /// Refuses to take volumes apart of which one inside is in use: the outer ones would be gone
    /// already.
    fn check_all_under(&self, name: &str) -> Result<()> {
        let inner = self.registry.lock();
        let mut names = vec![inner.records.resolved(name).to_owned()];
        while let Some(name) = names.pop() {
            if let Some(record) = inner.records.volume(&name) {
                inner.check_closed(&name)?;
                names.extend(record.uses().cloned());
            }
        }
        Ok(())
    }

    fn destroy_one(&self, name: &str, how: &Destroy) -> Result<Answer> {
        let (record, taken, _claim) = {
            let mut inner = self.registry.lock();
            let name = inner.records.resolved(name).to_owned();
            let Some(record) = inner.records.volume(&name).cloned() else {
                return Err(NotFound.about(&name, "there is no such volume"));
            };
            inner.check_unused(&name)?;
            // From here on nobody can open it; nor what it is made of, before that has no label.
            let claim = self.registry.claim(&inner, record.uses());
            (record, inner.volumes.remove(&name), claim)
        };
        let name = record.name.as_str();
        let is_mirror = record.kind == LayoutKind::Mirror;
        let keep = how.keep_data && is_mirror;
        let remembered = self.registry.remember(|records| {
            records.volumes.retain(|v| v.name != name);
            records.aliases.retain(|_, target| target != name);
            records.removed.insert(name.to_owned());
            records.forget_retired(name);
            if keep {
                records.retired.retain(|r| r.uuid != record.uuid);
                records.retired.push(record.clone());
            }
        });
        if let Err(e) = remembered {
            if let Some(taken) = taken {
                self.registry.lock().volumes.insert(name.to_owned(), taken);
            }
            return Err(e);
        }
        let mut notes = Vec::new();
        if let Some(volume) = taken.and_then(|t| t.volume)
            && let Err(e) = volume.close()
        {
            notes.push(of_volume(name, e).error);
        }
        if keep {
            notes.push(format!("{name}: its data stays on {}", list(&record)));
        } else {
            notes.extend(self.wipe(&record));
        }
        tracing::info!("{name}: was taken apart");
        if how.recursive {
            for component in record.uses() {
                if self.registry.lock().records.volume(component).is_some() {
                    notes.extend(self.destroy_one(component, how)?.notes);
                }
            }
        }
        Ok(Answer { notes, ..Answer::default() })
    }

    /// Takes the labels from components; says where that was not possible.
    fn wipe(&self, record: &VolumeRecord) -> Vec<String> {
        let mut notes = Vec::new();
        for component in record.uses() {
            let Ok(endpoint) = self.registry.endpoint(component) else {
                notes.push(format!("{component}: was not there, and still has its label"));
                continue;
            };
            let device: Device = endpoint as Device;
            let is_ours = match read_label(&device) {
                Ok(Some(found)) => {
                    let uuid = found.label.volume.to_string();
                    record.uuid.as_ref().is_none_or(|known| *known == uuid)
                }
                Ok(None) => false,
                // Damaged, or of another version: nothing of it is of use.
                Err(_) => !device.info().read_only,
            };
            if is_ours && let Err(e) = wipe_label(&device) {
                notes.push(format!("{component}: keeps its label: {e}"));
            }
        }
        notes
    }
}

fn list(record: &VolumeRecord) -> String {
    record.uses().map(String::as_str).collect::<Vec<_>>().join(", ")
}

impl Records {
    /// Something is used otherwise, or gone: it does not hold the data of a retired mirror any
    /// more.
    pub(crate) fn forget_retired(&mut self, name: &str) {
        for retired in &mut self.retired {
            if retired.uses().any(|n| n == name) {
                retired.forget(name);
                retired.lost_a_leg = true;
            }
        }
        self.retired.retain(|r| r.uses().next().is_some());
    }
}
