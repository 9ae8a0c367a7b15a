//! What the program is made of: a CycloneDX bill of materials (specification 1.5), from Cargo's
//! metadata and the lock file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::step;

const PROGRAM: &str = "steadfast";

/// The bill of the program for a target. The same lock file gives the same bytes.
pub fn of_program(root: &Path, target: &str) -> Result<String> {
    let args = ["metadata", "--locked", "--format-version", "1", "--filter-platform", target];
    let out = step::cargo(root, &args).output()?;
    let said = String::from_utf8_lossy(&out.stderr);
    ensure!(out.status.success(), "cargo metadata failed: {said}");
    let metadata = serde_json::from_slice(&out.stdout).context("reading cargo's metadata")?;
    let lock = std::fs::read_to_string(root.join("Cargo.lock"))?;
    let bill = bill(&metadata, &checksums(&lock)?)?;
    Ok(serde_json::to_string_pretty(&bill)? + "\n")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// SHA-256 by name and version, of what comes from a registry.
fn checksums(lock: &str) -> Result<BTreeMap<(String, String), String>> {
    let lock: toml::Table = lock.parse().context("Cargo.lock")?;
    let packages = lock.get("package").and_then(toml::Value::as_array).into_iter().flatten();
    let of = |package: &toml::Value, key: &str| {
        package.get(key).and_then(toml::Value::as_str).map(str::to_owned)
    };
    Ok(packages
        .filter_map(|p| Some(((of(p, "name")?, of(p, "version")?), of(p, "checksum")?)))
        .collect())
}

fn bill(metadata: &Value, sums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let packages = list(&metadata["packages"]);
    let by_id: BTreeMap<&str, &Value> = packages.iter().map(|p| (text(&p["id"]), p)).collect();
    let nodes = list(&metadata["resolve"]["nodes"]);
    // What is built into the program: nothing of tests, nothing of build scripts.
    let needs: BTreeMap<&str, Vec<&str>> = nodes
        .iter()
        .map(|node| {
            let deps = node["deps"].as_array().into_iter().flatten();
            let built_in = deps.filter(|dep| {
                dep["dep_kinds"].as_array().into_iter().flatten().any(|k| k["kind"].is_null())
            });
            (text(&node["id"]), built_in.map(|dep| text(&dep["pkg"])).collect())
        })
        .collect();
    let first = packages.iter().find(|p| p["name"] == PROGRAM);
    let first = text(&first.context("cargo does not know the program")?["id"]);
    let mut reached = BTreeSet::from([first]);
    let mut next = vec![first];
    while let Some(id) = next.pop() {
        for need in needs.get(id).into_iter().flatten() {
            if reached.insert(need) {
                next.push(need);
            }
        }
    }
    let component = |id: &&str| {
        let package = by_id.get(id)?;
        let (name, version) = (text(&package["name"]), text(&package["version"]));
        let mut component = json!({
            "type": if *id == first { "application" } else { "library" },
            "bom-ref": reference(package),
            "name": name,
            "version": version,
            "purl": format!("pkg:cargo/{name}@{version}"),
        });
        if let Some(licence) = package["license"].as_str() {
            // Cargo's old form.
            let expression = licence.replace('/', " OR ");
            component["licenses"] = json!([{ "expression": expression }]);
        }
        if let Some(sum) = sums.get(&(name.to_owned(), version.to_owned())) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        Some(component)
    };
    let others: Vec<Value> =
        reached.iter().filter(|id| **id != first).filter_map(component).collect();
    let dependencies: Vec<Value> = reached
        .iter()
        .filter_map(|id| {
            let needs = needs.get(id)?.iter().filter_map(|id| by_id.get(id).map(|p| reference(p)));
            let needs: BTreeSet<String> = needs.collect();
            Some(json!({ "ref": reference(by_id.get(id)?), "dependsOn": needs }))
        })
        .collect();
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": { "component": component(&first) },
        "components": others,
        "dependencies": dependencies,
    }))
}

fn reference(package: &Value) -> String {
    format!("{}@{}", text(&package["name"]), text(&package["version"]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_built_in_is_listed_with_its_sum_and_nothing_else() {
        let dep = |id: &str, kind: Value| json!({ "pkg": id, "dep_kinds": [{ "kind": kind }] });
        let package = |id: &str| json!({ "id": id, "name": id, "version": "1", "license": "A/B" });
        let mut program = package("p");
        program["name"] = json!(PROGRAM);
        let metadata = json!({
            "packages": [program, package("a"), package("b"), package("t"), package("other")],
            "resolve": { "nodes": [
                { "id": "p", "deps": [dep("a", Value::Null), dep("t", json!("dev"))] },
                { "id": "a", "deps": [dep("b", Value::Null), dep("p", Value::Null)] },
                { "id": "b", "deps": [dep("t", json!("build"))] },
                { "id": "other", "deps": [] },
            ] },
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"1\"\nchecksum = \"5\"\n\
                    [[package]]\nname = \"b\"\nversion = \"1\"\n";
        let bill = bill(&metadata, &checksums(lock).unwrap()).unwrap();
        let names: Vec<&str> =
            bill["components"].as_array().unwrap().iter().map(|c| text(&c["name"])).collect();
        assert_eq!(names, ["a", "b"]);
        assert_eq!(bill["components"][0]["hashes"][0]["content"], "5");
        assert_eq!(bill["components"][1]["hashes"], Value::Null);
        assert_eq!(bill["components"][0]["licenses"][0]["expression"], "A OR B");
        assert_eq!(bill["metadata"]["component"]["name"], PROGRAM);
        assert_eq!(bill["dependencies"].as_array().unwrap().len(), 3);
    }
}
