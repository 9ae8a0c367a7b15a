//! Calls that are made to fail, and what the program does then.

use serde_json::Value;

use super::control::ran;
use super::lab::Lab;

/// Appends a record to a journal, whose next fsync fails; then what is given.
fn failed(then: &str) -> String {
    format!(
        "
journal = os.open('journal', os.O_RDWR | os.O_APPEND)
def append(text):
    os.write(journal, text.encode())
def sync():
    try:
        os.fsync(journal)
    except OSError as e:
        return os.strerror(e.errno)
print('acked 15', flush=True)
fail_next('fsync', 'journal', 'EIO')
append('record 16 ')
assert sync() == 'Input/output error'
{then}
"
    )
}

const SETUP: [&str; 4] = ["--setup", "touch journal; sync journal .", "--cuts", "20"];

/// What is found of the program's reaction.
fn reactions(report: &Value) -> Vec<&str> {
    report["control"]["findings"].as_array().unwrap().iter().map(|f| f.as_str().unwrap()).collect()
}

#[test]
fn who_goes_on_after_a_failed_fsync_is_found() {
    let Some(lab) = Lab::new() else { return };
    let went_on = "fsync of journal failed as asked (EIO), and the program went on";
    for (then, found) in [
        ("mark('acked 16')", format!("{went_on}: `acked 16` was marked")),
        ("print('acked 16', flush=True)", format!("{went_on}: `acked 16` was printed")),
        (
            "assert sync() is None\nmark('acked 16')",
            format!(
                "{went_on} (another sync, which succeeded, had nothing to write): `acked 16` was \
                 marked"
            ),
        ),
    ] {
        let (report, is_found) = ran(&lab, &SETUP, &failed(then));
        assert!(is_found, "{then}: {report:#}");
        assert_eq!(reactions(&report), [found], "{then}: {report:#}");
        assert_eq!(report["findings"], Value::Array(Vec::new()), "{then}: {report:#}");
    }
}

#[test]
fn who_does_something_about_it_is_not() {
    let Some(lab) = Lab::new() else { return };
    for then in [
        "",
        "print('cannot store 16', flush=True)",
        "os.ftruncate(journal, 0)\nappend('record 16')\nassert sync() is None\nmark('acked 16')",
        "put('journal.new', 'record 16')\nos.rename('journal.new', 'journal')\nmark('acked 16')",
        "put('other', 'record 17')\nmark('acked 17')",
    ] {
        let (report, is_found) = ran(&lab, &SETUP, &failed(then));
        assert!(!is_found && reactions(&report).is_empty(), "{then}: {report:#}");
    }
}

/// The judge knows what was acknowledged; the states by the calls lack what was lost.
#[test]
fn what_a_failed_fsync_has_lost_is_lost() {
    let Some(lab) = Lab::new() else { return };
    let judge = "! grep -q 'acked 16' \"$STEADFAST_PRINTED\" || grep -q 'record 16' journal";
    let options = [&SETUP[..], &["--judge", judge]].concat();
    let again = "assert sync() is None\nmark('acked 16')";
    let (report, found) = ran(&lab, &options, &failed(again));
    assert!(found, "{report:#}");
    assert_ne!(report["by_calls"]["findings"], Value::Array(Vec::new()), "{report:#}");
    assert!(reactions(&report).is_empty(), "with a judge the judge alone says it: {report:#}");
    let anew = "os.pwrite(os.open('journal', os.O_WRONLY), b'record 16 ', 0)\n\
                assert sync() is None\nmark('acked 16')";
    let (report, found) = ran(&lab, &options, &failed(anew));
    assert!(!found, "{report:#}");
}

#[test]
fn writes_fail_too_and_write_nothing() {
    let Some(lab) = Lab::new() else { return };
    let text = "
fail_next('write', os.path.abspath('journal'), 'ENOSPC', 2)
fail_next('fsync', '.', 'EDQUOT')
fail_next('fsync', 'never', times=3)
fail_next('write', 'nor this')
def error(call, *arguments):
    try:
        call(*arguments)
    except OSError as e:
        return os.strerror(e.errno)
journal = os.open('journal', os.O_WRONLY)
big = b'x' * (3 << 20)
for n in range(2):
    assert error(os.write, journal, big) == 'No space left on device'
assert os.fstat(journal).st_size == 0
assert error(os.fsync, os.open('.', os.O_RDONLY)) == 'Disk quota exceeded'
assert error(os.write, journal, b'y') is None
os.fsync(journal)
mark('wrote')
";
    let (report, found) = ran(&lab, &SETUP, text);
    assert!(!found, "{report:#}");
    let failed = report["control"]["failed"].as_array().unwrap();
    assert_eq!(failed.len(), 3, "{report:#}");
    let unmeasured = report["not_measured"].to_string();
    for never in ["fail next fsync of never: 3 of them never came", "write of nor this: it never"] {
        assert!(unmeasured.contains(never), "{report:#}");
    }
}

/// A recording keeps it all.
#[test]
fn a_recording_shows_what_failed() {
    let Some(lab) = Lab::new() else { return };
    let options = [&SETUP[..], &["--record", "run.crash"]].concat();
    let (report, found) =
        ran(&lab, &options, &failed("cut()\nmark('acked 16')\nput('f', 'x')\ncut()"));
    assert!(found, "{report:#}");
    let shown = |words: &[&str]| {
        super::lab::text(&lab.crash(&[&["show", "run.crash"], words].concat()).stdout)
    };
    let said = shown(&[]);
    assert!(said.contains("control   1 mark, 2 cuts, 1 failed call"), "{said}");
    assert!(said.contains("`acked 16` was\n") || said.contains("was marked"), "{said}");
    let states = report["states"].as_u64().unwrap();
    let last = shown(&["--cut", &(states - 1).to_string()]);
    for line in ["fsync journal (failed)", "asked for a cut here", "marked: acked 16"] {
        assert!(last.contains(line), "{last}");
    }
}
