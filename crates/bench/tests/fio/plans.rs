//! What is refused, with its line, and which files and groups a plan has.

use steadfast_bench::fio::{AbsoluteRoot, JobFile, PlanTarget, plan};

use crate::{BareSurroundings, planned};

fn wrong(text: &str) -> String {
    planned(text).unwrap_err()
}

#[test]
fn options_that_are_not_there_are_named_all_at_once() {
    let text = "[global]\nzonemode=zbd\n[a]\nfoo=1\nrw=trim\nsize=1m\n[b]\nbs=0\niodepth=\n";
    assert_eq!(
        wrong(text),
        "a.fio:2: option 'zonemode' of fio is not supported: files have no zones\n\
         a.fio:4: option 'foo' of fio is not supported\n\
         a.fio:5: option 'rw': 'trim': trims are of block devices, and files have none\n\
         a.fio:8: option 'bs': a request of 0 bytes\n\
         a.fio:9: option 'iodepth': '' is not a number; with k, m, g, t or p behind it it is a size"
    );
    assert_eq!(wrong("[a]\nsize"), "a.fio:2: option 'size' needs a value: a size, or a share in %");
}

#[test]
fn what_cannot_be_is_refused() {
    for (text, why) in [
        ("size=1m\nnumjobs=1000000000", "3: option 'numjobs': '1000000000' is not from 1 to 4096"),
        ("size=1m\niodepth=99999", "'99999' is not from 1 to 4096"),
        ("size=99999999999999t", "is too large"),
        ("size=9999p", "more than 1152921504606846976 bytes"),
        ("", "size is missing, and 'j.0.0' is not there"),
        ("size=50%", "size is missing, and 'j.0.0' is not there"),
        ("size=1k", "no file has room for a request of 4096 bytes"),
        ("size=1m\ntime_based", "a.fio:3: time_based needs runtime"),
        ("size=1m\nrate=1m\nrate_iops=5", "a.fio:4: rate and rate_iops exclude each other"),
        ("size=1m\ndirect=1\nbs=1000", "a.fio:4: direct=1 needs multiples of 512 bytes"),
        ("size=1m\nverify=md5\nbs=1000", "verify needs requests in multiples of 512 bytes"),
        ("size=4t\nbs=2g", "a request of 2147483648 bytes"),
        ("size=64m\nbs=1m\nioengine=libaio\niodepth=4096\nnumjobs=2", "make 8192 requests"),
        ("size=1g\nbs=512m\nioengine=libaio\niodepth=64", "have 34359738368 bytes"),
        ("size=100t\nbs=4k\nrw=randread", "norandommap=1 does without"),
        ("size=1t\nrw=randread\nrandom_distribution=zipf:1.1", "over more than 16777216 blocks"),
        ("size=1m\nfilename=../x", "\"..\" may lead out of the folder"),
        ("size=1m\nwait_for=k", "wait_for: no job 'k' is before it"),
        ("size=1m\nrw=randwrite\nverify=1\nioengine=libaio\niodepth=4\nnorandommap", "needs a map"),
        ("size=1m\nrw=write\nverify=1\nzero_buffers", "zeros do not say which block"),
        ("size=1g\nnrfiles=65536\nnumjobs=4096", "files altogether"),
        ("size=1m\npercentile_list=101", "'101' is no percentile"),
        ("size=1m\nioengine=mmap", "has no mappings"),
        ("size=1m\nioengine=net", "the engine 'net' of fio is not supported"),
        ("size=1m\nrandom_distribution=zipg:1", "there is no distribution `zipg:1`"),
    ] {
        let found = wrong(&format!("[j]\n{text}\n"));
        assert!(found.contains(why), "{text}: {found}");
    }
}

#[test]
fn an_engine_of_fios_that_is_not_here_is_no_mistake() {
    let is_unsupported = |engine: &str| {
        let text = format!("[j]\nsize=1m\nioengine={engine}\n");
        let file = JobFile { name: "a.fio".into(), text };
        let target = PlanTarget { root: AbsoluteRoot::FileSystem, existing: &|_| None, only: &[] };
        let planned = plan(&[file], &BareSurroundings(String::new()), &target);
        planned.unwrap_err().is_unsupported()
    };
    assert_eq!(["net", "mmap", "nosuch"].map(is_unsupported), [true, true, false]);
}

#[test]
fn clones_have_names_and_groups() {
    let text = "[global]\nsize=8m\nnrfiles=2\n[a/b]\nnumjobs=2\n[c]\nstonewall\nfilename=x:y\n\
                directory=/d\noffset=1m\n[e]\n[f]\nnew_group\nfilename_format=$jobname-$filenum\n";
    let jobs = planned(text).unwrap().jobs;
    let of = |at: usize| {
        let files = jobs[at].files.iter().map(|f| format!("{} {}+{}", f.path, f.start, f.len));
        (jobs[at].group, files.collect::<Vec<_>>().join(", "))
    };
    assert_eq!(of(0), (0, "a.b.0.0 0+4194304, a.b.0.1 0+4194304".into()));
    assert_eq!(of(1), (0, "a.b.1.0 0+4194304, a.b.1.1 0+4194304".into()));
    assert_eq!(of(2), (1, "/d/x 1048576+4194304, /d/y 1048576+4194304".into()));
    assert_eq!(of(3).0, 1);
    assert_eq!(of(4), (2, "f-0 0+4194304, f-1 0+4194304".into()));
}

#[test]
fn absolute_paths_are_below_the_folder() {
    let root = AbsoluteRoot::Folder("/home/me".into());
    let target = PlanTarget { root, existing: &|_| Some(1 << 20), only: &[] };
    let of = |text: &str| {
        let file = JobFile { name: "a.fio".into(), text: text.into() };
        let planned =
            plan(&[file], &BareSurroundings(String::new()), &target).map_err(|e| e.to_string());
        planned.map(|plan| plan.jobs[0].files[0].path.clone())
    };
    assert_eq!(of("[a]\nfilename=/home/me/x/f"), Ok("x/f".into()));
    assert_eq!(of("[a]\nfilename=f"), Ok("f".into()));
    for path in ["/home/meow/f", "/dev/sda", "/home/me"] {
        let error = of(&format!("[a]\nfilename={path}")).unwrap_err();
        assert!(error.starts_with("a.fio:2: ") && error.contains("--folder"), "{error}");
    }
}

#[test]
fn lines_without_effect_are_said() {
    let plan = planned("[a]\nsize=1m\nmem=mmap\niodepth=8\n").unwrap();
    assert_eq!(
        plan.notes,
        [
            "a.fio:3: 'mem' has no effect here: there is one kind of memory",
            "a.fio:4: the engine psync has one request in flight, not more",
        ]
    );
}

#[test]
fn only_named_sections_run() {
    let only = ["b".to_owned()];
    let target = PlanTarget { root: AbsoluteRoot::FileSystem, existing: &|_| None, only: &only };
    let of = |text: &str| {
        let file = JobFile { name: "a.fio".into(), text: text.into() };
        plan(&[file], &BareSurroundings(String::new()), &target).map_err(|e| e.to_string())
    };
    let planned = of("[a]\nsize=1m\n[b]\nsize=1m\n[b]\nsize=2m\n").unwrap();
    assert_eq!(planned.jobs.iter().map(|j| j.total).collect::<Vec<_>>(), [1 << 20, 2 << 20]);
    assert_eq!(of("[a]\nsize=1m").unwrap_err(), "a.fio:1: there is no section 'b'");
}
