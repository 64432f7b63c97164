//! JSON that must have the form which its schema promises.

use jsonschema::{Registry, Validator};
use serde_json::Value;

/// A schema's validator.
pub fn open(text: &str) -> Validator {
    validator(text, false)
}

/// The same with every object closed: a field that the schema doesn't know is refused, although
/// users may meet newer ones.
pub fn closed(text: &str) -> Validator {
    validator(text, true)
}

fn validator(text: &str, closed: bool) -> Validator {
    let parsed = |text: &str| {
        let mut schema: Value = serde_json::from_str(text).unwrap();
        if closed {
            close(&mut schema);
        }
        schema
    };
    let origin = parsed(record::origin::JSON_SCHEMA);
    let uri = origin["$id"].as_str().unwrap().to_owned();
    let registry = Registry::new()
        .add(uri, &origin)
        .unwrap()
        .prepare()
        .unwrap();
    let options = jsonschema::options().with_registry(&registry);
    options.build(&parsed(text)).unwrap()
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") {
                map.insert("additionalProperties".into(), false.into());
            }
            map.values_mut().for_each(close);
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}
