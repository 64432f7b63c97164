//! Holds verdicts to their schema.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

use super::{VERDICT_JSON_SCHEMA, Verdict};

/// The schema with every object closed: so that a field which the schema
/// doesn't know fails here, although users may meet newer fields.
static STRICT: LazyLock<Validator> = LazyLock::new(|| testkit::schema::closed(VERDICT_JSON_SCHEMA));

/// Panics, saying where, if a verdict doesn't conform, or doesn't come back as it was.
pub(crate) fn assert_conforms(verdict: &Verdict) {
    let json = serde_json::to_value(verdict).unwrap();
    let errors: Vec<String> = STRICT
        .iter_errors(&json)
        .map(|e| format!("{}: {e}", e.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
    let back: Verdict = serde_json::from_value(json).unwrap();
    assert_eq!(&back, verdict);
}

#[test]
fn the_schema_is_one_and_can_fail() {
    let schema: Value = serde_json::from_str(VERDICT_JSON_SCHEMA).unwrap();
    assert!(jsonschema::meta::is_valid(&schema));
    assert!(!STRICT.is_valid(&serde_json::json!({"schema": "trimbench.verdict/1"})));
}
