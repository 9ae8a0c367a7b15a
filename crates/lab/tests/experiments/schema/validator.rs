//! As much of JSON Schema (draft 2020-12) as the schema uses; a keyword that is not known here is
//! an error, so that none is there for show.

use std::collections::BTreeSet;

use serde_json::Value;

/// Keywords that describe and demand nothing.
const WORDS: [&str; 7] =
    ["$schema", "title", "description", "$defs", "format", "default", "readOnly"];

pub struct Schema(Value);

/// What was found in a document.
#[derive(Default)]
struct Found {
    faults: Vec<String>,
    /// Properties that the document has, as `definition.property`.
    properties: BTreeSet<String>,
}

impl Schema {
    pub fn new(schema: Value) -> Schema {
        Schema(schema)
    }

    /// What of a document is not as the schema says: where, and what.
    pub fn faults(&self, document: &Value) -> Vec<String> {
        self.look(document).faults
    }

    /// The properties of the definitions that a document has.
    pub fn properties_of(&self, document: &Value) -> BTreeSet<String> {
        self.look(document).properties
    }

    /// All properties of the definitions.
    pub fn all_properties(&self) -> BTreeSet<String> {
        let definitions = self.0["$defs"].as_object().into_iter().flatten();
        let of = |(name, definition): (&String, &Value)| {
            let properties = definition["properties"].as_object().into_iter().flatten();
            properties.map(|(property, _)| format!("{name}.{property}")).collect::<Vec<_>>()
        };
        definitions.flat_map(of).collect()
    }

    fn look(&self, document: &Value) -> Found {
        let mut found = Found::default();
        self.check(&self.0, "", document, "", &mut found);
        found
    }

    /// Checks a value at `at`; `name` is the definition that the schema is.
    fn check(&self, schema: &Value, name: &str, value: &Value, at: &str, found: &mut Found) {
        for (keyword, demand) in schema.as_object().expect("a schema is an object") {
            let fault = match keyword.as_str() {
                word if WORDS.contains(&word) => None,
                "type" => wrong_type(demand, value),
                "const" => (value != demand).then(|| format!("is not {demand}")),
                "enum" => {
                    let among = demand.as_array().expect("a list").contains(value);
                    (!among).then(|| format!("is none of {demand}"))
                }
                "minimum" => {
                    let below = value.as_f64() < demand.as_f64();
                    (value.is_number() && below).then(|| format!("is below {demand}"))
                }
                "maximum" => {
                    let above = value.as_f64() > demand.as_f64();
                    (value.is_number() && above).then(|| format!("is above {demand}"))
                }
                "minItems" | "maxItems" => wrong_length(keyword, demand, value),
                "required" => {
                    self.required(demand, value, at, found);
                    None
                }
                "properties" => {
                    self.properties(schema, name, value, at, found);
                    None
                }
                "additionalProperties" => {
                    assert_eq!(demand, &Value::Bool(false), "no other value is known here");
                    None
                }
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.check(demand, name, item, &format!("{at}/{i}"), found);
                    }
                    None
                }
                "prefixItems" => {
                    let demands = demand.as_array().into_iter().flatten();
                    let items = value.as_array().into_iter().flatten();
                    for (i, (demand, item)) in demands.zip(items).enumerate() {
                        self.check(demand, name, item, &format!("{at}/{i}"), found);
                    }
                    None
                }
                "anyOf" | "oneOf" => self.any_of(demand, name, value, at, found),
                "$ref" => {
                    let path = demand.as_str().expect("an address");
                    let referred = path.strip_prefix("#/$defs/").expect("one of this file");
                    self.check(&self.0["$defs"][referred], referred, value, at, found);
                    None
                }
                other => panic!("the keyword {other} is not known here"),
            };
            found.faults.extend(fault.map(|fault| format!("{at}: {fault}")));
        }
    }

    fn required(&self, names: &Value, value: &Value, at: &str, found: &mut Found) {
        let Some(members) = value.as_object() else { return };
        for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
            if !members.contains_key(name) {
                found.faults.push(format!("{at}: {name} is missing"));
            }
        }
    }

    fn properties(&self, of: &Value, name: &str, value: &Value, at: &str, found: &mut Found) {
        let Some(members) = value.as_object() else { return };
        for (key, member) in members {
            match of["properties"].get(key) {
                Some(schema) => {
                    if !name.is_empty() {
                        found.properties.insert(format!("{name}.{key}"));
                    }
                    self.check(schema, name, member, &format!("{at}/{key}"), found);
                }
                None if of["additionalProperties"] == Value::Bool(false) => {
                    found.faults.push(format!("{at}: {key} is not described"));
                }
                None => {}
            }
        }
    }

    /// The faults are those of the alternative that has the fewest.
    fn any_of(
        &self,
        schemas: &Value,
        name: &str,
        value: &Value,
        at: &str,
        found: &mut Found,
    ) -> Option<String> {
        let of = |schema: &Value| {
            let mut found = Found::default();
            self.check(schema, name, value, at, &mut found);
            found
        };
        let alternatives = schemas.as_array().into_iter().flatten().map(of);
        let best = alternatives.min_by_key(|found| found.faults.len())?;
        found.faults.extend(best.faults);
        found.properties.extend(best.properties);
        None
    }
}

fn wrong_type(types: &Value, value: &Value) -> Option<String> {
    let is = |name: &str| match name {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_u64() || value.is_i64(),
        other => panic!("the type {other} is not known here"),
    };
    match types {
        Value::String(name) => (!is(name)).then(|| format!("is no {name}")),
        Value::Array(names) => {
            let any = names.iter().filter_map(Value::as_str).any(is);
            (!any).then(|| format!("is none of {types}"))
        }
        _ => panic!("{types} is no type"),
    }
}

fn wrong_length(keyword: &str, demand: &Value, value: &Value) -> Option<String> {
    let items = value.as_array()?.len() as u64;
    let bound = demand.as_u64().expect("a number of items");
    let wrong = if keyword == "minItems" { items < bound } else { items > bound };
    wrong.then(|| format!("has {items} items, {keyword} is {bound}"))
}
