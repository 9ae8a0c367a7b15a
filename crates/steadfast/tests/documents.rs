//! JSON: every command that has `--json` prints one document, when all is well and when it is not.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// How long a command may take.
const LIMIT: Duration = Duration::from_secs(300);

/// The commands, how each is called well and badly, and what it prints then. `{S}` is the host's
/// socket.
const COMMANDS: &[(&str, &[Case])] = &[
    (
        "check",
        &[
            good("check --json a.img", "steadfast-check"),
            found("check --json broken.img", "steadfast-check"),
            bad("check --json nowhere.img", 2, "nowhere.img"),
            bad("check --json text", 2, "text"),
        ],
    ),
    (
        "info",
        &[
            good("info --json a.img", "steadfast-info"),
            bad("info --json nowhere.img", 2, "nowhere.img"),
            bad("info --json", 2, "<IMAGE>"),
        ],
    ),
    (
        "extents",
        &[
            good("extents --json a.img /lost+found", "steadfast-extents"),
            bad("extents --json a.img /none", 1, "no such file"),
        ],
    ),
    (
        "journal status",
        &[
            good("journal status --json a.img", "steadfast-journal"),
            bad("journal status --json nowhere.img", 2, "nowhere.img"),
        ],
    ),
    (
        "volume status",
        &[
            good("volume status --json l0 l1", "steadfast-volumes"),
            found("volume status --json a.img", "steadfast-volumes"),
            bad("volume status --json nowhere", 2, "nowhere"),
            bad("volume status --json --host={S} none", 2, "no such volume"),
        ],
    ),
    (
        "volume scrub",
        &[
            good("volume scrub --json l0 l1", "steadfast-scrub"),
            bad("volume scrub --json l0", 1, "missing"),
        ],
    ),
    (
        "pmem list",
        &[
            good("pmem list --json .", "steadfast-pmem"),
            bad("pmem list --json nowhere", 2, "nowhere"),
        ],
    ),
    (
        "pmem info",
        &[
            good("pmem info --json range", "steadfast-pmem-range"),
            bad("pmem info --json nowhere", 2, "nowhere"),
        ],
    ),
    (
        "host status",
        &[
            good("host status --json --socket {S}", "steadfast-host"),
            bad("host status --json --socket none", 2, "no host answers"),
        ],
    ),
    (
        "status",
        &[good("status --json", "steadfast-status"), bad("status --json nowhere", 2, "nowhere")],
    ),
    (
        "crash run",
        &[
            good("crash run --json --cuts 2 --linger 0.1 -- true", "steadfast-crash"),
            bad("crash run --json --fs minix -- true", 2, "minix"),
            bad("crash run --json --cuts many -- true", 2, "many"),
        ],
    ),
    (
        "lab run",
        &[
            good("lab run tiny.toml --json -", "steadfast-lab"),
            good("lab run tiny.toml --format json", "steadfast-lab"),
            bad("lab run none --json -", 2, "none"),
            bad("lab run tiny.toml --format json --seeds 0", 2, "--seeds 0"),
            bad("lab run tiny.toml --json - --cuts few", 2, "few"),
            bad("lab run none --json", 2, "--json"),
        ],
    ),
    (
        "lab show",
        &[bad("lab show none --format json", 2, "none"), bad("lab show none --json", 2, "none")],
    ),
    (
        "lab list",
        &[good("lab list --json", "steadfast-scenarios"), bad("lab list --json x", 2, "x")],
    ),
    (
        "lab keys",
        &[
            good("lab keys --json", "steadfast-keys"),
            bad("lab keys --json --markdown", 2, "--markdown"),
        ],
    ),
    (
        "lab drives",
        &[good("lab drives --json", "steadfast-drives"), bad("lab drives --json x", 2, "x")],
    ),
    (
        "lab check",
        &[
            good("lab check --json tiny.toml", "steadfast-lab-check"),
            bad("lab check --json none", 2, "none"),
        ],
    ),
    (
        "lab validate",
        &[
            good(
                concat!(
                    "lab validate --json --drive ",
                    env!("CARGO_MANIFEST_DIR"),
                    "/../lab/tests/validation/barracuda.toml"
                ),
                "steadfast-validation",
            ),
            good(
                concat!(
                    "lab validate --json --parts ",
                    env!("CARGO_MANIFEST_DIR"),
                    "/../lab/parts/mm-5425cn.toml"
                ),
                "steadfast-validation",
            ),
            bad("lab validate --json --drive nowhere", 2, "nowhere"),
            bad("lab validate --json --parts nowhere", 2, "nowhere"),
        ],
    ),
    (
        "lab compare",
        &[
            good(
                "lab compare --trace t.trace --only nvme --seeds 1 --cuts 1 --json -",
                "steadfast-comparison",
            ),
            bad("lab compare --trace nowhere --json -", 2, "nowhere"),
            bad("lab compare --trace t.trace --only none --json -", 2, "there is no stack `none`"),
        ],
    ),
    // What it prints is fio's form, and is looked at in `fio`.
    ("fio", &[]),
    (
        "trace import",
        &[
            good("trace import --json log -o i.trace", "steadfast-trace-import"),
            bad("trace import --json nowhere -o i.trace", 2, "nowhere"),
            bad("trace import --json text -o i.trace", 2, "neither strace"),
        ],
    ),
    (
        "trace show",
        &[
            good("trace show --json t.trace", "steadfast-trace-summary"),
            bad("trace show --json text", 2, "is no trace"),
        ],
    ),
    (
        "trace replay",
        &[
            good("trace replay --json t.trace .", "steadfast-trace-replay"),
            bad("trace replay --json t.trace nowhere", 2, "nowhere"),
        ],
    ),
    (
        "lab calibrate",
        &[
            // That of one that ends well is looked at in `cli`: here the machine may be busy.
            bad("lab calibrate --json nowhere", 2, "nowhere"),
        ],
    ),
    (
        "lab devices",
        &[
            good("lab devices --format json", "steadfast-devices"),
            bad("lab devices --format json nothing", 2, "nothing"),
            good("lab devices --json", "steadfast-devices"),
            bad("lab devices --json hdd", 2, "--json"),
        ],
    ),
    (
        "lab sensitivity",
        &[
            good("lab sensitivity tiny.toml --size 64k --json -", "steadfast-sensitivity"),
            bad("lab sensitivity none --json -", 2, "none"),
        ],
    ),
    (
        "sweep run",
        &[
            good("sweep run --plan plan.json -o swept --json", "steadfast-sweep-run"),
            good("sweep run --plan plan.json --case internal/speed/seed-1", "steadfast-sweep-case"),
            bad("sweep run --plan nowhere --json", 2, "nowhere"),
        ],
    ),
    (
        "sweep status",
        &[
            good("sweep status plan.json swept --json", "steadfast-sweep-status"),
            bad("sweep status nowhere swept --json", 2, "nowhere"),
        ],
    ),
    (
        "sweep merge",
        &[
            good("sweep merge plan.json swept --json -", "steadfast-lab"),
            bad("sweep merge plan.json text --json -", 1, "the results are refused"),
            bad("sweep merge --json - plan.json", 2, "<RESULTS>"),
        ],
    ),
    // Those that end well are looked at in `sweep`.
    ("sweep submit", &[bad("sweep submit SWEEP.toml --json -", 2, "--shards")]),
    (
        "iozone",
        &[
            good("iozone --json - -t 1 -s 64 -r 16 -i 0", "steadfast-iozone"),
            good("iozone --json - -s 64 -r 16 -i 0", "steadfast-iozone-matrix"),
            good("iozone --json - -a -n 64 -g 64 -i 0", "steadfast-iozone-matrix"),
            bad("iozone --json - -a -t 2", 2, "-a"),
        ],
    ),
];

