//! The form of a file of trimbench's, and the version that wrote it.
//!
//! The first JSON object of each such file names both: `{"schema": "trimbench.run/1", "version":
//! "0.1.0", …}`.

use serde_json::Value;

use crate::units::names::harmless;

/// The version of this build.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Returns why this build can't read a file whose form is another version of the one that it
/// `reads`, and which trimbench wrote it. `None` if it is that form, or of another kind.
pub fn refusal(text: &[u8], reads: &str) -> Option<String> {
    let mut objects = serde_json::Deserializer::from_slice(text).into_iter::<Value>();
    let first = objects.next()?.ok()?;
    let head = first.get("head").unwrap_or(&first);
    let found = head.get("schema").or(head.get("format"))?.as_str()?;
    let kind = |form: &str| form.rsplit_once('/').map(|form| form.0.to_owned());
    if found == reads || kind(found) != kind(reads) {
        return None;
    }
    // A result has it in its origin.
    let version = head.get("version").or(head.pointer("/origin/version"));
    let why = match version.and_then(Value::as_str) {
        Some(version) => {
            let wrote = format!(
                "trimbench {version} wrote it as {found}, and trimbench {VERSION} reads {reads}"
            );
            match version == VERSION {
                true => wrote,
                false => format!("{wrote}; use trimbench {version} or later"),
            }
        }
        None => {
            format!("another trimbench wrote it as {found}, and trimbench {VERSION} reads {reads}")
        }
    };
    Some(harmless(&why))
}
