//! Resyncs in the background, and the timer of the mirrors.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use steadfast_volume::{Mirror, ResyncReport, ResyncThrottle};

use super::resync_work::{Work, lacking};
use super::volumes::HostVolumes;
use super::{Host, Result};
use crate::protocol::RefusalKind::{Failed, NotFound, UsedWrongly};
use crate::protocol::{Answer, Resync};
use crate::record::VolumeRecord;

/// Between two passes of the timer: after two of them without a write a region is clean.
const TICK: Duration = Duration::from_secs(2);
/// Regions between two checks for a stop request.
const SLICE: usize = 64;

impl Host {
    /// Ticks, and begins resyncs that are needed, until the host ends.
    pub(super) fn start_maintenance(self: &Arc<Self>) {
        self.volumes.resync_by_pass();
        let host = Arc::downgrade(self);
        let maintenance = move || {
            loop {
                let Some(host) = host.upgrade() else { return };
                if host.is_ending_within(TICK) {
                    return;
                }
                host.volumes.tick();
            }
        };
        // OK to unwrap: without threads nothing works.
        std::thread::Builder::new().name("upkeep".into()).spawn(maintenance).expect("a thread");
    }
}

impl HostVolumes {
    fn mirrors(&self) -> Vec<(String, Mirror, Arc<Work>)> {
        let inner = self.registry.lock();
        let mirrors = inner.volumes.iter().filter_map(|(name, v)| {
            let mirror = v.volume.as_ref()?.mirror.clone()?;
            Some((name.clone(), mirror, Arc::clone(&v.resync)))
        });
        mirrors.collect()
    }

    fn tick(&self) {
        for (name, mirror, _) in self.mirrors() {
            if let Err(e) = mirror.tick() {
                tracing::debug!("{name}: {e}");
            }
            self.remember_active_spares(&name, &mirror);
        }
        self.resync_by_pass();
    }

    /// A spare that took a failed leg's place is a component from then on, and the failed one is
    /// none. Later, if something is being changed now.
    fn remember_active_spares(&self, name: &str, mirror: &Mirror) {
        let Some(_one) = self.registry.try_one_change() else { return };
        let legs: Vec<String> = mirror.status().legs.into_iter().map(|leg| leg.name).collect();
        let is_one = |record: &VolumeRecord| record.spares.iter().any(|s| legs.contains(s));
        if !self.registry.lock().records.volume(name).is_some_and(is_one) {
            return;
        }
        let remembered = self.registry.remember(|records| {
            let Some(record) = records.volume_mut(name) else { return };
            let (used, waiting) = record.spares.drain(..).partition(|s| legs.contains(s));
            record.spares = waiting;
            let used: Vec<String> = used;
            for spare in used {
                let gone = record.components.iter().position(|c| !legs.contains(c));
                match gone {
                    Some(at) => record.components[at] = spare,
                    None => record.components.push(spare),
                }
            }
        });
        if let Err(e) = remembered {
            tracing::error!("{name}: {e}; a spare is a leg by now");
        }
    }

    /// Begins the resyncs of the lowest pass that has any to do; those of pass 0 nobody begins.
    fn resync_by_pass(&self) {
        let needed: Vec<(u8, String)> = self
            .mirrors()
            .into_iter()
            .filter(|(_, _, work)| !work.stop_requested.load(Ordering::Acquire))
            .filter(|(_, mirror, _)| lacking(&mirror.status()) > 0)
            .map(|(name, mirror, _)| (mirror.policies().pass.number(), name))
            .filter(|(pass, _)| *pass > 0)
            .collect();
        let Some(first) = needed.iter().map(|(pass, _)| *pass).min() else { return };
        for (_, name) in needed.iter().filter(|(pass, _)| *pass == first) {
            self.start_resync(name, None);
        }
    }

    /// Begins a resync, unless one runs.
    pub(super) fn start_resync(&self, name: &str, rate: Option<u64>) {
        let found = self.mirrors().into_iter().find(|(n, _, _)| n == name);
        let Some((name, mirror, work)) = found else { return };
        work.stop_requested.store(false, Ordering::Release);
        let to_do = lacking(&mirror.status());
        if to_do == 0 || work.running.swap(true, Ordering::AcqRel) {
            return;
        }
        work.total.store(to_do, Ordering::Release);
        work.copied.store(0, Ordering::Release);
        let run = move || {
            match resync_in_slices(&mirror, &work, rate) {
                Ok(done) if done.unreadable > 0 => tracing::error!(
                    "{name}: {} regions could not be read from any leg",
                    done.unreadable
                ),
                Ok(done) if done.bytes > 0 => {
                    tracing::info!("{name}: resync: {} bytes copied", done.bytes);
                }
                Ok(_) => {}
                Err(e) => tracing::debug!("{name}: the resync stopped: {e}"),
            }
            work.running.store(false, Ordering::Release);
        };
        // OK to unwrap: without threads nothing works.
        std::thread::Builder::new().name("resync".into()).spawn(run).expect("a thread");
    }

    pub(super) fn resync(&self, resync: &Resync) -> Result<Answer> {
        let (name, mirror) = self.registry.mirror(&resync.name)?;
        if resync.rate == Some(0) {
            return Err(UsedWrongly.about(&name, "a resync at 0 bytes a second never ends"));
        }
        if !resync.wait {
            self.start_resync(&name, resync.rate);
            return Ok(Answer::default());
        }
        let before = mirror.status();
        let (mut last, mut copied) = (lacking(&before), 0);
        loop {
            self.start_resync(&name, resync.rate);
            let work = self.work(&name)?;
            while work.running.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(5));
            }
            copied += work.copied.swap(0, Ordering::AcqRel);
            let left = lacking(&mirror.status());
            // What no leg can give stays.
            if left == 0 || left >= last || work.stop_requested.load(Ordering::Acquire) {
                let status = mirror.status();
                if let Some(what) = status.failed_since(&before) {
                    return Err(Failed.about(&name, what));
                }
                if let Some(what) = status.failed.filter(|_| left > 0) {
                    return Err(Failed.about(&name, what));
                }
                return Ok(Answer { bytes: Some(copied), ..Answer::default() });
            }
            last = left;
        }
    }

    fn work(&self, name: &str) -> Result<Arc<Work>> {
        let work = self.registry.lock().volumes.get(name).map(|v| Arc::clone(&v.resync));
        work.ok_or_else(|| NotFound.about(name, "is gone"))
    }

    pub(super) fn cancel_resync(&self, name: &str) -> Result<Answer> {
        let (name, _) = self.registry.mirror(name)?;
        self.work(&name)?.stop_requested.store(true, Ordering::Release);
        Ok(Answer::default())
    }
}

fn resync_in_slices(
    mirror: &Mirror,
    work: &Work,
    rate: Option<u64>,
) -> steadfast_volume::Result<ResyncReport> {
    let throttle = ResyncThrottle { bytes_per_second: rate, regions: Some(SLICE) };
    let mut all = ResyncReport::default();
    loop {
        let done = mirror.resync(throttle)?;
        all.regions += done.regions;
        all.bytes += done.bytes;
        work.copied.fetch_add(done.bytes, Ordering::AcqRel);
        // Each part meets those again that the ones before could not read.
        all.unreadable = done.unreadable;
        if done.complete || done.regions == 0 || work.stop_requested.load(Ordering::Acquire) {
            return Ok(all);
        }
    }
}
