//! fio's own example job files (Debian's package fio-examples; fio 3.33): their option lines. Each
//! runs in virtual time, at a smaller size, or is refused by the names of what is not here.

use std::time::Duration;

use crate::memory::Behaviour;
use crate::{planned, simulate};

/// Those that run: name, lines, sections.
const RUN: &[(&str, &str)] = &[
    (
        "aio-read",
        "[global]\nioengine=libaio\nbuffered=0\nrw=randread\nbs=128k\nsize=512m\ndirectory=/data1\n[file1]\niodepth=4\n[file2]\niodepth=32\n[file3]\niodepth=8\n[file4]\niodepth=16",
    ),
    ("backwards-read", "[backwards-read]\nbs=4k\nrw=read:-8k\nfilename=128m\nsize=128m"),
    (
        "fio-rand-RW",
        "[global]\nname=fio-rand-RW\nfilename=fio-rand-RW\nrw=randrw\nrwmixread=60\nrwmixwrite=40\nbs=4K\ndirect=0\nnumjobs=4\ntime_based\nruntime=900\n[file1]\nsize=10G\nioengine=libaio\niodepth=16",
    ),
    (
        "fio-rand-read",
        "[global]\nname=fio-rand-read\nfilename=fio-rand-read\nrw=randread\nbs=4K\ndirect=0\nnumjobs=1\ntime_based\nruntime=900\n[file1]\nsize=10G\nioengine=libaio\niodepth=16",
    ),
    (
        "fio-rand-write",
        "[global]\nname=fio-rand-write\nfilename=fio-rand-write\nrw=randwrite\nbs=4K\ndirect=0\nnumjobs=4\ntime_based\nruntime=900\n[file1]\nsize=10G\nioengine=libaio\niodepth=16",
    ),
    (
        "fio-seq-RW",
        "[global]\nname=fio-seq-RW\nfilename=fio-seq-RW\nrw=rw\nrwmixread=60\nrwmixwrite=40\nbs=256K\ndirect=0\nnumjobs=4\ntime_based\nruntime=900\n[file1]\nsize=10G\nioengine=libaio\niodepth=16",
    ),
    (
        "fio-seq-read",
        "[global]\nname=fio-seq-reads\nfilename=fio-seq-reads\nrw=read\nbs=256K\ndirect=1\nnumjobs=1\ntime_based\nruntime=900\n[file1]\nsize=10G\nioengine=libaio\niodepth=16",
    ),
    (
        "fio-seq-write",
        "[global]\nname=fio-seq-write\nfilename=fio-seq-write\nrw=write\nbs=256K\ndirect=0\nnumjobs=1\ntime_based\nruntime=900\n[file1]\nsize=10G\nioengine=libaio\niodepth=16",
    ),
    (
        "fixed-rate-submission",
        "[fixed-rate-submit]\nsize=128m\nrw=read\nioengine=libaio\niodepth=32\ndirect=1\nio_submit_mode=offload\nrate_iops=1000",
    ),
    (
        "fsx",
        "[file]\nioengine=libaio\niodepth=1\nrw=randrw\nsize=256k\nbs=4k\nnorandommap\ndirect=1\nloops=500000",
    ),
    (
        "iometer-file-access-server",
        "[global]\ndescription=Emulation of Intel IOmeter File Server Access Pattern\n[iometer]\nbssplit=512/10:1k/5:2k/5:4k/60:8k/2:16k/4:32k/4:64k/10\nrw=randrw\nrwmixread=80\ndirect=1\nsize=4g\nioengine=libaio\niodepth=64",
    ),
    (
        "jesd219",
        "[JESD219]\nioengine=libaio\ndirect=1\nrw=randrw\nnorandommap\nrandrepeat=0\nrwmixread=40\nrwmixwrite=60\niodepth=256\nnumjobs=4\nbssplit=512/4:1024/1:1536/1:2048/1:2560/1:3072/1:3584/1:4k/67:8k/10:16k/7:32k/3:64k/3\nblockalign=4k\nrandom_distribution=zoned:50/5:30/15:20/80\nfilename=/dev/nvme0n1\ngroup_reporting",
    ),
    (
        "basic-verify",
        "[write-and-verify]\nrw=randwrite\nbs=4k\ndirect=1\nioengine=libaio\niodepth=16\nverify=crc32c\nfilename=/dev/XXX",
    ),
    (
        "null",
        "[global]\nbs=4k\ngtod_reduce=1\n[null]\nioengine=null\nsize=100g\nrw=randread\nnorandommap",
    ),
    (
        "poisson-rate-submission",
        "[poisson-rate-submit]\nsize=128m\nrw=randread\nioengine=libaio\niodepth=32\ndirect=1\nio_submit_mode=offload\nrate_iops=50\nrate_process=poisson",
    ),
    (
        "rand-zones",
        "[zones]\nsize=2g\ndirect=1\nbs=4k\nrw=randread\nnorandommap\nrandom_distribution=zoned:50/5:30/15:20/",
    ),
    (
        "ssd-test",
        "[global]\nbs=4k\nioengine=libaio\niodepth=4\nsize=10g\ndirect=1\nruntime=60\ndirectory=/mount-point-of-ssd\nfilename=ssd.test.file\n[seq-read]\nrw=read\nstonewall\n[rand-read]\nrw=randread\nstonewall\n[seq-write]\nrw=write\nstonewall\n[rand-write]\nrw=randwrite\nstonewall",
    ),
    (
        "tiobench-example",
        "[global]\ndirect=1\nsize=512m\nbsrange=4k-4k\ntimeout=60\nnumjobs=4 ; of each\n[f1]\nrw=write\n[f2]\nstonewall\nrw=randwrite\n[f3]\nstonewall\nrw=read\n[f4]\nstonewall\nrw=randread",
    ),
    (
        "waitfor",
        "[global]\nthreads=1\ngroup_reporting\nfilename=/tmp/data\nfilesize=128m\n[writers]\nrw=write\nbs=128k\nnumjobs=4\nruntime=10\n[readers]\nnew_group\nwait_for=writers\nrw=randread\nbs=4k\nnumjobs=4\nruntime=10\n[writers2]\nnew_group\nwait_for=readers\nrw=randwrite\nbs=4k\nnumjobs=4\nruntime=10",
    ),
    (
        "zipf",
        "[job]\nioengine=null\nrw=randread\nnorandommap\nsize=1280m\nbs=4k\nrandom_distribution=zipf:0.5",
    ),
];

