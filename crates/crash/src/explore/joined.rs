//! Several file systems that lose power together: one machine, one tree.

use std::sync::Arc;

use steadfast_devices::filter::record::RecordLog;
use steadfast_devices::store::Store;
use steadfast_vfs::{FileSystem, JoinedFs};

use super::machine::{BootedMachine, FsDevices, RebootTarget};
use crate::error::Result;

/// A file system of a [`JoinedMachine`].
pub struct JoinedPart {
    /// The folder of the first one that it is mounted on; of the first one itself nothing.
    pub folder: Vec<u8>,
    /// What mounts it.
    pub machine: Arc<dyn RebootTarget>,
    /// How many recorded devices it has.
    pub devices: usize,
}

/// A machine with several file systems, each on devices of its own: they lose power at the same
/// instant, and the next boot mounts the others in folders of the first. The devices are those of
/// the parts, in their order.
pub struct JoinedMachine {
    /// The file systems, first the one that the others are mounted in.
    pub parts: Vec<JoinedPart>,
}

impl JoinedMachine {
    /// As a machine, and so as a [`System`](super::System).
    pub fn shared(self) -> Arc<dyn RebootTarget> {
        Arc::new(self)
    }

    /// The parts, each with its devices' contents.
    fn each(&self, contents: Vec<Store>) -> impl Iterator<Item = (&JoinedPart, Vec<Store>)> {
        let mut rest = contents.into_iter();
        self.parts.iter().map(move |part| (part, rest.by_ref().take(part.devices).collect()))
    }
}

/// The same error, with where it was.
fn in_folder(folder: &[u8], why: &dyn std::fmt::Display) -> String {
    match folder {
        b"" => why.to_string(),
        folder => format!("{}: {why}", String::from_utf8_lossy(folder)),
    }
}

impl RebootTarget for JoinedMachine {
    fn power_on(&self, contents: Vec<Store>, log: Option<&RecordLog>) -> Result<BootedMachine> {
        let mut booted = Vec::new();
        for (part, contents) in self.each(contents) {
            let up = part.machine.power_on(contents, log);
            booted.push(up.map_err(|why| in_folder(&part.folder, &why))?);
        }
        let folders = self.parts.iter().map(|part| part.folder.clone());
        let mut systems = folders.zip(booted.iter().map(|up| Arc::clone(&up.fs)));
        let (_, first) = systems.next().ok_or("a machine without a file system")?;
        let joined = JoinedFs::new(first, systems.collect());
        let fs: Arc<dyn FileSystem> =
            Arc::new(joined.map_err(|why| format!("a folder to mount on: {why}"))?);
        let devices: Vec<usize> = self.parts.iter().map(|part| part.devices).collect();
        let shut_down = move || {
            let mut left = Vec::new();
            for (up, devices) in booted.into_iter().zip(devices) {
                drop(up.fs);
                let mut contents = (up.shut_down)()?;
                // Of volumes only what the file system sees is known: its place stays the same.
                contents.resize_with(devices, || Store::new(0));
                left.append(&mut contents);
            }
            Ok(left)
        };
        Ok(BootedMachine { fs, shut_down: Box::new(shut_down), disk: None })
    }

    fn before_mount(&self, contents: Vec<Store>) -> Result<(Vec<Store>, Option<String>)> {
        let (mut ready, mut said) = (Vec::new(), Vec::new());
        for (part, contents) in self.each(contents) {
            let (mut contents, words) = part.machine.before_mount(contents)?;
            ready.append(&mut contents);
            said.extend(words.map(|words| in_folder(&part.folder, &words)));
        }
        Ok((ready, (!said.is_empty()).then(|| said.join("; "))))
    }

    fn file_systems(&self) -> Vec<FsDevices> {
        let (mut all, mut first) = (Vec::new(), 0);
        for part in &self.parts {
            let within = |device: &usize| *device < part.devices;
            all.extend(part.machine.file_systems().into_iter().map(|fs| FsDevices {
                disk: first + fs.disk,
                journal: fs.journal.filter(within).map(|journal| first + journal),
            }));
            first += part.devices;
        }
        all
    }
}
