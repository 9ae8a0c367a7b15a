//! The volumes of a host, or of one command: what is done to them.

use std::sync::Arc;

use super::devices::HostDevices;
use super::registry::{Registry, of_volume};
use super::{Device, Result};
use crate::protocol::RefusalKind::UsedWrongly;
use crate::protocol::{Answer, Request};

/// Volumes that are assembled, and their records.
pub(crate) struct HostVolumes {
    pub(super) registry: Arc<Registry>,
    pub(super) devices: HostDevices,
    pub(super) occupant: fn(&Device) -> Option<String>,
    pub(super) forget: fn(&Device) -> std::result::Result<(), String>,
}

impl HostVolumes {
    pub fn new(
        registry: &Arc<Registry>,
        devices: &HostDevices,
        occupant: fn(&Device) -> Option<String>,
        forget: fn(&Device) -> std::result::Result<(), String>,
    ) -> HostVolumes {
        let (registry, devices) = (Arc::clone(registry), devices.clone());
        HostVolumes { registry, devices, occupant, forget }
    }

    /// Does what is asked for volumes.
    pub fn answer(&self, request: &Request) -> Result<Answer> {
        match request {
            Request::Create(create) => self.create(create),
            Request::Destroy(destroy) => self.destroy(destroy),
            Request::Assemble(assemble) => self.reassemble(assemble),
            Request::Add(new) => self.add(new),
            Request::Remove(leg) => self.remove(leg),
            Request::Offline(leg) => self.offline(leg),
            Request::Online(leg) => self.online(leg),
            Request::Replace(replace) => self.replace(replace),
            Request::Resync(resync) => self.resync(resync),
            Request::CancelResync(named) => self.cancel_resync(&named.name),
            Request::Scrub(scrub) => self.scrub(scrub),
            Request::Set(set) => self.set(set),
            Request::Grow(grow) => self.grow(grow),
            _ => {
                let what = "this is for a running host: start one by 'steadfast serve'";
                Err(UsedWrongly.because(what))
            }
        }
    }

    /// Closes all, the outermost first: the first error; all are closed even so.
    pub fn close(&self) -> Result<()> {
        let names: Vec<String> = {
            let inner = self.registry.lock();
            inner.records.volumes.iter().rev().map(|v| v.name.clone()).collect()
        };
        let mut outcome = Ok(());
        for name in names {
            let volume = self.registry.lock().volumes.get(&name).and_then(|v| v.volume.clone());
            let Some(volume) = volume else { continue };
            let closed = volume.close().map_err(|e| of_volume(&name, e));
            if let Err(e) = &closed {
                tracing::error!("{e}; out-of-sync regions are copied at the next start");
            }
            outcome = outcome.and(closed);
        }
        outcome
    }
}