struct Case {
    line: &'static str,
    status: i32,
    format: &'static str,
    says: &'static str,
}

/// A log of fio, to make a trace of.
const LOG: &str = "fio version 2 iolog\nf add\nf open\nf write 0 512\nf sync 0 0\nf close\n";

const fn good(line: &'static str, format: &'static str) -> Case {
    Case { line, status: 0, format, says: "" }
}

/// It did its work and found a problem.
const fn found(line: &'static str, format: &'static str) -> Case {
    Case { line, status: 1, format, says: "" }
}

const fn bad(line: &'static str, status: i32, says: &'static str) -> Case {
    Case { line, status, format: "steadfast-error", says }
}

const TINY: &str = r#"
version = 1
name = "tiny"
title = "A tiny scenario"
about = "For a test."
[workload]
iozone = "-o -t1 -s 64k -r 16k -i0"
quick_size = "64k"
risk_size = "64k"
cuts = 2
[device.disk]
kind = "ssd"
[device.card]
kind = "nvram"
[[variant]]
name = "internal"
label = "internal"
disk = "disk"
[[variant]]
name = "external"
label = "external"
disk = "disk"
journal = "card"
"#;

/// A folder with one of everything, and a host that runs.
struct Desk {
    folder: TempDir,
    host: Option<Child>,
}

