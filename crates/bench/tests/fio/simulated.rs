//! Jobs in virtual time: a read takes 1 ms, a write 2 ms, an fsync 5 ms, a call 1 us of processor
//! time beside.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use steadfast_bench::fio::report::{self, RunDate};
use steadfast_bench::fio::{FioEntry, FioResults};

use steadfast_vfs::OpenFlags;

use crate::memory::Behaviour;
use crate::simulate;

fn slow() -> Behaviour {
    let ms = Duration::from_millis;
    Behaviour { read: ms(1), write: ms(2), fsync: ms(5), ..Behaviour::default() }
}

fn run(text: &str) -> FioResults {
    let (results, _) = simulate(text, slow());
    assert_eq!(results.fault(), None);
    results
}

fn one(text: &str) -> FioEntry {
    run(text).entries.remove(0)
}

/// Requests of reads and of writes, syncs, and how long it took in ms.
fn figures(entry: &FioEntry) -> (u64, u64, u64, u64) {
    let f = &entry.figures;
    let [reads, writes] = f.kinds.each_ref().map(|kind| kind.requests);
    (reads, writes, f.syncs.moments.count, f.elapsed_ns / 1_000_000)
}

#[test]
fn the_same_run_twice_is_the_same_to_the_byte() {
    let text = "[a]\nrw=randrw\nsize=1m\nnumjobs=3\nioengine=libaio\niodepth=4\nfsync=8\n\
                rate_iops=200\nrate_process=poisson\nbsrange=1k-16k\nthinktime=100\n";
    let both = [0, 1].map(|_| report::json(&run(text), &RunDate::default()).unwrap());
    assert_eq!(both[0], both[1]);
}

#[test]
fn a_job_takes_what_its_calls_take() {
    // 256 reads of a millisecond and a microsecond of processor.
    assert_eq!(figures(&one("[a]\nsize=1m")), (256, 0, 0, 256));
    assert_eq!(figures(&one("[a]\nsize=1m\nrw=write\nend_fsync=1")), (0, 256, 0, 517));
    assert_eq!(figures(&one("[a]\nsize=1m\nrw=write\nfdatasync=64")), (0, 256, 4, 532));
    let entry = one("[a]\nsize=1m\nrw=randrw\nrwmixread=75");
    let (reads, writes, _, ms) = figures(&entry);
    assert_eq!((reads + writes, ms), (256, reads + 2 * writes));
    assert!((170..215).contains(&reads), "{reads}");
    assert_eq!(entry.figures.kinds[0].clat.moments.max / 1000, 1001);
    assert_eq!(entry.figures.steps.ms[1], writes);
}

/// A generator's seeds may be its own later states: then a job does what another one did before.
#[test]
fn jobs_choose_places_of_their_own() {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let behaviour = Behaviour { calls: Some(Arc::clone(&calls)), ..slow() };
    simulate("[a]\nrw=randread\nsize=1m\nnumjobs=8", behaviour);
    let calls = calls.lock().unwrap();
    let places = |job: usize| -> Vec<&str> {
        let read = format!(" read a.{job}.0 ");
        calls.iter().filter_map(|call| Some(call.split_once(&read)?.1)).collect()
    };
    let jobs: Vec<Vec<&str>> = (0..8).map(places).collect();
    assert!(jobs.iter().all(|places| places.len() == 256));
    for (job, places) in jobs.iter().enumerate() {
        for other in &jobs[job + 1..] {
            for later in 0..32 {
                let same = |a: &[&str], b: &[&str]| a.iter().zip(b).filter(|(a, b)| a == b).count();
                let most = same(&places[later..], other).max(same(places, &other[later..]));
                assert!(most < 16, "job {job}, {later} requests later: {most} are the same");
            }
        }
    }
}

#[test]
fn as_many_are_in_flight_as_the_depth_says() {
    let entry = one("[a]\nsize=1m\nrw=randread\nioengine=io_uring\niodepth=8");
    assert_eq!(figures(&entry), (256, 0, 0, 32));
    assert_eq!(entry.figures.depths[..4].iter().sum::<u64>(), 256);
    assert!(entry.figures.depths[3] > 240, "{:?}", entry.figures.depths);
}

