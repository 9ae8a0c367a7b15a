//! The control socket: marks, instants and parts that the program names, and what is unsynced.

use serde_json::Value;

use super::lab::Lab;

/// What a script in Python begins with: the words of the control socket, and files.
const WORDS: &str = "
import os, sys, time
sys.dont_write_bytecode = True
sys.path.insert(0, sys.argv[1])
from steadfast_powercut import ControlError, ask, begin, cut, end, fail_next, mark, unsynced

def put(path, text, sync=True):
    with open(path, 'wb', buffering=0) as file:
        file.write(text.encode())
        if sync:
            os.fsync(file.fileno())

def refused(request, why):
    try:
        ask(request)
    except ControlError as e:
        assert why in str(e), e
    else:
        raise AssertionError(request)
";

/// Words that run a script in Python which has [`WORDS`].
pub fn python(lab: &Lab, text: &str) -> [String; 3] {
    let script = lab.script("program.py", &format!("{WORDS}\n{text}"));
    let helper = concat!(env!("CARGO_MANIFEST_DIR"), "/../../helpers/python");
    ["python3".into(), script, helper.into()]
}

/// Runs a script in Python under power cuts without lingering; the report, and whether something
/// was found.
pub fn ran(lab: &Lab, options: &[&str], text: &str) -> (Value, bool) {
    let program = python(lab, text);
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let (report, found) = lab.run(&[&["--linger", "0.1"], options, &["--"], &program].concat());
    let ended = &report["recorded"]["program"];
    assert_eq!(ended, "ended with status 0", "{report:#}");
    (report, found)
}

#[test]
fn marks_and_printed_lines_are_in_order() {
    let Some(lab) = Lab::new() else { return };
    let all: String = (0..60).map(|n| format!("printed {n}\nmarked {n}\n")).collect();
    let expected = lab.script("expected", &all);
    // Children may mark, too.
    let text = "
for n in range(60):
    print(f'printed {n}', flush=True)
    if n % 20 == 0:
        child = os.fork()
        if child == 0:
            mark(f'marked {n}')
            os._exit(0)
        os.waitpid(child, 0)
    else:
        mark(f'marked {n}')
    if n % 10 == 0:
        put('f', f'{n}')
";
    let judge =
        format!("head -n $(wc -l < $STEADFAST_PRINTED) {expected} | cmp - $STEADFAST_PRINTED");
    let (report, found) = ran(&lab, &["--cuts", "all", "--judge", &judge], text);
    assert!(!found, "{report:#}");
    assert_eq!(report["control"]["marks"], 60, "{report:#}");
    assert_eq!(report["recorded"]["lines"], 120, "{report:#}");
}

/// For a moment the two files differ, among many calls that change neither.
fn differ_for_a_moment(said: [&str; 3]) -> String {
    let [before, between, after] = said;
    format!(
        "
def rest():
    for n in range(300):
        put('x', f'{{n}}')

rest()
{before}
put('a', 'new')
{between}
put('b', 'new')
{after}
rest()
"
    )
}

const DIFFER: [&str; 8] = [
    "--device",
    "ram",
    "--setup",
    "printf old > a; printf old > b; sync a b .",
    "--judge",
    "cmp a b || test ! -s a -o ! -s b",
    "--model",
    "none",
];

#[test]
fn a_cut_that_is_asked_for_finds_what_few_cuts_do_not() {
    let Some(lab) = Lab::new() else { return };
    let run = |cuts, between| {
        let options = [&DIFFER[..], &["--cuts", cuts]].concat();
        ran(&lab, &options, &differ_for_a_moment(["", between, ""]))
    };
    for cuts in ["2", "none"] {
        let (report, found) = run(cuts, "");
        assert!(!found, "the control: {cuts}: {report:#}");
        let (report, found) = run(cuts, "cut()");
        assert!(found, "{cuts}: {report:#}");
        assert_eq!(report["control"]["cuts"], 1, "{report:#}");
    }
}

/// The same by the calls alone, of which there are more than instants.
#[test]
fn a_cut_that_is_asked_for_is_one_of_the_calls_too() {
    let Some(lab) = Lab::new() else { return };
    let options = [&DIFFER[..7], &["posix", "--cuts", "none"]].concat();
    let found = |between| {
        let (report, found) =
            ran(&lab, &options, &differ_for_a_moment(["begin()", between, "end()"]));
        assert_eq!(report["states"].as_u64().unwrap() > 0, between == "cut()", "{report:#}");
        found
    };
    assert!(found("cut()"));
    assert!(found(""), "the part has it, too");
}