impl Desk {
    fn new() -> Desk {
        let folder = tempfile::tempdir().unwrap();
        let mut desk = Desk { folder, host: None };
        let at = desk.path().to_path_buf();
        std::fs::write(at.join("tiny.toml"), TINY).unwrap();
        std::fs::write(at.join("log"), LOG).unwrap();
        std::fs::write(at.join("text"), vec![b'x'; 65536]).unwrap();
        for image in ["a.img", "broken.img"] {
            desk.done(&format!("mkfs -q {image} --size 16m"));
        }
        let mut bytes = std::fs::read(at.join("broken.img")).unwrap();
        bytes[1024 + 12] ^= 0xff;
        std::fs::write(at.join("broken.img"), bytes).unwrap();
        for leg in ["l0", "l1"] {
            std::fs::File::create(at.join(leg)).unwrap().set_len(16 << 20).unwrap();
        }
        std::fs::write(at.join("SWEEP.toml"), "[lab-run]\nscenario = \"tiny.toml\"\n").unwrap();
        let plan = desk.run("sweep plan SWEEP.toml --shards 1");
        std::fs::write(at.join("plan.json"), plan.stdout).unwrap();
        desk.done("volume create d0 l0 l1");
        desk.done("trace import log -o t.trace");
        desk.done("pmem create --emulate 4m range");
        std::fs::write(at.join("stack.toml"), "[ramdisk.ram0]\nsize = \"1m\"\n").unwrap();
        let mut host = desk.command("serve -f stack.toml --tree tree --socket s");
        desk.host = Some(host.stderr(Stdio::null()).stdin(Stdio::null()).spawn().unwrap());
        desk
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether the host answers; not without FUSE.
    fn has_host(&mut self) -> bool {
        let until = Instant::now() + Duration::from_secs(20);
        while Instant::now() < until {
            let ended = self.host.as_mut().unwrap().try_wait().unwrap().is_some();
            if ended || self.run("host status --socket s").status.success() {
                return !ended;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        false
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_steadfast"));
        command.args(line.split_whitespace()).current_dir(self.path());
        command.env("STEADFAST_RUNTIME_DIR", self.path().join("run"));
        command.env_remove("STEADFAST_SOCKET");
        command
    }

    fn run(&self, line: &str) -> Output {
        steadfast_suite::output(LIMIT, &mut self.command(line)).unwrap()
    }

    fn done(&self, line: &str) {
        let out = self.run(line);
        assert!(out.status.success(), "{line}: {}", String::from_utf8_lossy(&out.stderr));
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        if let Some(mut host) = self.host.take() {
            let _ = host.kill();
            let _ = steadfast_suite::ended(&mut host, LIMIT);
        }
        let tree = self.path().join("tree");
        let _ = Command::new("umount").arg("-l").arg(tree).stderr(Stdio::null()).status();
    }
}

/// What is wrong with what a command has printed.
fn look(case: &Case, out: &Output) -> Vec<String> {
    let mut wrong = Vec::new();
    let errors = String::from_utf8_lossy(&out.stderr);
    if out.status.code() != Some(case.status) {
        wrong.push(format!("status {:?}, not {}: {errors}", out.status.code(), case.status));
    }
    let found: Value = match serde_json::from_slice(&out.stdout) {
        Ok(found) => found,
        Err(e) => {
            wrong.push(format!("{e}: {:?}", String::from_utf8_lossy(&out.stdout)));
            return wrong;
        }
    };
    if found["format"] != case.format || !found["version"].is_u64() {
        wrong.push(format!("{} version {}", found["format"], found["version"]));
    }
    if case.format == "steadfast-error" {
        let error = &found["error"];
        let message = error["message"].as_str().unwrap_or_default();
        // The message for people is that without --json.
        if !message.contains(case.says) || !errors.contains(case.says) {
            wrong.push(format!("{message:?}, {errors:?} lack {:?}", case.says));
        }
        if error["exit_status"] != case.status {
            wrong.push(format!("its exit status is {}", error["exit_status"]));
        }
    }
    // A figure is a number.
    for (name, text) in texts("", &found) {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            wrong.push(format!("{name} is \"{text}\""));
        }
    }
    wrong
}

#[test]
#[allow(clippy::print_stdout, reason = "a test that did not run says so")]
fn every_command_prints_a_document_good_or_bad() {
    let mut desk = Desk::new();
    let has_host = desk.has_host();
    if !has_host {
        println!("SKIPPED: a host needs /dev/fuse");
    }
    let mut wrong = Vec::new();
    for case in COMMANDS.iter().flat_map(|(_, cases)| *cases) {
        if case.line.contains("{S}") && !has_host {
            continue;
        }
        let line = case.line.replace("{S}", "s");
        let out = desk.run(&line);
        wrong.extend(look(case, &out).into_iter().map(|what| format!("{line}: {what}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Where the document goes to a file, nothing is printed instead of it.
    for line in ["lab run none --json file", "lab run tiny.toml --json file --cuts few"] {
        assert!(desk.run(line).stdout.is_empty(), "{line}");
    }
}

/// All texts in a document, by their fields.
fn texts<'v>(name: &str, value: &'v Value) -> Vec<(String, &'v str)> {
    match value {
        Value::String(text) => vec![(name.to_owned(), text)],
        Value::Array(all) => all.iter().flat_map(|value| texts(name, value)).collect(),
        Value::Object(all) => {
            let each = all.iter();
            each.flat_map(|(field, value)| texts(&format!("{name}.{field}"), value)).collect()
        }
        _ => Vec::new(),
    }
}

/// The manual pages say which commands have the option: the table above has each of them.
#[test]
fn the_table_has_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let out = Command::new(env!("CARGO_BIN_EXE_steadfast"))
        .args(["man", "pages"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(out.status.success());
    let mut with = BTreeSet::new();
    for entry in std::fs::read_dir(folder.path().join("pages")).unwrap().map(Result::unwrap) {
        let page = std::fs::read_to_string(entry.path()).unwrap();
        let options = page.split(".SH").find(|section| section.starts_with(" OPTIONS"));
        let options = options.unwrap_or_default();
        let json = options.contains("\\-\\-json") || options.contains("JSON");
        if json {
            let name = entry.file_name().into_string().unwrap();
            let name = name.trim_start_matches("steadfast-").trim_end_matches(".1");
            with.insert(name.replace('-', " "));
        }
    }
    let table: BTreeSet<String> = COMMANDS.iter().map(|(name, _)| (*name).to_owned()).collect();
    let lacking: Vec<&String> = with.difference(&table).collect();
    assert!(with.len() > 10 && lacking.is_empty(), "{lacking:?} of {with:?}");
}
