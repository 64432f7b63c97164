//! Policies of one's own: a file with a `[[policy]]` for each.

use units::typed::{Mistake, hint};

use super::text::{Cells, Document};
use crate::keys::nearest;
use crate::policy::{PARAMETERS, Parameters, PolicyKind};

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
    document.only_sections(&["policy"])?;
    if let Some(cells) = document.top()?.first() {
        return Err(cells.unknown(["policy"].into_iter()));
    }
    let mut all: Vec<Named> = Vec::new();
    for (at, section) in document.sections("policy")? {
        let kind = section.iter().find(|cells| cells.key == "kind");
        let kind = kind.ok_or_else(|| Mistake::Value {
            at,
            key: "policy".to_owned(),
            why: "it has no kind: add, for example, kind = \"queued\"".to_owned(),
        })?;
        let mut named = Named::from(kind_of(kind)?);
        for cells in section.iter().filter(|cells| cells.key != "kind") {
            named.set(cells)?;
        }
        if all.iter().any(|other| other.name == named.name) {
            return Err(Mistake::Value {
                at,
                key: "name".to_owned(),
                why: format!("two policies are named '{}'", named.name),
            });
        }
        all.push(named);
    }
    Ok(all)
}

/// The kind that a cell names.
fn kind_of(cells: &Cells) -> Result<PolicyKind, Mistake> {
    let (at, text) = cells.single()?;
    named(text).map_err(|why| Mistake::Value {
        at,
        key: cells.key.clone(),
        why,
    })
}

/// The kind of this name; the error names the one that may have been meant.
pub(crate) fn named(text: &str) -> Result<PolicyKind, String> {
    PolicyKind::named(text).ok_or_else(|| {
        let near = nearest(text, PolicyKind::ALL.iter().map(|kind| kind.name()));
        format!("there is no policy '{text}'{}", hint(&near))
    })
}

impl Named {
    fn set(&mut self, cells: &Cells) -> Result<(), Mistake> {
        let (at, text) = cells.single()?;
        if cells.key == "name" {
            if text.is_empty() || text.len() > 40 || text.chars().any(char::is_control) {
                return Err(cells.bad("give 1 to 40 printable characters".to_owned()));
            }
            self.name = text.to_owned();
            return Ok(());
        }
        self.set_parameter(cells, at, text)
    }

    /// Sets a parameter that its kind uses.
    pub(crate) fn set_parameter(
        &mut self,
        cells: &Cells,
        at: units::typed::Place,
        text: &str,
    ) -> Result<(), Mistake> {
        let own = self.kind.parameters();
        if !own.contains(&cells.key.as_str()) {
            if crate::keys::find(PARAMETERS, &cells.key).is_some() {
                let kind = self.kind.name();
                return Err(cells.bad(format!("{kind} has no such parameter")));
            }
            return Err(cells.unknown(own.iter().copied().chain(["name", "kind"])));
        }
        cells.set(PARAMETERS, &mut self.parameters, at, text)
    }
}
