//! The live view, as text and in a terminal (of `script`).

use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::{Desk, pattern};

const CONFIG: &str = "[volume.d10]\ncomponents = [\"a\", \"b\"]\n";
const ENTERS: &str = "\u{1b}[?1049h";
const LEAVES: &str = "\u{1b}[?1049l";

#[test]
fn one_frame_is_text_of_one_interval() {
    let mut desk = Desk::new(&["a", "b", "c"], CONFIG);
    desk.start();
    let file = desk.file("dsk/d10");
    let data = pattern(1, 1 << 20);
    let out = std::thread::scope(|scope| {
        let top = scope.spawn(|| desk.good("top --once --interval 1"));
        std::thread::sleep(Duration::from_millis(300));
        file.write_all_at(&data, 0).unwrap();
        top.join().unwrap()
    });
    let line = |name: &str| {
        let found = out.lines().find(|l| l.trim_start().starts_with(name));
        found.unwrap_or_else(|| panic!("{name}: {out}")).to_owned()
    };
    assert!(out.lines().all(|l| l.len() <= 80), "{out}");
    let columns: Vec<String> = line("d10 ").split_whitespace().map(str::to_owned).collect();
    assert_ne!(columns[4], "0", "written: {out}");
    assert_eq!(columns.last().unwrap(), "mirror", "{out}");
    assert!(line("a ").ends_with("Okay") && line("b ").ends_with("Okay"), "{out}");
    assert!(line("c ").ends_with("device"), "{out}");
}

#[test]
fn without_a_terminal_it_says_what_to_use() {
    let mut desk = Desk::new(&["a"], "");
    desk.bad("top --once", 2, "no host answers");
    desk.start();
    desk.bad("top", 2, "is no terminal: use steadfast top --once, or steadfast iostat");
    desk.bad("top --once --interval 0", 2, "no interval");
}

/// A terminal with a view in it; what it shows is collected.
struct Screen {
    script: Child,
    shown: std::sync::mpsc::Receiver<Vec<u8>>,
    text: String,
}

impl Screen {
    fn open(desk: &Desk) -> Screen {
        let program = env!("CARGO_BIN_EXE_steadfast");
        // The shell says who it is, and becomes the program.
        let line = format!("stty rows 24 cols 80; echo PID $$ .; exec {program} top -i 0.2");
        let mut script = Command::new("script");
        script.args(["-qefc", &line, "/dev/null"]).current_dir(desk.path());
        script.env("STEADFAST_RUNTIME_DIR", desk.path().join("run")).env("SHELL", "/bin/sh");
        script.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut script = script.spawn().unwrap();
        let (sender, shown) = std::sync::mpsc::channel();
        let mut out = script.stdout.take().unwrap();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = out.read(&mut bytes) {
                if sender.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Screen { script, shown, text: String::new() }
    }

    fn wait_for(&mut self, what: &str) {
        let until = Instant::now() + Duration::from_secs(20);
        while !self.text.contains(what) {
            assert!(Instant::now() < until, "no {what:?} in {:?}", self.text);
            if let Ok(bytes) = self.shown.recv_timeout(Duration::from_millis(100)) {
                self.text.push_str(&String::from_utf8_lossy(&bytes));
            }
        }
    }

    fn press(&mut self, keys: &str) {
        self.script.stdin.as_mut().unwrap().write_all(keys.as_bytes()).unwrap();
    }

    fn process(&self) -> String {
        let after = self.text.split("PID ").nth(1).unwrap();
        after.split_whitespace().next().unwrap().to_owned()
    }

    fn ends_with(&mut self, status: i32) {
        self.wait_for(LEAVES);
        let ended = self.script.wait().unwrap();
        assert_eq!(ended.code(), Some(status), "{:?}", self.text);
    }
}

#[test]
fn a_terminal_shows_it_and_is_left_as_it_was() {
    let mut desk = Desk::new(&["a", "b"], CONFIG);
    desk.start();
    let mut screen = Screen::open(&desk);
    screen.wait_for(ENTERS);
    screen.wait_for("mirror");
    // Both are read at once.
    screen.press("s?");
    // Only what changes is written: words may stand apart.
    screen.wait_for("lacks");
    screen.press("q");
    screen.ends_with(0);
    // Control-C is a key here; a signal comes from another process.
    let mut screen = Screen::open(&desk);
    screen.wait_for("mirror");
    screen.press("\u{3}");
    screen.ends_with(0);
    let mut screen = Screen::open(&desk);
    screen.wait_for("mirror");
    let killed = Command::new("kill").args(["-TERM", &screen.process()]).status().unwrap();
    assert!(killed.success());
    screen.ends_with(143);
    // The terminal is closed, without a word.
    let mut screen = Screen::open(&desk);
    screen.wait_for("mirror");
    let process = format!("/proc/{}", screen.process());
    screen.script.kill().unwrap();
    let until = Instant::now() + Duration::from_secs(20);
    while std::path::Path::new(&process).exists() {
        assert!(Instant::now() < until, "it goes on without a terminal");
        std::thread::sleep(Duration::from_millis(50));
    }
    // The host ends: it says so, and the keys are as before.
    let mut screen = Screen::open(&desk);
    screen.wait_for("mirror");
    desk.stop();
    screen.wait_for("answer:");
    screen.press("q");
    screen.ends_with(0);
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.script.kill();
        let _ = self.script.wait();
    }
}
