//! Every key of a scenario by its path, such as `deletion.chunk`.

use record::units::settings::{Key, Section, SetError};
use record::units::typed::nearest;

use super::{Actor, AskedDeletion, Foreground, General, Judging, Phases};

/// Every key with its path, in the order of the sections.
pub fn all() -> Vec<(String, &'static Key)> {
    fn section<S: Section>() -> impl Iterator<Item = (String, &'static Key)> {
        let path = |key: &Key| match S::NAME {
            "" => key.name.to_owned(),
            section => format!("{section}.{}", key.name),
        };
        S::KEYS.iter().map(move |key| (path(key), key))
    }
    section::<General>()
        .chain(section::<Foreground>())
        .chain(section::<Actor>())
        .chain(section::<AskedDeletion>())
        .chain(section::<Phases>())
        .chain(section::<Judging>())
        .collect()
}

/// The path of a key that is typed in full, or by its name where one section alone has such a key.
pub(super) fn path_of(typed: &str) -> Result<String, SetError> {
    let all = all();
    if all.iter().any(|(path, _)| path == typed) {
        return Ok(typed.to_owned());
    }
    let same: Vec<&str> = all
        .iter()
        .filter(|(_, key)| key.name == typed)
        .map(|(path, _)| &**path)
        .collect();
    match same[..] {
        [path] => Ok(path.to_owned()),
        [] => {
            let names = all.iter().flat_map(|(path, key)| [&**path, key.name]);
            Err(SetError::Unknown(nearest(typed, names)))
        }
        _ => Err(SetError::Value(format!(
            "'{typed}' could be {}",
            same.join(" or ")
        ))),
    }
}
