//! The JSON Schema of a document of results, docs/lab-results.schema.json, made from the types.

use std::path::Path;

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use snapbox::{Data, assert_data_eq};

use super::Results;

fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Results>().to_value();
    schema["title"] = "What steadfast lab run --json writes".into();
    schema["properties"]["summary"] = json!({
        "description": "The measurements of all runs together: {median, min, max, runs} in the \
            place of each number; rates are added up.",
        "type": "object",
        "properties": { "measurements": { "type": "array", "items": { "type": "object" } } },
        "required": ["measurements"],
    });
    require(&mut schema, "summary");
    let mut definitions = schema["$defs"].take();
    name_kinds(&mut definitions);
    close(&mut definitions);
    close(&mut schema);
    schema["$defs"] = definitions;
    schema
}

fn require(schema: &mut Value, name: &str) {
    schema["required"].as_array_mut().unwrap().push(name.into());
}

/// Puts a measurement's kind where its other members are: into the definition of the row.
fn name_kinds(definitions: &mut Value) {
    for mut kind in definitions["Measurement"]["oneOf"].take().as_array().unwrap().clone() {
        let row = kind["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
        definitions[&row]["properties"]["kind"] = kind["properties"]["kind"].take();
        require(&mut definitions[&row], "kind");
        let alternatives = &mut definitions["Measurement"]["oneOf"];
        let row = json!({ "$ref": kind["$ref"] });
        match alternatives.as_array_mut() {
            Some(rows) => rows.push(row),
            None => *alternatives = json!([row]),
        }
    }
}

/// No object has other members than those that are described.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(close);
            let is_object = members.get("type").is_some_and(|is| is == "object");
            if is_object && members.contains_key("properties") {
                members.insert("additionalProperties".into(), false.into());
            }
        }
        Value::Array(all) => all.iter_mut().for_each(close),
        _ => {}
    }
}

/// `SNAPSHOTS=overwrite` writes the file anew.
#[test]
fn the_schema_is_that_of_the_types() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/lab-results.schema.json");
    let made = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert_data_eq!(made, Data::read_from(&path, None).raw());
}
