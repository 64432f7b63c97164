//! Policies of one's own: a file with a `[[policy]]` for each.

use std::str::FromStr;

use record::units::document::Document;
use record::units::settings::{Key, SetError};
use record::units::typed::{Mistake, nearest};

use crate::policy::{Parameters, PolicyKind};

/// A policy with its name and its parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Named {
    /// Its name in tables.
    pub name: String,
    /// Its kind.
    pub kind: PolicyKind,
    /// Its parameters.
    pub parameters: Parameters,
}

impl From<PolicyKind> for Named {
    fn from(kind: PolicyKind) -> Named {
        Named {
            name: kind.name().to_owned(),
            kind,
            parameters: kind.usual(),
        }
    }
}

/// The policies of a file.
///
/// ```
/// let text = "[[policy]]\nname = \"many ranges\"\nkind = \"queued\"\nranges = 256\n";
/// let own = sim::policies(text).unwrap();
/// assert_eq!(own[0].name, "many ranges");
/// let wrong = sim::policies("[[policy]]\nkind = \"qeued\"\n").unwrap_err();
/// assert_eq!(
///     wrong.to_string(),
///     "line 2, column 8: 'kind': there is no policy 'qeued'; did you mean 'queued'?"
/// );
/// ```
///
/// # Errors
/// With line and column: if it isn't TOML, or has a wrong key or value.
pub fn policies(text: &str) -> Result<Vec<Named>, Mistake> {
    let document = Document::parse(text)?;
    let mut all: Vec<Named> = Vec::new();
    for policies in document.items() {
        if policies.key != "policy" {
            return Err(policies.unknown(["policy"]));
        }
        for policy in policies.list() {
            let items = policy.items()?;
            let kind = items
                .iter()
                .find(|item| item.key == "kind")
                .ok_or_else(|| {
                    policy.mistake("it has no kind: add, for example, kind = \"queued\"")
                })?;
            let mut named = Named::from(kind.read(PolicyKind::from_str)?);
            for item in &items {
                match item.key {
                    "kind" => {}
                    "name" => named.name = item.read(table_name)?,
                    _ => item.set(|key, text| {
                        let set = named.set(key, text);
                        set.map_err(|error| error.or(nearest(key, ["name", "kind"])))
                    })?,
                }
            }
            if all.iter().any(|other| other.name == named.name) {
                let why = format!("two policies are named '{}': add name = …", named.name);
                return Err(policy.mistake(why));
            }
            all.push(named);
        }
    }
    Ok(all)
}

impl Named {
    /// The parameters that its kind uses, each with the text of its value.
    pub fn parameters(&self) -> impl Iterator<Item = (&'static Key, String)> {
        let own = self.kind.parameters();
        let all = self.parameters.shown();
        all.filter(|(key, _)| own.contains(&key.name))
    }

    /// Sets a parameter that its kind uses.
    pub(crate) fn set(&mut self, name: &str, text: &str) -> Result<(), SetError> {
        let own = self.kind.parameters();
        if own.contains(&name) {
            return self.parameters.set_own(name, text);
        }
        Err(match Parameters::KEYS.iter().any(|key| key.name == name) {
            true => format!("the policy {} has no '{name}'", self.kind.name()).into(),
            false => SetError::Unknown(nearest(name, own.iter().copied())),
        })
    }
}

fn table_name(text: &str) -> Result<String, &'static str> {
    match text.is_empty() || text.len() > 40 || text.chars().any(char::is_control) {
        true => Err("give 1 to 40 printable characters"),
        false => Ok(text.to_owned()),
    }
}
