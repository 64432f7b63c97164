//! The names that we create, and no others.

use std::fmt;

/// Directories of ours begin so, followed by [`SUFFIX_LENGTH`] letters and digits.
const PREFIX: &str = ".trimbench-";
const SUFFIX_LENGTH: usize = 8;

/// The file that says whose a directory is.
pub(super) const OWNER: &str = "owner";
/// The same while it is written, where it can't be made without a name.
pub(super) const OWNER_NEW: &str = "owner.new";

/// A file in our directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Name {
    /// A file to be deleted, `victim-000001` and so on.
    Victim(u32),
    /// Its second name, `second-000001` and so on.
    Second(u32),
    /// The file that the foreground works on.
    Foreground,
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Victim(number) => write!(f, "victim-{number:06}"),
            Name::Second(number) => write!(f, "second-{number:06}"),
            Name::Foreground => f.write_str("foreground"),
        }
    }
}

impl Name {
    /// The name that this text is, exactly as we would write it.
    pub(super) fn parse(text: &str) -> Option<Name> {
        let name = match text.split_once('-') {
            None if text == "foreground" => Name::Foreground,
            Some(("victim", number)) => Name::Victim(number.parse().ok()?),
            Some(("second", number)) => Name::Second(number.parse().ok()?),
            _ => return None,
        };
        (name.to_string() == text).then_some(name)
    }
}

/// A fresh name for a directory.
pub(super) fn random_directory() -> Result<String, rustix::io::Errno> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0u8; SUFFIX_LENGTH];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let suffix = random.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    Ok(PREFIX.chars().chain(suffix).collect())
}

/// Whether a directory could be ours by its name.
pub(super) fn is_directory(name: &str) -> bool {
    name.strip_prefix(PREFIX).is_some_and(|suffix| {
        suffix.len() == SUFFIX_LENGTH && suffix.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_our_own_spelling_is_ours() {
        for text in [
            "victim-1",
            "victim-+00001",
            "victim-0000001",
            "victim-",
            "victim",
            "spacer",
            "second-000001x",
            "foreground-1",
        ] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
        assert_eq!(Name::Victim(1).to_string(), "victim-000001");
    }

    #[test]
    fn random_names_are_recognised_and_differ() {
        let (one, two) = (random_directory().unwrap(), random_directory().unwrap());
        assert!(is_directory(&one) && is_directory(&two) && one != two);
        for other in [
            ".trimbench-",
            ".trimbench-probe-1",
            ".trimbench-abc",
            "trimbench-abcdefgh",
            ".trimbench-abcdefg/",
        ] {
            assert!(!is_directory(other), "{other}");
        }
    }

    proptest! {
        #[test]
        fn what_we_write_we_recognise(number in any::<u32>()) {
            for name in [Name::Victim(number), Name::Second(number)] {
                prop_assert_eq!(Name::parse(&name.to_string()), Some(name));
            }
        }
    }
}