#[test]
fn rates_and_times_hold() {
    // 100 a second, the last one due at 2.55 s.
    assert_eq!(figures(&one("[a]\nsize=1m\nrate_iops=100")), (256, 0, 0, 2551));
    assert_eq!(figures(&one("[a]\nsize=1m\nrate=400k")), (256, 0, 0, 2551));
    let entry = one("[a]\nsize=1m\nrate_iops=100\nrate_process=poisson");
    assert!((2200..2900).contains(&figures(&entry).3), "{:?}", figures(&entry));
    assert_eq!(figures(&one("[a]\nsize=1m\nthinktime=3ms\nthinktime_blocks=2")), (256, 0, 0, 637));
    assert_eq!(figures(&one("[a]\nsize=1m\nruntime=100ms")), (100, 0, 0, 100));
    assert_eq!(figures(&one("[a]\nsize=64k\nruntime=100ms\ntime_based")), (100, 0, 0, 100));
    // What ends in the ramp is not counted; what is under way at its end is.
    let entry = one("[a]\nsize=64k\nruntime=100ms\ntime_based\nramp_time=50ms");
    assert_eq!(figures(&entry), (101, 0, 0, 100));
    assert_eq!(figures(&one("[a]\nsize=1m\nnumber_ios=7")), (7, 0, 0, 7));
    assert_eq!(figures(&one("[a]\nsize=64k\nloops=3")), (48, 0, 0, 48));
    assert_eq!(figures(&one("[a]\nsize=64k\nio_size=160k\nrw=randread")), (40, 0, 0, 40));
}

#[test]
fn jobs_begin_by_their_rules() {
    let text = "[global]\nsize=64k\ngroup_reporting\n[a]\nnumjobs=2\nstartdelay=1s\n[b]\n\
                stonewall\nrw=write\n[c]\nwait_for=b\nnew_group\n[d]\nnew_group\n";
    let results = run(text);
    let of = |at: usize| (&*results.entries[at].job.options.name, results.entries[at].jobs);
    assert_eq!([of(0), of(1), of(2), of(3)], [("a", 2), ("b", 1), ("c", 1), ("d", 1)]);
    assert_eq!(figures(&results.entries[0]), (32, 0, 0, 16));
    assert_eq!(results.groups.iter().map(|g| g.jobs.len()).collect::<Vec<_>>(), [2, 1, 1, 1]);
}

#[test]
fn files_are_laid_out_and_stay() {
    let text = "[global]\nsize=64k\n[a]\nnrfiles=4\n[b]\nrw=write\nfilename=w\nunlink=1\n";
    let (results, fs) = simulate(text, slow());
    assert_eq!(results.fault(), None);
    assert_eq!(fs.names(), ["a.0.0", "a.0.1", "a.0.2", "a.0.3"]);
}

#[test]
fn files_are_opened_as_the_job_says() {
    let of = |lines: &str| {
        let (_, fs) = simulate(&format!("[a]\nsize=64k\nfilename=f\n{lines}"), slow());
        fs.opened().pop().unwrap()
    };
    let (read, both) = (OpenFlags::READ, OpenFlags::READ | OpenFlags::WRITE);
    assert_eq!(of("direct=1\nsync=1"), ("f".into(), read | OpenFlags::DIRECT));
    assert_eq!(of("rw=write\nsync=1"), ("f".into(), both | OpenFlags::SYNC));
    assert_eq!(of("rw=randrw\nsync=dsync\nbuffered=0"), {
        ("f".into(), both | OpenFlags::DSYNC | OpenFlags::DIRECT)
    });
}

#[test]
fn a_job_that_fails_says_where_and_the_others_go_on() {
    let behaviour = Behaviour { capacity: Some(32 << 10), ..slow() };
    let text = "[a]\nsize=64k\nrw=write\nfallocate=none\n[b]\nsize=16k\n";
    let (results, _) = simulate(text, behaviour);
    let fault = results.fault().unwrap();
    assert_eq!(fault.errno, 28);
    assert!(fault.what.starts_with("job 'a': a.0.0: writing 4096 bytes at 32768: "), "{fault:?}");
    assert_eq!(figures(&results.entries[0]).1, 8);
    assert_eq!(figures(&results.entries[1]).0, 4);
}

#[test]
fn nothing_is_done_by_the_engine_null() {
    let entry = one("[a]\nioengine=null\nsize=100g\nrw=randread\nnorandommap\nnumber_ios=1000");
    assert_eq!(figures(&entry), (1000, 0, 0, 0));
}
