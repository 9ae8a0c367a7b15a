//! The disk model against five real drives, of DiskSim's validation sets. Traces and parameters are
//! from there (COPYING); the parameters are in our form, as `lab validate --save-device` writes
//! them.

mod parts;

use std::path::Path;

use steadfast_devices::model::ModelParams;
use steadfast_lab::validate::{self, Drive};
use steadfast_setup::Setup;

fn drives() -> Vec<Drive> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/validation");
    validate::drives(&folder).unwrap().into_iter().map(Result::unwrap).collect()
}

#[test]
fn no_drive_is_farther_off_than_with_disksim() {
    let all: Vec<_> = drives().iter().map(|drive| validate::validate(drive).unwrap()).collect();
    assert_eq!(all.len(), 5);
    let text = validate::text(&all);
    for v in &all {
        assert_eq!(v.is_within_disksim(), Some(true), "{}\n{text}", v.name);
        // A model that knows less is farther off: the figure can be otherwise.
        let sheet = v.sheet.as_ref().unwrap();
        let (ours, sheet) = (v.times.demerits().all, sheet.demerits().all);
        assert!(sheet > ours, "{}\n{text}", v.name);
    }
    assert!(text.starts_with("The model's times are at most as far"), "{text}");
    assert!(text.lines().all(|line| line.len() <= 80), "{text}");
    assert_eq!(validate::svg(&all).matches("<svg").count(), 1 + all.len());
}

#[test]
fn what_is_saved_is_the_same_drive() {
    for drive in drives() {
        let folder = tempfile::tempdir().unwrap();
        let text = validate::device("mine", &drive.parameters);
        std::fs::write(folder.path().join("d.toml"), &text).unwrap();
        std::fs::write(folder.path().join("d.trace"), "R Miss 0 1 1000 0\n").unwrap();
        let again = validate::drives(folder.path()).unwrap().remove(0).unwrap();
        assert_eq!(again.parameters, drive.parameters, "{}", drive.name);
        let setup = Setup::parse(&text, "d.toml").unwrap();
        let device = setup.topology.devices["mine"].model();
        assert_eq!(device, Some(&ModelParams::Hdd(drive.parameters)), "{}", drive.name);
    }
}

/// One that cannot be read hides no other.
#[test]
fn each_drive_of_a_folder_is_read() {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("bad", "kind = 7"), ("good", "kind = \"hdd\"")] {
        std::fs::write(folder.path().join(format!("{name}.toml")), text).unwrap();
        let trace = folder.path().join(format!("{name}.trace"));
        std::fs::write(trace, "R Miss 0 1 1000 0\n").unwrap();
    }
    let found = validate::drives(folder.path()).unwrap();
    let names: Vec<_> = found.iter().map(|d| d.as_ref().map(|d| d.name.as_str()).ok()).collect();
    assert_eq!(names, [None, Some("good")]);
}

/// All of them, or the first that is wrong.
fn all(path: &Path) -> Result<Vec<Drive>, validate::ValidateError> {
    validate::drives(path)?.into_iter().collect()
}

/// A drive of two cylinders in DiskSim's form, and its trace.
fn small(parv: &str, trace: &str) -> Result<Vec<Drive>, String> {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("d.parv"), parv).unwrap();
    std::fs::write(folder.path().join("d.trace"), trace).unwrap();
    all(folder.path()).map_err(|e| {
        let place = format!("{}/", folder.path().display());
        e.to_string().replace(&place, "")
    })
}

const SMALL: &str = "\
disksim_disk D {
  Model = dm_disk M {
    Number of data surfaces = 2, Number of cylinders = 2,
    Layout Model = dm_layout_g1 { Sparing scheme used = 1, Zones = [ dm_layout_g1_zone {
      First cylinder number = 0, Last cylinder number = 1, Blocks per track = 10,
      Skew for track switch = 2, Skew for cylinder switch = 3, Number of spares = 1,
      slips = [ 1 ], defects = [] } ] },
    Mechanical Model = dm_mech_g1 { Seek type = constant, Average seek time = 2.5,
      Head switch time = 1, Rotation speed (in rpms) = 6000 }
  },
  Number of buffer segments = 2, Segment size (in blks) = 20, Never disconnect = 1,
  Bulk sector transfer time = 0.001, Enable caching in buffer = 1
}
";

