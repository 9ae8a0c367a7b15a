//! Examples of the commands whose help has no other words of its own.

/// A command as it is called, and its examples, a line each.
const EXAMPLES: [(&str, &[&str]); 29] = [
    (
        "crash",
        &[
            "steadfast crash run -- ./program          cut the power of its run",
            "steadfast crash show run.crash --cut 17   what happened in state 17",
        ],
    ),
    (
        "host",
        &[
            "steadfast host status",
            "steadfast host create-ramdisk fast 256m",
            "steadfast host stop",
        ],
    ),
    ("host alias", &["steadfast host alias c0d1s0 disk1"]),
    ("host delete-ramdisk", &["steadfast host delete-ramdisk fast"]),
    ("host remove-device", &["steadfast host remove-device disk1"]),
    ("host stop", &["steadfast host stop"]),
    ("host sync", &["steadfast host sync && echo all of it is durable"]),
    (
        "journal",
        &[
            "steadfast journal status disk.img",
            "steadfast journal move /dev/md0 --device /dev/nvme0n1p4",
        ],
    ),
    (
        "lab",
        &[
            "steadfast lab list                       the scenarios",
            "steadfast lab run nvram-journal          run one",
            "steadfast lab scenario nvram-journal > mine.toml    begin one of your own",
        ],
    ),
    (
        "lab drives",
        &["steadfast lab drives", "steadfast lab drives --json | jq -r '.drives[].name'"],
    ),
    ("lab keys", &["steadfast lab keys", "steadfast lab keys --json | jq '.keys | length'"]),
    ("lab list", &["steadfast lab list", "steadfast lab list --json | jq -r '.scenarios[].name'"]),
    ("pmem", &["steadfast pmem create --emulate 1g /dev/shm/x", "steadfast pmem list"]),
    ("svm metaclear", &["steadfast svm metaclear -r d10", "steadfast svm metaclear -a"]),
    ("svm metadb", &["steadfast svm metadb -i"]),
    ("svm metadetach", &["steadfast svm metadetach d10 d12"]),
    ("svm metahs", &["steadfast svm metahs -a d10 c0d3s0", "steadfast svm metahs -i"]),
    (
        "svm metainit",
        &["steadfast svm metainit d11 1 1 c0d1s0", "steadfast svm metainit d10 -m d11"],
    ),
    ("svm metaoffline", &["steadfast svm metaoffline d10 d12"]),
    ("svm metaonline", &["steadfast svm metaonline d10 d12"]),
    ("svm metaparam", &["steadfast svm metaparam -r first d10"]),
    ("svm metareplace", &["steadfast svm metareplace -e d10 c0d2s0"]),
    ("svm metastat", &["steadfast svm metastat -p d10", "steadfast svm metastat -c"]),
    ("svm metasync", &["steadfast svm metasync d10"]),
    ("svm metattach", &["steadfast svm metattach d10 d12"]),
    (
        "svm ramdiskadm",
        &["steadfast svm ramdiskadm -a fast 256m", "steadfast svm ramdiskadm -d fast"],
    ),
    (
        "sweep",
        &[
            "steadfast sweep plan sweep.toml --shards 8 > plan.json",
            "steadfast sweep run --plan plan.json --shard 3 -o results",
            "steadfast sweep merge plan.json results/",
        ],
    ),
    (
        "trace",
        &["steadfast trace record -o app.trace -- ./program", "steadfast trace show app.trace"],
    ),
    (
        "volume",
        &[
            "steadfast volume create d10 disk1.img disk2.img",
            "steadfast volume status disk1.img disk2.img",
        ],
    ),
];

/// Those of a command, as they stand behind its help.
pub fn of(command: &str) -> Option<String> {
    let (_, lines) = EXAMPLES.iter().find(|(name, _)| *name == command)?;
    let head = if lines.len() == 1 { "Example" } else { "Examples" };
    Some(format!("{head}:\n  {}", lines.join("\n  ")))
}

#[cfg(test)]
mod tests {
    use clap::Command;

    use super::EXAMPLES;
    use crate::commands::pages::command;

    fn below(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
        for of in command.get_subcommands().filter(|c| !c.is_hide_set() && c.get_name() != "help") {
            let path = format!("{path} {}", of.get_name()).trim().to_owned();
            all.push((path.clone(), of.clone()));
            below(of, &path, all);
        }
    }

    /// Each command's help has an example, whose options the command has.
    #[test]
    fn each_command_has_examples_that_parse() {
        let mut all = Vec::new();
        below(&command(), "", &mut all);
        for (path, of) in &all {
            let texts = [of.get_after_help(), of.get_after_long_help()];
            let text: String = texts.into_iter().flatten().map(ToString::to_string).collect();
            assert!(text.contains("Example"), "{path} has no example");
        }
        for (path, lines) in EXAMPLES {
            assert!(all.iter().any(|(known, _)| known == path), "there is no {path}");
            for line in lines {
                // Up to what a shell takes, and to a remark.
                let line = line.split(" > ").next().unwrap().split(" | ").next().unwrap();
                let line = line.split(" && ").next().unwrap().split("   ").next().unwrap();
                let parsed = command().try_get_matches_from(line.split_whitespace());
                assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
            }
        }
    }
}
