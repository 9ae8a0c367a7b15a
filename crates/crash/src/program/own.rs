//! Recovery by Steadfast itself: in process, in virtual time, in memory.

use std::sync::{Arc, Mutex, PoisonError};

use steadfast_block::BlockDevice;
use steadfast_devices::source::Ram;
use steadfast_devices::store::Store;
use steadfast_ext4::{Ext4, MountOptions};
use steadfast_runtime::Sim;

use super::{Recovered, Recovers, Tree};
use crate::e2fsck::E2fsck;
use crate::opinion::Opinion;

/// Mounts with Steadfast's ext4: the first device holds the file system, a second one its journal.
pub struct Own {
    /// How to mount; the journal's device is put in.
    pub options: MountOptions,
    /// Asked for a second opinion: one image at a time, it has one folder.
    pub e2fsck: Option<Mutex<E2fsck>>,
    /// A file system without a journal is checked and repaired before the mount, as at a boot.
    pub at_boot: Option<E2fsck>,
}

impl Own {
    fn mounted(options: MountOptions, contents: Vec<Store>) -> Recovered {
        let rams: Vec<Ram> = contents
            .into_iter()
            .zip(["disk", "journal"])
            .map(|(store, name)| Ram::from_store(name, store).persistent())
            .collect();
        let devices: Vec<Arc<dyn BlockDevice>> =
            rams.iter().map(|ram| Arc::new(ram.clone()) as Arc<dyn BlockDevice>).collect();
        let Some(disk) = devices.first() else {
            return Recovered::refused("there is no device".into());
        };
        let options = MountOptions { journal_device: devices.get(1).cloned(), ..options };
        let fs = match Ext4::mount(Arc::clone(disk), options) {
            Ok(fs) => fs,
            Err(e) => return Recovered::refused(format!("the mount was refused: {e}")),
        };
        let tree = Tree::read(&*fs).map_err(|e| format!("the recovered tree: {e}"));
        let mut damage = Vec::new();
        if let Err(e) = fs.unmount() {
            damage.push(format!("the recovered file system cannot be unmounted: {e}"));
        }
        drop(fs);
        match steadfast_ext4_check::check(disk, None) {
            Ok(report) => damage.extend(report.findings.iter().map(ToString::to_string)),
            Err(e) => damage.push(format!("the structure check failed: {e}")),
        }
        let contents = rams.iter().map(Ram::store).collect();
        Recovered { tree, damage, contents: Some(contents) }
    }
}

impl Recovers for Own {
    fn recover(&self, mut contents: Vec<Store>) -> Result<Recovered, String> {
        let options = self.options.clone();
        let mut by_hand = None;
        if let (Some(e2fsck), Some(disk)) = (&self.at_boot, contents.first_mut()) {
            (*disk, by_hand) = e2fsck.at_boot(disk)?;
        }
        let mut recovered = Sim::new(1)
            .run(move || Own::mounted(options, contents))
            .unwrap_or_else(|stuck| Recovered::refused(format!("recovery stopped: {stuck}")));
        let needed = |said| format!("manual repair is needed: e2fsck -p was not enough: {said}");
        recovered.damage.extend(by_hand.map(needed));
        Ok(recovered)
    }

    fn second_opinion(&self, recovered: &[Store]) -> Option<Opinion> {
        let disk = recovered.first()?;
        let e2fsck = self.e2fsck.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner);
        Some(e2fsck.judge(disk, recovered.get(1)))
    }
}
