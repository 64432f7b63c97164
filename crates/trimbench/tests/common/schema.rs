//! JSON that must have the form which its schema promises.

use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

/// A JSON Schema, compiled when it is first used.
pub struct Schema {
    text: &'static str,
    compiled: OnceLock<Validator>,
}

impl Schema {
    /// A schema by its text.
    pub const fn new(text: &'static str) -> Schema {
        Schema {
            text,
            compiled: OnceLock::new(),
        }
    }

    /// Asserts that a value has the form.
    #[track_caller]
    pub fn holds(&self, value: &Value) {
        let schema = self
            .compiled
            .get_or_init(|| testkit::schema::open(self.text));
        let faults: Vec<String> = schema
            .iter_errors(value)
            .map(|fault| format!("{}: {fault}", fault.instance_path()))
            .collect();
        assert!(faults.is_empty(), "{faults:#?}\n{value:#}");
    }

    /// Parses a text, and asserts that it has the form.
    #[track_caller]
    pub fn parse(&self, text: &str) -> Value {
        let value = serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        self.holds(&value);
        value
    }
}