#[test]
fn a_parameter_file_becomes_a_drive() {
    let drives = small(SMALL, "R Miss 0 1 1000 0\nW Hit 29 1 5000 100\n").unwrap();
    let p = &drives[0].parameters;
    assert_eq!((drives[0].requests.len(), p.sectors, p.heads), (2, 30, 2));
    assert_eq!(p.zone_table[0].slipped, [(10, 10)]);
    assert_eq!(drives[0].left_out.len(), 1);
    let found = validate::validate(&drives[0]).unwrap();
    assert_eq!(found.is_within_disksim(), None);
    assert!(validate::text(&[found]).contains("Never disconnect"));
}

#[test]
fn keys_that_disksim_does_not_have_are_refused() {
    let wrong = |from: &str, to: &str| {
        assert!(SMALL.contains(from));
        small(&SMALL.replace(from, to), "R Miss 0 1 1000 0\n").unwrap_err()
    };
    assert_eq!(
        wrong("Head switch time", "Head swap time"),
        "d.parv: 'Head swap time' in dm_mech_g1: is no key of DiskSim's; did you mean 'Head \
         switch time'?"
    );
    assert!(wrong("used = 1", "used = 77").contains("is 77, but goes from 0 to 10"));
    assert!(wrong("spares = 1", "spares = nan").contains("has the wrong form"));
    assert!(wrong("spares = 1", "spares = -1").contains("is -1, but goes from 0"));
    assert!(wrong("slips = [ 1 ]", "slips = [ x ]").contains("what is no number"));
}

/// What stands in several frames, in files that others name, or in a part of a set.
#[test]
fn all_of_a_drive_is_read_and_no_more_is_compared() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("a.specs"), "source b.specs").unwrap();
    std::fs::write(at("b.specs"), SMALL).unwrap();
    std::fs::write(at("barracuda.parv"), "source a.specs").unwrap();
    let frame = |text: &[u8]| {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    };
    let frames = [frame(b"R Miss 0 1 1000 0\n"), frame(b"R Miss 5 1 1000 0\n")].concat();
    std::fs::write(at("barracuda.trace.zst"), frames).unwrap();
    let drive = all(folder.path()).unwrap().remove(0);
    assert_eq!(drive.requests.len(), 2);
    assert_eq!(drive.files.len(), 4, "{:?}", drive.files);
    assert_eq!(validate::validate(&drive).unwrap().disksim_ms, None);
    std::fs::write(at("b.specs"), "source a.specs").unwrap();
    let circle = all(folder.path()).unwrap_err().to_string();
    assert!(circle.contains("names more than 32 files"), "{circle}");
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    let wrong = |parv: &str, trace: &str| small(parv, trace).unwrap_err();
    let good = "R Miss 0 1 1000 0\n";
    assert_eq!(
        wrong(SMALL, "R Miss 0 1 1000 0\nR Miss 30 1 5 5\n"),
        "d.trace: line 2: 1 sectors at 30 are not on the drive, which has 30"
    );
    assert_eq!(wrong("nothing", good), "d.parv: line 1: 'nothing' begins no block");
    assert_eq!(
        wrong("source x.diskspecs", good),
        "d.parv: names x.diskspecs, which is not beside it"
    );
    assert_eq!(wrong("a B { c = 1 }", good), "d.parv: has no block disksim_disk");
    let seeks = SMALL.replace("Seek type = constant", "Seek type = extracted");
    assert!(
        wrong(&seeks, good).contains("'Full seek curve' is missing"),
        "{}",
        wrong(&seeks, good)
    );
    let access = SMALL.replace("Seek type", "Access time type = averageRotation, Seek type");
    assert!(wrong(&access, good).contains("averageRotation"));
    let wide = SMALL.replace("Blocks per track = 10", "Blocks per track = 1e9");
    assert!(wrong(&wide, good).contains("sectors a track"), "{}", wrong(&wide, good));
    let empty = tempfile::tempdir().unwrap();
    assert!(all(empty.path()).unwrap_err().to_string().contains("holds no NAME.parv"));
    let broken = empty.path().join("d.parv.zst");
    std::fs::write(&broken, "no archive").unwrap();
    assert!(all(&broken).unwrap_err().to_string().contains("not compressed by zstd"));
}