/// Those that are refused: name, lines, and what is named, each with its line.
const REFUSED: &[(&str, &str, &[&str])] = &[
    (
        "1mbs_clients",
        "[global]\nsize=32m\nrw=read\ndirectory=tmp\nrate=1250\nratemin=1024\n[file1]\nstartdelay=0",
        &["6: option 'ratemin'"],
    ),
    (
        "butterfly",
        "[global]\nfilename=/tmp/testfile\nbs=4k\ndirect=1\n[forward]\nrw=read\nflow=2\n[backward]\nrw=read:-8k\nflow=2",
        &["7: option 'flow'", "10: option 'flow'"],
    ),
    (
        "cpuio",
        "[global]\nioengine=cpuio\ntime_based\nruntime=15\n[burn]\ncpuload=50\nnumjobs=2\ncpumode=noop",
        &["2: option 'ioengine': 'cpuio'", "6: option 'cpuload'", "8: option 'cpumode'"],
    ),
    (
        "cross-stripe-verify",
        "[global]\nbs=16k\ndirect=1\nrw=write:112k\nverify=crc32c\nfilename=/dev/nvme0n1\nverify_backlog=1\noffset_increment=124g\nio_size=120g\noffset=120k\ngroup_reporting\nverify_dump=1\nloops=2\n[write-verify]\nnumjobs=30",
        &["7: option 'verify_backlog'"],
    ),
    (
        "dedupe-global",
        "[global]\nioengine=libaio\niodepth=256\nsize=100m\ndedupe_mode=working_set\ndedupe_global=1\ndedupe_percentage=50\nblocksize=4k\nrw=write\nbuffer_compress_percentage=50\n[a]\n[b]",
        &[
            "5: option 'dedupe_mode'",
            "6: option 'dedupe_global'",
            "7: option 'dedupe_percentage'",
            "10: option 'buffer_compress_percentage'",
        ],
    ),
    (
        "disk-zone-profile",
        "[global]\nbs=64k\ndirect=1\nrw=read\nioengine=libaio\niodepth=2\nzonemode=strided\nzonesize=256m\nzoneskip=2g\n[disk-zone-profile]\nfilename=/dev/sdb\nwrite_bw_log\nlog_offset=1",
        &[
            "7: option 'zonemode'",
            "8: option 'zonesize'",
            "9: option 'zoneskip'",
            "12: option 'write_bw_log'",
            "13: option 'log_offset'",
        ],
    ),
    (
        "exitwhat",
        "[global]\nfilename=/tmp/test\nfilesize=1G\nblocksize=4096\ngroup_reporting\nexitall=1\n[slow1]\nrw=read\nioengine=sync\nthinktime=2000\nnumber_ios=1000\nexit_what=stonewall",
        &["6: option 'exitall'", "12: option 'exit_what'"],
    ),
    (
        "falloc",
        "[global]\nioengine=falloc\nsize=100M\n[fuzzer]\nbssplit=4k/10:64k/50:32k/40\nrw=randwrite\n[punch]\nrw=randtrim",
        &["2: option 'ioengine': 'falloc'", "8: option 'rw': 'randtrim'"],
    ),
    (
        "latency-profile",
        "[global]\nbs=4k\nrw=randread\nrandom_generator=lfsr\ndirect=1\nioengine=libaio\niodepth=128\nlatency_target=500000\nlatency_window=5000000\nlatency_percentile=99.9\n[device]\nfilename=/dev/sda",
        &[
            "8: option 'latency_target'",
            "9: option 'latency_window'",
            "10: option 'latency_percentile'",
        ],
    ),
    (
        "numa",
        "[global]\nioengine=libaio\nbuffered=0\nrw=randread\nbs=512K\niodepth=16\nsize=512m\nfilename=/dev/sdb1\n[job1]\nnuma_cpu_nodes=0\nnuma_mem_policy=bind:0",
        &["10: option 'numa_cpu_nodes'", "11: option 'numa_mem_policy'"],
    ),
    (
        "ssd-steadystate",
        "[global]\nioengine=libaio\ndirect=1\nfilename=/dev/fioa\n[fill]\nrw=write\n[steady]\nstonewall\nrw=randwrite\nwrite_bw_log=fioa-steady-state",
        &["10: option 'write_bw_log'"],
    ),
    (
        "steadystate",
        "[global]\nthreads=1\ntime_based\nsize=128m\n[ss-write]\nfilename=/dev/null\nrw=write\nruntime=5m\nss=iops:10%\nss_dur=30s\nss_ramp=10s",
        &["9: option 'ss'", "10: option 'ss_dur'", "11: option 'ss_ramp'"],
    ),
    (
        "surface-scan",
        "[global]\nthread\nbs=64k\ndirect=1\nioengine=sync\nverify=meta\nverify_pattern=0xaa555aa5\nverify_interval=512\n[write-phase]\nfilename=datafile.tmp\nrw=write\nfill_device=1\ndo_verify=0",
        &["12: option 'fill_device'"],
    ),
    (
        "zbd-rand-write",
        "[global]\nname=zbd-rand-write\nrw=randwrite\nzonemode=zbd\nzonesize=256M\nmax_open_zones=32\nbs=512K\n[dev1]\nfilename=/dev/sdj\nioengine=psync",
        &["4: option 'zonemode'", "5: option 'zonesize'", "6: option 'max_open_zones'"],
    ),
];

