//! The kernel's verdict: it replays the journal by itself and sees the transaction point.

use std::path::Path;
use std::process::{Command, Output};

use steadfast_block::rng::Rng;
use steadfast_crash::points::Snapshot;
use steadfast_devices::store::Store;
use steadfast_host::Mount;
use steadfast_vfs::{FileSystem, HostFs};

use crate::PLAIN;
use crate::cut::run_points;

fn run(program: &str, arguments: &[&str]) -> Output {
    let out = Command::new("timeout").args(["-s", "KILL", "60", program]).args(arguments).output();
    out.unwrap_or_else(|e| panic!("{program}: {e}"))
}

/// What the kernel sees on an image that a power cut has left.
fn seen_by_the_kernel(disk: &Store, folder: &Path) -> Snapshot {
    let image = folder.join("image");
    disk.export(&image).unwrap();
    let mount = Mount::of_image(&image, None, "noatime")
        .unwrap_or_else(|e| panic!("{e} (this test needs root and loop devices)"));
    let fs = HostFs::open(mount.path()).unwrap();
    let seen = Snapshot::take(&fs, fs.root()).unwrap();
    drop(fs);
    mount.unmount().unwrap();
    seen
}

#[test]
fn the_kernel_sees_the_last_point() {
    assert!(is_root(), "this test mounts with the kernel: it needs root and loop devices");
    let folder = tempfile::tempdir().unwrap();
    let (recorded, points) = run_points(PLAIN, 7);
    let mut rng = Rng::new(7);
    let (first, last) = (recorded.recording.first_cut(), recorded.recording.last_cut());
    let (mut judged, wanted) = (0, crate::cuts(20));
    while judged < wanted {
        let cut = first + 1 + rng.below(last - first);
        let keep = [0, 50, 100][rng.below(3) as usize];
        let [disk, _] = recorded.contents(cut, keep, &mut rng);
        if points.judge(&Snapshot::default(), cut).is_err_and(|e| e.starts_with("no point")) {
            continue;
        }
        let left = seen_by_the_kernel(&disk, folder.path());
        points.judge(&left, cut).unwrap_or_else(|e| panic!("cut {cut}, keep {keep} %: {e}"));
        judged += 1;
    }
}

fn is_root() -> bool {
    let id = run("id", &["-u"]);
    String::from_utf8_lossy(&id.stdout).trim() == "0"
}
