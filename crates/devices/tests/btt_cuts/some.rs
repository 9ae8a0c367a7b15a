//! Some cuts of runs with several tasks, on a memory that takes its time: in a simulation, where
//! the seed decides which of them is the next to go on.

use std::sync::Arc;
use std::time::Duration;

use steadfast_block::planted::BugSwitch;
use steadfast_block::rng::Rng;
use steadfast_block::{BlockDevice, Completion, DeviceInfo, DirectMemory, Request, Result};
use steadfast_devices::filter::RecordLog;
use steadfast_devices::filter::btt::planted::Bug;
use steadfast_devices::filter::record::DeviceId;
use steadfast_devices::source::Ram;
use steadfast_runtime::{Mutex, Sim, sleep, spawn};

use super::every::{done, perform, recorded};
use super::{BEGUN, DONE, Op, check, judge, made, open, version};

/// Most bytes that are moved without somebody else coming between.
const PIECE: usize = 64;
/// The longest that one operation takes. Loads take longer, so that a write can overtake a read.
const STORE_NANOS: u64 = 40;
const LOAD_NANOS: u64 = 160;
const PAUSE_NANOS: u64 = 50;
const SECTORS: u64 = 3;
const READS: u64 = 40;
const WRITES: usize = 10;
const CUTS: u64 = 24;

/// A memory whose operations take some time each, cache line by cache line.
struct Slow {
    next: Arc<dyn BlockDevice>,
    rng: Mutex<Rng>,
}

impl Slow {
    fn wait(&self, most: u64) {
        let nanos = self.rng.lock().below(most);
        sleep(Duration::from_nanos(nanos));
    }

    fn memory(&self) -> &dyn DirectMemory {
        self.next.direct_memory().unwrap()
    }
}

impl BlockDevice for Slow {
    fn info(&self) -> DeviceInfo {
        self.next.info()
    }

    fn submit(&self, request: Request) -> Completion {
        self.next.submit(request)
    }

    fn direct_memory(&self) -> Option<&dyn DirectMemory> {
        Some(self)
    }
}

impl DirectMemory for Slow {
    fn load(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        for (n, piece) in out.chunks_mut(PIECE).enumerate() {
            self.wait(LOAD_NANOS);
            self.memory().load(offset + (n * PIECE) as u64, piece)?;
        }
        Ok(())
    }

    fn store(&self, offset: u64, data: &[u8]) -> Result<()> {
        for (n, piece) in data.chunks(PIECE).enumerate() {
            self.wait(STORE_NANOS);
            self.memory().store(offset + (n * PIECE) as u64, piece)?;
        }
        Ok(())
    }

    fn persist(&self, offset: u64, len: u64) -> Result<()> {
        self.wait(STORE_NANOS);
        self.memory().persist(offset, len)
    }

    fn fence(&self) -> Result<()> {
        self.wait(STORE_NANOS);
        self.memory().fence()
    }
}

/// A run of a seed, with tasks that write and tasks that read, cut at some places.
///
/// # Errors
/// What was broken.
pub fn run(seed: u64, planted: BugSwitch<Bug>) -> std::result::Result<(), String> {
    let mut rng = Rng::new(seed);
    let nfree = 1 + rng.below(3) as u32;
    let tasks = 2 + rng.below(2);
    let base = made(512, nfree);
    let ops: Vec<Op> = (0..WRITES)
        .map(|n| Op { sector: rng.below(SECTORS), count: 1, version: n as u8 + 1 })
        .collect();
    let log = RecordLog::new();
    let (base_in, log_in, ops_in) = (base.clone(), log.clone(), ops.clone());
    let ran = Sim::new(seed).run(move || -> std::result::Result<(), String> {
        let next = recorded(base_in, &log_in);
        let slow: Arc<dyn BlockDevice> = Arc::new(Slow { next, rng: Mutex::new(Rng::new(seed)) });
        let btt = Arc::new(open(&slow, planted)?);
        let mut handles = Vec::new();
        for task in 0..tasks {
            let (btt, log, ops) = (Arc::clone(&btt), log_in.clone(), ops_in.clone());
            handles.push(spawn("writer", move || {
                for (n, op) in ops.iter().enumerate().filter(|(n, _)| *n as u64 % tasks == task) {
                    log.note(BEGUN, [n as u64, 0, 0]);
                    perform(&*btt, *op, 512)?;
                    log.note(DONE, [n as u64, 0, 0]);
                }
                Ok(())
            }));
        }
        let reader = Arc::clone(&btt);
        handles.push(spawn("reader", move || {
            for n in 0..READS {
                // Who asks for a lock again at once gets it before those who wait.
                sleep(Duration::from_nanos(PAUSE_NANOS));
                let sector = n % SECTORS;
                let got = reader.read(sector * 512, 512).map_err(|error| error.to_string())?;
                if version(&got, sector).is_none() {
                    return Err(format!("a read of sector {sector} was torn"));
                }
            }
            Ok(())
        }));
        handles.into_iter().try_for_each(|handle| handle.join().unwrap())
    });
    ran.map_err(|error| error.to_string())?.map_err(|what| format!("seed {seed}: {what}"))?;
    let recording = log.take();
    let ops = done(&recording, &ops);
    for _ in 0..CUTS {
        let span = recording.last_crash_point() - recording.first_crash_point() + 1;
        let cut = recording.first_crash_point() + rng.below(span);
        let kept = [0, 50, 90, 100][rng.below(4) as usize];
        let state = recording.at(DeviceId(0), cut).contents(&base, 0, kept, &mut rng);
        let device: Arc<dyn BlockDevice> = Arc::new(Ram::from_store("pmem0", state));
        let judged = check(&*device).and_then(|_| {
            let btt = open(&device, planted)?;
            check(&*device)?;
            judge(&btt, SECTORS, &ops, cut)
        });
        judged.map_err(|what| format!("seed {seed}, cut {cut}: {what}"))?;
    }
    Ok(())
}
