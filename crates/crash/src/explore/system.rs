//! What recovers from a crash state: a file system, and how a boot brings it up.

use std::rc::Rc;
use std::time::Duration;

use steadfast_devices::filter::record::Recording;
use steadfast_devices::store::Store;
use steadfast_vfs::FileSystem;

use super::machine::FsDevices;
use crate::error::Result;

/// Called with the file system while it is mounted; nothing may be left open. Beside it is what its
/// disk holds, where that is known and what the file system has in memory is there, too.
pub type Look = Rc<dyn Fn(&dyn FileSystem, Option<Store>)>;

/// A boot after a power cut.
#[derive(Clone)]
pub struct Boot {
    /// What the devices hold, in the order of the recording.
    pub contents: Vec<Store>,
    /// Looks at what was recovered.
    pub look: Look,
    /// After the unmount it is mounted once more, and this may change what is there.
    pub then: Option<Look>,
}

impl Boot {
    /// With these contents.
    pub fn of(contents: Vec<Store>, look: Look) -> Boot {
        Boot { contents, look, then: None }
    }
}

/// What the boot made of it.
#[derive(Debug, Clone, Default)]
pub struct BootRecovery {
    /// Why there is nothing to be seen, in words: the mount was refused, or recovery did not end.
    pub refused: Option<String>,
    /// The mount was refused, or the repairs that need nobody were not enough.
    pub manual_repair: bool,
    /// What is wrong with the structure, as far as the system itself says so, in words.
    pub damage: Vec<String>,
    /// From power on to mounted, in the system's time.
    pub time: Duration,
    /// What the devices hold after a clean unmount, where that is known.
    pub contents: Option<Vec<Store>>,
}

impl BootRecovery {
    /// The mount was refused, or recovery ended otherwise without a file system.
    pub fn refused(why: String) -> BootRecovery {
        BootRecovery { refused: Some(why), manual_repair: true, ..BootRecovery::default() }
    }

    /// Repairs that need nobody were not enough, if something was said of that.
    pub(super) fn needs_a_person(&mut self, said: Option<String>) {
        self.manual_repair |= said.is_some();
        self.damage.extend(said.map(|said| format!("manual repair is needed: {said}")));
    }
}

/// Recovers from crash states, as the next boot does. May be called by several threads at once.
///
/// A [`RebootTarget`](super::RebootTarget) of modelled devices with Steadfast's file system is one,
/// and so is the kernel's file system on such devices (`steadfast-peers`).
pub trait System: Send + Sync {
    /// Boots; what is drawn there follows from `seed`. A refused mount is no error.
    ///
    /// # Errors
    /// Something on this machine failed: this state could not be judged.
    fn recover(&self, boot: Boot, seed: u64) -> Result<BootRecovery>;

    /// Boots several times, each from its own contents. May be faster than one by one.
    fn recover_all(&self, boots: Vec<Boot>, seed: u64) -> Vec<Result<BootRecovery>> {
        boots.into_iter().map(|boot| self.recover(boot, seed)).collect()
    }

    /// What a boot from these contents and a clean shut down ask of the devices, recorded; `None`:
    /// that is not known. The inner error is a refused mount, in words.
    fn record_recovery(&self, _contents: Vec<Store>, _seed: u64) -> Option<Result<Recording>> {
        None
    }

    /// Where its file systems are.
    fn file_systems(&self) -> Vec<FsDevices> {
        vec![FsDevices::default()]
    }
}
