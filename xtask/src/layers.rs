//! Which crate may depend on which: the layers of docs/design.md as a list of edges.
//!
//! Cargo itself forbids cycles; this forbids edges that are possible but wrong, such as a journal
//! that learns what an inode is. An edge that is not listed is an error, so a new crate must be
//! given its place here.

use std::path::Path;

use anyhow::Context;
use serde_json::Value;

use crate::publish;

const PREFIX: &str = "steadfast-";

/// A crate, what it may use, and what only its tests and examples may use beside.
struct Layer {
    name: &'static str,
    may_use: &'static [&'static str],
    tests_may_use: &'static [&'static str],
}

const fn layer(
    name: &'static str,
    may_use: &'static [&'static str],
    tests_may_use: &'static [&'static str],
) -> Layer {
    Layer { name, may_use, tests_may_use }
}

/// From the bottom up, without the prefix of the names.
const LAYERS: [Layer; 32] = [
    // Knows no storage: counts and sorts numbers.
    layer("statistics", &[], &[]),
    // Only tools and tables of the host.
    layer("host", &[], &[]),
    layer("runtime", &[], &[]),
    layer("block", &["runtime"], &[]),
    // No block device here: the host's file systems are behind it too.
    layer("vfs", &["runtime"], &[]),
    // Archives as streams: `vfs` for its types.
    layer("tar", &["vfs"], &[]),
    layer("devices", &["host", "runtime", "block"], &["statistics"]),
    // Knows no file system, and no particular device.
    layer("volume", &["runtime", "block"], &["devices", "statistics"]),
    // Knows no inodes.
    layer("journal", &["runtime", "block"], &["devices", "host"]),
    layer("pagecache", &["runtime", "block", "vfs"], &[]),
    // What is on the disk: knows no mounted file system. `journal`, because ext4's journal is part
    // of the format.
    layer("ext4-format", &["block", "vfs", "journal"], &["devices"]),
    layer("ext4-mkfs", &["runtime", "block", "vfs", "journal", "ext4-format"], &["devices"]),
    layer("ext4-check", &["block", "vfs", "journal", "ext4-format"], &["devices", "ext4-mkfs"]),
    // Knows no particular device. Files are made and judged by others, in tests only.
    layer(
        "ext4",
        &["runtime", "block", "vfs", "journal", "pagecache", "ext4-format"],
        &["devices", "host", "ext4-mkfs", "ext4-check", "suite"],
    ),
    layer(
        "ext4-tune",
        &["block", "journal", "ext4-format", "ext4", "ext4-mkfs", "ext4-check"],
        &["runtime", "vfs", "devices", "host"],
    ),
    // Knows no particular file system; `block` for its test pattern.
    layer("trace", &["runtime", "block", "vfs"], &[]),
    // Knows no particular file system; `block` for its test pattern, `trace` for the lines of fio's
    // logs.
    layer(
        "bench",
        &["statistics", "runtime", "block", "vfs", "trace"],
        &["devices", "ext4", "ext4-mkfs"],
    ),
    // Knows no particular file system.
    // The kernel's protocol: it knows nothing of ours.
    layer("fuse-lowlevel", &[], &[]),
    layer(
        "fuse",
        &["fuse-lowlevel", "host", "runtime", "vfs"],
        &["block", "devices", "ext4", "ext4-mkfs", "suite"],
    ),
    // A stack described, and the one place where it is opened. `fuse` for the names of its options.
    layer(
        "setup",
        &[
            "runtime",
            "block",
            "vfs",
            "devices",
            "volume",
            "pagecache",
            "ext4",
            "ext4-check",
            "ext4-mkfs",
            "fuse",
        ],
        &[],
    ),
    // Devices and volumes as files: knows no file system that could be on them. `setup` opens what
    // a path names, makes volumes, and reads the configuration.
    layer("stack", &["host", "runtime", "block", "vfs", "devices", "volume", "setup"], &[]),
    layer(
        "crash",
        &[
            "statistics",
            "runtime",
            "block",
            "vfs",
            "devices",
            "journal",
            "ext4",
            "ext4-format",
            "ext4-mkfs",
            "ext4-check",
            "host",
            // A described stack may be what is cut.
            "setup",
        ],
        &[],
    ),
    // Plans and results of cases that it knows nothing of: no lab, no crash, no engine.
    layer("sweep", &[], &[]),
    // The host kernel's file systems: knows no on-disk format of ours.
    layer("peers", &["host", "runtime", "block", "vfs", "devices", "fuse", "crash"], &["suite"]),
    // Stops threads and reads their memory: knows of a recording only what it puts in.
    layer("unwind", &["crash"], &[]),
    layer(
        "lab",
        &[
            "statistics",
            "runtime",
            "block",
            "vfs",
            "devices",
            "volume",
            "journal",
            "pagecache",
            "ext4",
            "ext4-mkfs",
            "setup",
            "bench",
            "trace",
            "crash",
            "peers",
        ],
        &[],
    ),
    // Command lines and output forms of another volume manager: knows none of us.
    layer("svm", &[], &[]),
    // The language of operations, and judges of a mounted folder, whoever serves it: knows the
    // interface and none of those behind it.
    layer("suite", &["host", "statistics", "runtime", "vfs"], &[]),
    // Tests of the whole: nothing that is published knows it.
    layer(
        "selftest",
        &[
            "statistics",
            "runtime",
            "block",
            "vfs",
            "devices",
            // A mirror may be the disk whose power is cut.
            "volume",
            "ext4",
            "ext4-format",
            "ext4-mkfs",
            "bench",
            "crash",
            "peers",
            "suite",
            // Long explorations are its cases.
            "sweep",
        ],
        &["journal", "ext4-check"],
    ),
    layer(
        "steadfast",
        &[
            "runtime",
            "block",
            "vfs",
            "devices",
            "volume",
            "journal",
            "pagecache",
            "ext4",
            "ext4-format",
            "ext4-mkfs",
            "ext4-check",
            "ext4-tune",
            "bench",
            "trace",
            "setup",
            "crash",
            "lab",
            "sweep",
            "fuse",
            // For folders to mount on.
            "host",
            "peers",
            "svm",
            "stack",
            "tar",
            "unwind",
        ],
        &["suite"],
    ),
    // Feeds bytes to whatever decodes them.
    layer(
        "fuzz",
        &[
            "runtime",
            "block",
            "vfs",
            "devices",
            "volume",
            "journal",
            "ext4",
            "ext4-format",
            "ext4-mkfs",
            "ext4-check",
            "bench",
            "trace",
            "crash",
            "lab",
            "fuse",
            "stack",
            "tar",
        ],
        &[],
    ),
    layer("xtask", &["host", "suite", "statistics"], &[]),
];

