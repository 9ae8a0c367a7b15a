//! The control socket and what is not meant well.

use super::control::{python, ran};
use super::lab::{Lab, text};

#[test]
fn garbage_is_refused_and_the_next_one_is_answered() {
    let Some(lab) = Lab::new() else { return };
    let script = "
import socket

def connected():
    control = socket.socket(socket.AF_UNIX)
    control.connect(os.environ['STEADFAST_CONTROL'])
    return control

# Megabytes without an end: the connection ends.
control = connected()
try:
    control.sendall(b'mark ' + b'x' * (8 << 20))
except OSError:
    pass
try:
    assert not control.recv(1000).startswith(b'ok')
except OSError:
    pass
text = [b'mark', b'fail', b'{}', b'']
for garbage in [b'\\0' * 1000, bytes(range(128, 256)), b'\\xff\\n\\xfe'] + text:
    control = connected()
    control.sendall(garbage + b'\\n')
    answer = control.recv(65536)
    assert answer.startswith(b'error'), (garbage, answer)
# Many who say nothing.
silent = [connected() for n in range(200)]
mark('one')
# One that dies in the middle of its line has said nothing.
control = connected()
control.sendall(b'mark half a li')
control.close()
# Several requests at once, and one after the other.
control = connected()
control.sendall(b'mark two\\nmark three\\nnonsense\\nmark four\\n')
answers = control.makefile()
assert [answers.readline()[:5] for n in range(4)] == ['ok\\n', 'ok\\n', 'error', 'ok\\n']
control.sendall(b'mark five\\n')
assert answers.readline() == 'ok\\n'
put('f', 'x')
";
    let judge =
        "test ! -s f || test \"$(tr '\\n' ' ' < $STEADFAST_PRINTED)\" = 'one two three four five '";
    let (report, found) = ran(&lab, &["--cuts", "20", "--judge", judge], script);
    assert!(!found, "{report:#}");
    assert_eq!(report["control"]["marks"], 5, "{report:#}");
}

#[test]
fn a_flood_of_marks_is_counted() {
    let Some(lab) = Lab::new() else { return };
    let script = "
long = 'x' * 60_000
kept = 0
for n in range(1300):
    try:
        mark(f'{n} {long}')
        kept += 1
    except ControlError as e:
        assert 'too much was printed and marked' in str(e), e
assert 1000 < kept < 1200, kept
for n in range(1000):
    cut()
refused('cut', '1000 instants were named')
put('f', 'x')
";
    let program = python(&lab, script);
    let program: Vec<&str> = program.iter().map(String::as_str).collect();
    let words = ["run", "--linger", "0", "--cuts", "none", "--model", "none", "--"];
    let out = lab.crash(&[&words[..], &program].concat());
    let (said, errors) = (text(&out.stdout), text(&out.stderr));
    assert!(said.contains("the program ended with status 0"), "{said}\n{errors}");
    assert!(errors.contains("has printed or marked so much that"), "{errors}");
    assert!(said.contains("not measured"), "{said}");
    assert_eq!(out.status.code(), Some(0), "{said}");
}

/// What a judge does not see it cannot judge: that is no green result.
#[test]
fn lines_without_room_are_no_result() {
    let Some(lab) = Lab::new() else { return };
    let program = "yes | head -n 530000; echo LAST";
    let words = ["run", "--linger", "0", "--cuts", "2", "--model", "none", "--junit", "j.xml"];
    let judge = ["--judge", "! grep -q LAST $STEADFAST_PRINTED", "--", "sh", "-c", program];
    let out = lab.crash(&[&words[..], &judge].concat());
    let said = text(&out.stdout);
    assert_eq!(out.status.code(), Some(2), "{}", text(&out.stderr));
    assert!(said.contains("not judged"), "{}", &said[said.len().saturating_sub(900)..]);
    let report = std::fs::read_to_string(lab.path("j.xml")).unwrap();
    assert!(report.contains("<error") && report.contains("printed too much"), "{report}");
}

#[test]
fn another_user_is_refused() {
    let Some(lab) = Lab::new() else { return };
    let script = "
child = os.fork()
if child == 0:
    os.setgid(65534)
    os.setuid(65534)
    try:
        mark('mine')
    except PermissionError:
        os._exit(7)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
";
    let (report, found) = ran(&lab, &["--cuts", "none"], script);
    assert!(!found && report["control"]["marks"] == 0, "{report:#}");
}

/// The program goes, and who has left its group goes on talking: nothing is taken any more.
#[test]
fn after_the_run_nothing_is_taken() {
    let Some(lab) = Lab::new() else { return };
    let script = format!(
        "
import socket
control = socket.socket(socket.AF_UNIX)
control.connect(os.environ['STEADFAST_CONTROL'])
control.sendall(b'mark first\\n')
assert control.recv(10) == b'ok\\n'
if os.fork() == 0:
    os.setsid()
    for fd in (1, 2):
        os.close(fd)
    os.chdir('/')
    answers = []
    for n in range(200):
        time.sleep(0.02)
        try:
            control.sendall(b'mark late\\n')
            answers.append(control.recv(1000))
        except OSError as e:
            answers.append(b'closed')
        if answers[-1] != b'ok\\n':
            break
    with open({:?}, 'wb') as told:
        told.write(answers[-1])
",
        lab.path("told")
    );
    let judge = "sleep 0.2";
    let (report, _) = ran(&lab, &["--cuts", "10", "--judge", judge], &script);
    assert!(report["control"]["marks"].as_u64().unwrap() >= 1, "{report:#}");
    for _ in 0..300 {
        if std::fs::read(lab.path("told")).is_ok_and(|told| !told.is_empty()) {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let told = std::fs::read_to_string(lab.path("told")).unwrap();
    assert!(told == "error the run is over\n" || told == "closed", "{told:?}");
}
