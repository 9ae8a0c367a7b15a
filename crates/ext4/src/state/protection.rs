//! Multiple-mount protection (`mmp`): a block says that a host has the file system in use, and
//! changes while it has.
//!
//! Who wants to write looks at the block, waits longer than a user would leave it as it is, and
//! looks again; writes a number of its own, waits again, and has it if the number is still there.
//! From then on a task changes the number; if it finds another's there, nothing more is written.
//! Nothing of this goes through the journal. Source: the kernel's fs/ext4/mmp.c.

use std::sync::{Arc, Weak};
use std::time::Duration;

use steadfast_block::{BlockDevice, BlockError};
use steadfast_ext4_format::mmp::{CLEAN, FSCK, USER_MAX, decode, place};
use steadfast_ext4_format::ondisk::{Layout, Mmp, Superblock};
use steadfast_ext4_format::{Result, refused, superblock};
use steadfast_journal::{Journal, JournalError};
use steadfast_runtime::{Condvar, JoinHandle, Mutex, is_simulated, now, random_u64, sleep, spawn};
use zerocopy::{FromZeros, IntoBytes};

use super::{Clock, Status};

/// Seconds between updates, unless the superblock says otherwise (`EXT4_MMP_UPDATE_INTERVAL`).
const UPDATE_SECONDS: u16 = 5;
/// Least and most seconds that a user may leave the block as it is.
const CHECK_SECONDS_MIN: u16 = 5;
const CHECK_SECONDS_MAX: u16 = 300;

/// The file system is ours: the block, and the task that keeps saying so.
pub(crate) struct Protection {
    shared: Arc<MmpBlockWriter>,
    task: Mutex<Option<JoinHandle<()>>>,
}

struct MmpBlockWriter {
    device: Arc<dyn BlockDevice>,
    layout: Layout,
    block: u64,
    clock: Clock,
    interval: Duration,
    state: Mutex<State>,
    stopped: Condvar,
}

struct State {
    /// What the block holds by us.
    ours: Mmp,
    stop: bool,
}

/// What a host is called, cut to fit, with a NUL behind.
fn text<const N: usize>(name: &str) -> [u8; N] {
    let mut bytes = [0; N];
    let len = name.len().min(N - 1);
    bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
    bytes
}