/// A dependency of one of the workspace's crates on another; names as in [`LAYERS`].
#[derive(Debug, PartialEq, Eq)]
struct Edge {
    from: String,
    to: String,
    for_tests: bool,
}

/// Says which dependencies between the workspace's crates are not allowed.
pub fn check(root: &Path) -> anyhow::Result<Vec<String>> {
    let (crates, edges) = edges(&publish::metadata(root)?)?;
    Ok(forbidden(&crates, &edges))
}

/// The workspace's crates and the dependencies between them.
fn edges(metadata: &Value) -> anyhow::Result<(Vec<String>, Vec<Edge>)> {
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let packages = metadata["packages"].as_array().context("cargo's metadata has no packages")?;
    let names: Vec<String> = packages.iter().map(|p| text(&p["name"])).collect();
    let mut edges = Vec::new();
    for package in packages {
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let to = text(&dependency["name"]);
            if names.contains(&to) {
                let from = layer_of(&text(&package["name"]));
                let for_tests = dependency["kind"] == "dev";
                edges.push(Edge { from, to: layer_of(&to), for_tests });
            }
        }
    }
    Ok((names.iter().map(|n| layer_of(n)).collect(), edges))
}

/// A crate's name without the prefix.
pub fn layer_of(crate_name: &str) -> String {
    crate_name.strip_prefix(PREFIX).unwrap_or(crate_name).to_owned()
}

fn forbidden(crates: &[String], edges: &[Edge]) -> Vec<String> {
    let mut found = Vec::new();
    for name in crates {
        if !LAYERS.iter().any(|l| l.name == name) {
            found.push(format!("crate {name} has no place in xtask/src/layers.rs"));
        }
    }
    for edge in edges {
        let Some(layer) = LAYERS.iter().find(|l| l.name == edge.from) else { continue };
        let to = edge.to.as_str();
        let allowed =
            layer.may_use.contains(&to) || (edge.for_tests && layer.tests_may_use.contains(&to));
        if !allowed {
            let what = if edge.for_tests { "its tests must not use" } else { "must not use" };
            let (from, may) = (&edge.from, layer.may_use.join(", "));
            found.push(format!("crate {from}: {what} {to}; allowed: {may}"));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_workspace_keeps_its_layers() {
        assert_eq!(check(&crate::root()).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn layers_only_use_layers_below() {
        for (i, layer) in LAYERS.iter().enumerate() {
            for used in layer.may_use.iter().chain(layer.tests_may_use) {
                let below = LAYERS[..i].iter().any(|l| l.name == *used);
                assert!(below || layer.tests_may_use.contains(used), "{} -> {used}", layer.name);
            }
        }
    }

    #[test]
    fn a_forbidden_edge_is_named() {
        let package = |name: &str, dependencies: Value| {
            let (key, of) = ("name", "dependencies");
            Value::from_iter([(key, Value::from(name)), (of, dependencies)])
        };
        let dep = |name: &str, kind: Value| {
            Value::from_iter([("name", Value::from(name)), ("kind", kind)])
        };
        let metadata = serde_json::json!({ "packages": [
            package("steadfast-journal", serde_json::json!([
                dep("steadfast-block", Value::Null),
                dep("steadfast-vfs", Value::Null),
                dep("steadfast-devices", "dev".into()),
                dep("steadfast-ext4", "dev".into()),
                dep("bytes", Value::Null),
            ])),
            package("steadfast-block", serde_json::json!([])),
            package("steadfast-vfs", serde_json::json!([])),
            package("steadfast-devices", serde_json::json!([])),
            package("steadfast-ext4", serde_json::json!([])),
            package("steadfast-new", serde_json::json!([])),
        ]});
        let (crates, edges) = edges(&metadata).unwrap();
        let found = forbidden(&crates, &edges);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("crate new has no place"));
        assert!(found[1].contains("crate journal: must not use vfs"));
        assert!(found[2].contains("crate journal: its tests must not use ext4"));
    }
}
