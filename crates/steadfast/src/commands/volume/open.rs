//! Volumes by the names of their members: for the commands on volumes, and `volume:MEMBER,MEMBER`
//! in place of an image.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use bytes::Bytes;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, DirectMemory, Payload, Request};
use steadfast_volume::{AssembleOptions, Assembled, Throttle, Volume, assemble};

use super::cli::Members;
use crate::commands::image;
use crate::{Usage, terminal};

/// What stands before the members where an image is asked for.
const PREFIX: &str = "volume:";
/// How often regions that nobody writes to become clean.
const UPKEEP: Duration = Duration::from_secs(5);

/// The members that a path names, if it names a volume.
pub fn named(path: &Path) -> Option<Vec<PathBuf>> {
    let members = path.to_str()?.strip_prefix(PREFIX)?;
    Some(members.split(',').map(PathBuf::from).collect())
}

/// Opens all, none of them twice.
pub fn open_all(paths: &[PathBuf], read_only: bool) -> Result<Vec<Arc<dyn BlockDevice>>> {
    let mut seen: BTreeMap<(u64, u64, u64), &Path> = BTreeMap::new();
    for path in paths {
        let Ok(meta) = path.metadata() else { continue };
        if let Some(first) = seen.insert((meta.dev(), meta.ino(), meta.rdev()), path) {
            let (first, path) = (first.display(), path.display());
            return Err(Usage(format!("{path}: is given twice (also as {first})")).into());
        }
    }
    paths.iter().map(|path| image::open(path, read_only)).collect()
}

/// Assembles what the members belong to. One volume must come of it.
pub fn assembled(members: &Members, read_only: bool) -> Result<(Assembled, Volume)> {
    let devices = open_all(&members.members, read_only)?;
    let options = AssembleOptions {
        degraded: members.degraded,
        keep: members.keep,
        read_only,
        ..AssembleOptions::default()
    };
    let mut found = assemble(&devices, &options);
    if !found.problems.is_empty() {
        // The first tells why; there may be several members of one volume among them.
        let (_, error) = found.problems.swap_remove(0);
        return Err(error.into());
    }
    if let Some(blank) = found.blank.first() {
        let name = blank.info().name;
        return Err(Usage(format!("{name}: is no member of a volume: it has no label")).into());
    }
    let outer: Vec<Volume> = found.outer().cloned().collect();
    match <[Volume; 1]>::try_from(outer) {
        Ok([volume]) => Ok((found, volume)),
        Err(several) => {
            let names: Vec<&str> = several.iter().map(|v| v.name.as_str()).collect();
            let what = format!("these are members of several volumes: {}", names.join(", "));
            Err(Usage(what).into())
        }
    }
}

/// A volume in place of an image: it is closed when nobody uses it any more.
struct InUse {
    device: Arc<dyn BlockDevice>,
    found: Assembled,
}

/// Opens the volume of these members, to be used as an image is.
pub fn open(members: Vec<PathBuf>, read_only: bool) -> Result<Arc<dyn BlockDevice>> {
    let members = Members { members, degraded: false, keep: None };
    let (found, volume) = assembled(&members, read_only)?;
    for mirror in found.volumes.iter().filter_map(|v| v.mirror.as_ref()) {
        let status = mirror.status();
        for leg in status.legs.iter().filter(|leg| leg.lacking_bytes > 0 && !leg.volatile) {
            let (volume, state, name) = (&status.name, leg.state.name(), &leg.name);
            terminal::note(&format!("note: volume '{volume}': {name}: {state}"));
        }
        if !read_only {
            mirror.keep(UPKEEP, Throttle::default());
        }
    }
    Ok(Arc::new(InUse { device: volume.device, found }))
}

impl Drop for InUse {
    fn drop(&mut self) {
        if let Err(error) = self.found.close() {
            terminal::note(&format!("closing the volume: {error}"));
        }
    }
}

impl BlockDevice for InUse {
    fn info(&self) -> DeviceInfo {
        self.device.info()
    }

    fn submit(&self, request: Request) -> Completion {
        self.device.submit(request)
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        self.device.direct_memory()
    }

    fn read(&self, offset: u64, len: u64) -> steadfast_block::Result<Bytes> {
        self.device.read(offset, len)
    }

    fn write(&self, offset: u64, data: Payload) -> steadfast_block::Result<()> {
        self.device.write(offset, data)
    }

    fn write_fua(&self, offset: u64, data: Payload) -> steadfast_block::Result<()> {
        self.device.write_fua(offset, data)
    }

    fn flush(&self) -> steadfast_block::Result<()> {
        self.device.flush()
    }

    fn discard(&self, offset: u64, len: u64) -> steadfast_block::Result<()> {
        self.device.discard(offset, len)
    }
}