fn shown(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|b| *b == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

fn host_name() -> String {
    if is_simulated() {
        return "simulation".into();
    }
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    name.trim().to_owned()
}

fn new_sequence() -> u32 {
    // OK to cast: below 2^32.
    (random_u64() % u64::from(USER_MAX)) as u32 + 1
}

/// Who has it, and the way out.
fn in_use(mmp: &Mmp, why: &str) -> String {
    format!(
        "{why}: multiple-mount protection names host {:?} with device {:?}, last seen at {} s \
         after 1970; unmount it there, or if that host is certainly down, tune2fs -f -E clear_mmp",
        shown(&mmp.node_name),
        shown(&mmp.device_name),
        mmp.time.get()
    )
}

/// Seconds between a user's updates.
fn update_seconds(superblock: &Superblock) -> u16 {
    match superblock.mmp_interval.get() {
        0 => UPDATE_SECONDS,
        n => n.min(CHECK_SECONDS_MAX),
    }
}

/// How long the block is watched each time, by what it holds: longer than a user leaves it as it
/// is. Both intervals are the disk's word, within bounds: at most six minutes come of it.
fn watch(found: &Mmp, update: u16) -> Duration {
    let check = found.check_interval.get().clamp(CHECK_SECONDS_MIN.max(update), CHECK_SECONDS_MAX);
    Duration::from_secs(u64::from((check * 2 + 1).min(check + 60)))
}

fn read_block(device: &dyn BlockDevice, layout: &Layout, block: u64) -> Result<Mmp> {
    let size = u64::from(layout.block_size);
    let bytes = device.read(block * size, size)?;
    // Where a cut keeps single words, the one that says who has it is an old or a new one,
    // and either is good: what is in doubt is watched for a while.
    let may_be_torn = superblock::tears_sectors(device);
    decode(&bytes, layout, block, may_be_torn)
}

impl Protection {
    /// How long [`take`](Self::take) takes: it watches the block twice, once if the last user has
    /// said that nobody has the file system, and not at all while e2fsck has it.
    pub fn wait(device: &dyn BlockDevice, superblock: &Superblock) -> Result<Duration> {
        let layout = Layout::new(superblock, device.info().size)?;
        let found = read_block(device, &layout, place(superblock, &layout)?)?;
        let watch = watch(&found, update_seconds(superblock));
        Ok(match found.sequence.get() {
            FSCK => Duration::ZERO,
            CLEAN => watch,
            _ => watch * 2,
        })
    }

    /// Refuses what [`take`](Self::take) refuses at once.
    ///
    /// # Errors
    /// As that.
    pub fn check(device: &dyn BlockDevice, superblock: &Superblock) -> Result<()> {
        let layout = Layout::new(superblock, device.info().size)?;
        let found = read_block(device, &layout, place(superblock, &layout)?)?;
        match found.sequence.get() {
            FSCK => refused(in_use(&found, "e2fsck is running on the file system")),
            _ => Ok(()),
        }
    }

    /// Takes the file system, once it is known that nobody else has it.
    ///
    /// # Errors
    /// Refused: somebody has it. Corrupt: the block makes no sense.
    pub fn take(
        device: &Arc<dyn BlockDevice>,
        superblock: &Superblock,
        layout: &Layout,
        clock: Clock,
    ) -> Result<Protection> {
        let block = place(superblock, layout)?;
        let update = update_seconds(superblock);
        let mut shared = MmpBlockWriter {
            device: Arc::clone(device),
            layout: layout.clone(),
            block,
            clock,
            interval: Duration::from_secs(update.into()),
            state: Mutex::new(State { ours: Mmp::new_zeroed(), stop: false }),
            stopped: Condvar::new(),
        };
        let found = shared.read()?;
        let wait = watch(&found, update);
        match found.sequence.get() {
            CLEAN => {}
            FSCK => return refused(in_use(&found, "e2fsck is running on the file system")),
            seen => {
                sleep(wait);
                let later = shared.read()?;
                if later.sequence.get() != seen {
                    return refused(in_use(&later, "the file system is in use"));
                }
            }
        }
        let mut ours = found;
        ours.sequence.set(new_sequence());
        ours.time.set(clock.seconds());
        ours.node_name = text(&host_name());
        ours.device_name = text(&device.info().name);
        ours.check_interval.set((update * 2).clamp(CHECK_SECONDS_MIN, CHECK_SECONDS_MAX));
        shared.write(&mut ours)?;
        sleep(wait);
        let later = shared.read()?;
        if later.sequence != ours.sequence {
            return refused(in_use(&later, "another host has just taken the file system"));
        }
        shared.state = Mutex::new(State { ours, stop: false });
        Ok(Protection { shared: Arc::new(shared), task: Mutex::new(None) })
    }

    /// Starts the task that keeps the block changing. `status` and `journal` are of the mounted
    /// file system: what stops when another host takes it.
    pub fn start(&self, status: Weak<Status>, journal: Option<Arc<Journal>>) {
        let shared = Arc::clone(&self.shared);
        *self.task.lock() = Some(spawn("mmp", move || shared.keep(&status, journal.as_deref())));
    }

    /// Ends the task and says in the block that nobody has the file system.
    pub fn release(&self) -> Result<()> {
        self.shared.stop();
        if let Some(task) = self.task.lock().take()
            && let Err(panicked) = task.join()
        {
            panicked.resume();
        }
        let mut state = self.shared.state.lock();
        let mut last = state.ours;
        if self.shared.read()?.sequence != last.sequence {
            // It is another's by now; that one's word stands.
            return Ok(());
        }
        last.sequence.set(CLEAN);
        last.time.set(self.shared.clock.seconds());
        self.shared.write(&mut last)?;
        state.ours = last;
        Ok(())
    }
}

impl Drop for Protection {
    /// What is dropped without being released looks like a host that went down.
    fn drop(&mut self) {
        self.shared.stop();
    }
}

impl MmpBlockWriter {
    fn stop(&self) {
        self.state.lock().stop = true;
        self.stopped.notify_all();
    }

    fn read(&self) -> Result<Mmp> {
        read_block(&*self.device, &self.layout, self.block)
    }

    /// Of the block, in bytes.
    fn offset(&self) -> u64 {
        self.block * u64::from(self.layout.block_size)
    }

    fn write(&self, mmp: &mut Mmp) -> Result<()> {
        if let Some(seed) = self.layout.checksums.seed() {
            mmp.checksum.set(mmp.checksum_with(seed));
        }
        let mut bytes = vec![0; self.layout.block_size as usize];
        bytes[..size_of::<Mmp>()].copy_from_slice(mmp.as_bytes());
        Ok(self.device.write_fua(self.offset(), bytes.into())?)
    }

    /// Changes the block once an interval until it is to stop, or until it is another's.
    fn keep(&self, status: &Weak<Status>, journal: Option<&Journal>) {
        loop {
            let deadline = now().0 + self.interval.as_nanos() as u64;
            let mut state = self.state.lock();
            while !state.stop && now().0 < deadline {
                let left = Duration::from_nanos(deadline - now().0);
                state = self.stopped.wait_timeout(state, left).0;
            }
            if state.stop {
                return;
            }
            let beat = self.beat(&mut state);
            drop(state);
            let Some(status) = status.upgrade() else { return };
            if let Err(e) = beat {
                let why = e.to_string();
                status.set_read_only(why.clone());
                if let Some(journal) = journal {
                    journal.abort(&JournalError::Block(BlockError::Io {
                        device: self.device.info().name.clone(),
                        op: "write",
                        offset: self.offset(),
                        reason: why,
                    }));
                }
                return;
            }
        }
    }

    fn beat(&self, state: &mut State) -> Result<()> {
        let found = self.read()?;
        if found.sequence != state.ours.sequence || found.node_name != state.ours.node_name {
            return refused(in_use(&found, "another host has taken the file system meanwhile"));
        }
        let mut next = state.ours;
        let sequence = next.sequence.get();
        next.sequence.set(if sequence >= USER_MAX { 1 } else { sequence + 1 });
        next.time.set(self.clock.seconds());
        self.write(&mut next)?;
        state.ours = next;
        Ok(())
    }
}