#[test]
fn only_the_parts_are_explored() {
    let Some(lab) = Lab::new() else { return };
    let run = |said| {
        let options = [&DIFFER[..7], &["posix", "--cuts", "all", "--states", "4"]].concat();
        ran(&lab, &options, &differ_for_a_moment(said))
    };
    let (report, found) =
        run(["begin()\nput('x', 'in')\nend()", "", "begin()\nput('x', 'in')\nend()"]);
    assert!(!found, "{report:#}");
    assert_eq!(report["control"]["parts"], 2, "{report:#}");
    let few = report["cuts"].as_u64().unwrap();
    assert!((4..100).contains(&few), "{report:#}");
    let (report, found) = run(["", "begin()", ""]);
    assert!(found, "{report:#}");
    assert!(report["cuts"].as_u64().unwrap() > few, "{report:#}");
}

#[test]
fn what_is_unsynced_is_said() {
    let Some(lab) = Lab::new() else { return };
    let text = "
assert unsynced()['bytes'] == 0 and unsynced()['name_count'] == 0
file = open('new', 'wb', buffering=0)
file.write(b'0123456789')
file.write(b'abc')
now = unsynced()
assert (now['bytes'], now['calls'], now['names']) == (13, 2, ['create new']), now
assert [(f['path'], f['bytes'], f['calls']) for f in now['files']] == [('new', 13, 2)], now
time.sleep(0.05)
assert unsynced()['ms'] > 50, unsynced()
os.fsync(file.fileno())
now = unsynced()
assert (now['bytes'], now['files'], now['name_count']) == (0, [], 1), now
os.rename('new', 'old')
os.fsync(os.open('.', os.O_RDONLY))
assert unsynced()['name_count'] == 0, unsynced()
os.pwrite(file.fileno(), b'x', 0)
assert unsynced()['files'][0]['path'] == 'old', unsynced()
ask('checkpoint')
assert unsynced()['bytes'] == 0, unsynced()
os.write(os.open('durable', os.O_CREAT | os.O_WRONLY | os.O_DSYNC), b'x')
assert unsynced()['bytes'] == 0, unsynced()
";
    let (report, found) = ran(&lab, &["--cuts", "none"], text);
    assert!(!found, "{report:#}");
}

#[test]
fn lazyfs_words_come_by_a_fifo() {
    let Some(lab) = Lab::new() else { return };
    let script = "
exec 9> $STEADFAST_CONTROL_FIFO
echo kept > kept
echo lazyfs::unsynced-data-report >&9
echo lazyfs::clear-cache >&9
echo lazyfs::torn-op::file=kept::persist=1::parts=3 >&9
echo mark by the fifo >&9
sleep 0.3";
    let words = ["run", "--linger", "0.1", "--cuts", "none", "--", "sh", "-c", script];
    let out = lab.crash(&words);
    let (said, errors) = (super::lab::text(&out.stdout), super::lab::text(&out.stderr));
    assert!(said.contains("control   1 mark, 1 cut"), "{said}\n{errors}");
    assert!(errors.contains("\"path\":\"kept\""), "{errors}");
    assert!(errors.contains("lazyfs::torn-op is not understood here"), "{errors}");
}

/// The calls are seen in a mount over the kernel's.
#[test]
fn the_words_are_the_same_on_the_kernels_file_systems() {
    let Some(lab) = Lab::new() else { return };
    let text = "
put('f', 'text')
mark('put')
cut()
put('g', 'not synced', sync=False)
assert [f['path'] for f in unsynced()['files']] == ['g'], unsynced()
ask('checkpoint')
assert unsynced()['bytes'] == 0, unsynced()
";
    let judge = ["--judge", "test ! -s \"$STEADFAST_PRINTED\" || grep -q text f"];
    let options = ["--fs", "kernel-ext4", "--cuts", "none", "--model", "none"];
    let options = [&options[..], &judge].concat();
    let (report, found) = ran(&lab, &options, text);
    assert!(!found && report["cuts"] == 1, "{report:#}");
}