/// The same job for less time and with smaller files.
fn small(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        let name = line.split('=').next().unwrap();
        match name {
            "size" | "filesize" => lines.push(format!("{name}=2m")),
            "runtime" | "timeout" => lines.push(format!("{name}=200ms")),
            "loops" => lines.push("loops=2".into()),
            "filename" if line.contains("/dev/") => lines.extend([line.into(), "size=2m".into()]),
            "ioengine" if line.contains("null") => {
                lines.extend([line.into(), "number_ios=5000".into()]);
            }
            _ => lines.push(line.into()),
        }
    }
    lines.join("\n")
}

#[test]
fn thirty_and_more_run_or_are_refused_by_name() {
    assert!(RUN.len() + REFUSED.len() >= 30);
    for (name, text) in RUN {
        let us = Duration::from_micros(100);
        let behaviour = Behaviour { read: us, write: us, fsync: us, ..Behaviour::default() };
        // The folders of the examples, of which this file system has none.
        let text = small(text).replace("=/data1", "=").replace("/mount-point-of-ssd", "");
        let text = text.replace("/dev/", "").replace("/tmp/", "").replace("directory=\n", "");
        let (results, _) = simulate(&text, behaviour);
        assert_eq!(results.fault(), None, "{name}");
        assert!(results.entries.iter().all(|e| e.figures.requests() > 0), "{name}");
    }
    for (name, text, named) in REFUSED {
        let wrong = planned(text).unwrap_err();
        let lines: Vec<&str> = wrong.lines().collect();
        assert_eq!(lines.len(), named.len(), "{name}: {wrong}");
        for (line, what) in lines.iter().zip(*named) {
            assert!(line.starts_with(&format!("a.fio:{what}")), "{name}: {line}");
        }
    }
}
