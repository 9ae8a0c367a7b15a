//! A host that starts with less than it should have says so.

use std::fs;
use std::process::Stdio;

use super::{Desk, LIMIT};

const MIRROR: &str = "[volume.d10]\ncomponents = [\"a\", \"b\"]\n";

/// Ends a host in the background also where a test has failed.
struct Ended<'d>(&'d Desk);

impl Drop for Ended<'_> {
    fn drop(&mut self) {
        // OK to ignore: it has ended, most likely.
        self.0.run("host stop");
    }
}

/// Starts it in the background, as a person does; what is said on the terminal.
fn started(desk: &Desk) -> String {
    let mut command = desk.command();
    command.args(["serve", "stack.toml", "--tree", "tree", "--log", "log", "--metrics"]);
    command.arg(format!("unix:{}", desk.path().join("metrics").display()));
    command.stdin(Stdio::null());
    let out = steadfast_suite::output(LIMIT, &mut command).unwrap();
    assert!(out.status.success(), "{out:?}\n{}", desk.log());
    String::from_utf8(out.stderr).unwrap()
}

/// What three commands and the metrics say of a mirror that has lost a leg: this.
fn all_say(desk: &Desk, what: &str) {
    for command in ["host status", "volume status d10"] {
        let out = desk.run(command);
        let text = String::from_utf8_lossy(&out.stdout).replace("\n            ", "");
        assert_eq!(out.status.code(), Some(1), "{command}: {text}");
        let line = text.lines().find(|line| line.contains("degraded: "));
        let line = line.unwrap_or_else(|| panic!("{command}: {text}")).to_owned();
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(what), "{command}: {line}");
    }
    let volume = desk.volume("d10");
    assert!(volume["degraded"][0].as_str().unwrap().contains(what), "{volume:#}");
    assert_eq!(volume["mirror"]["whole"], false);
    let text = super::kinds::metrics(desk);
    for line in ["steadfast_volume_whole{volume=\"d10\"} 0", "steadfast_problems 1"] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
}

/// A leg that was removed while no host ran: its labels know nothing of it.
#[test]
fn a_component_that_is_no_leg_is_no_secret() {
    let desk = Desk::new(&["a", "b"], MIRROR);
    let _ended = Ended(&desk);
    assert_eq!(started(&desk), "");
    assert!(desk.good("host status").contains("d10") && !desk.log().contains("degraded"));
    desk.good("host stop");
    desk.good("volume remove a b --leg 1");
    let said = started(&desk);
    let what = "component 'b' is no leg, its labels do not know it";
    assert!(said.contains(&format!("warning: volume 'd10': degraded: {what}")), "{said}");
    assert!(desk.log().contains(&format!("d10: degraded: {what}")), "{}", desk.log());
    all_say(&desk, what);
    // Both ways out work: it is made a leg again ...
    desk.good("volume add d10 --leg b");
    desk.wait_until_whole("d10");
    desk.good("host status");
    desk.good("host stop");
    desk.good("volume remove a b --leg 1");
    assert!(started(&desk).contains(what));
    // ... or forgotten, which is kept.
    desk.good("volume remove d10 --leg b");
    desk.good("host status");
    desk.good("host stop");
    assert_eq!(started(&desk), "");
    desk.good("host status");
    desk.good("host stop");
}

/// A blank disk has the name of a leg, and a leg was taken offline.
#[test]
fn a_leg_that_is_away_is_no_secret() {
    let desk = Desk::new(&["a", "b"], MIRROR);
    let _ended = Ended(&desk);
    assert_eq!(started(&desk), "");
    desk.good("volume offline d10 --leg b");
    desk.good("host stop");
    let said = started(&desk);
    assert!(said.contains("degraded: leg 1 (b) is Offline"), "{said}");
    all_say(&desk, "leg 1 (b) is Offline");
    desk.good("volume online d10 --leg b");
    desk.wait_until_whole("d10");
    desk.good("host stop");
    fs::File::create(desk.path().join("b")).unwrap().set_len(16 << 20).unwrap();
    // A mirror that lost a leg behind its back starts by itself only where the others know of it.
    let said = started(&desk);
    let says = desk.run("host status");
    assert_eq!(says.status.code(), Some(1), "{says:?}");
    assert!(said.contains("warning: volume 'd10': "), "{said}");
    desk.good("host stop");
    // A device that is not there is said the same way.
    fs::remove_file(desk.path().join("b")).unwrap();
    let said = started(&desk);
    assert!(said.contains("warning: device 'b': "), "{said}");
    desk.good("host stop");
}
