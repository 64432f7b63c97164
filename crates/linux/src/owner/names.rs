//! The names that we create, and no others.

use std::fmt;

/// Directories of ours begin so, followed by [`SUFFIX_LENGTH`] letters and digits.
pub(super) const PREFIX: &str = ".trimbench-";
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
    /// The file that an appending actor writes, `append-000001` and so on.
    Append(u32),
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Name::Victim(number) => write!(f, "victim-{number:06}"),
            Name::Second(number) => write!(f, "second-{number:06}"),
            Name::Foreground => f.write_str("foreground"),
            Name::Append(number) => write!(f, "append-{number:06}"),
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
            Some(("append", number)) => Name::Append(number.parse().ok()?),
            _ => return None,
        };
        (name.to_string() == text).then_some(name)
    }
}

/// A directory in our directory, with regular files of any name in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Folder {
    /// Where an actor of the foreground works, `actor-000001` and so on.
    Actor(u32),
    /// Where a deleter makes files of its own.
    Deleter,
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Folder::Actor(number) => write!(f, "actor-{number:06}"),
            Folder::Deleter => f.write_str("deleter"),
        }
    }
}

impl Folder {
    /// The folder that this text names, exactly as we would write it.
    pub(super) fn parse(text: &str) -> Option<Folder> {
        let folder = match text.split_once('-') {
            None if text == "deleter" => Folder::Deleter,
            Some(("actor", number)) => Folder::Actor(number.parse().ok()?),
            _ => return None,
        };
        (folder.to_string() == text).then_some(folder)
    }
}

/// Whether this is the name of a trash, in which an outside deleter of ours
/// (`trimbench rm`) leaves our files when it is ended early.
pub(super) fn is_trash(name: &str) -> bool {
    begins(name, ".trimbench-trash-")
}

/// A fresh name for a directory that begins so.
pub(super) fn random(prefix: &str) -> Result<String, rustix::io::Errno> {
    const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
    let mut random = [0u8; SUFFIX_LENGTH];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    let suffix = random.map(|byte| char::from(LETTERS[usize::from(byte) % LETTERS.len()]));
    Ok(prefix.chars().chain(suffix).collect())
}

/// Whether a directory could be ours by its name.
pub(super) fn is_directory(name: &str) -> bool {
    begins(name, PREFIX)
}

/// Whether a name is this prefix and what [`random`] puts behind it.
pub(super) fn begins(name: &str, prefix: &str) -> bool {
    name.strip_prefix(prefix).is_some_and(|suffix| {
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
            "actor-000001",
            "actor-1",
            "deleter-",
        ] {
            assert_eq!(Name::parse(text), None, "{text}");
            if text != "actor-000001" {
                assert_eq!(Folder::parse(text), None, "{text}");
            }
        }
        assert_eq!(Name::Victim(1).to_string(), "victim-000001");
    }

    #[test]
    fn random_names_are_recognised_and_differ() {
        let (one, two) = (random(PREFIX).unwrap(), random(PREFIX).unwrap());
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
            for name in [
                Name::Victim(number),
                Name::Second(number),
                Name::Append(number),
                Name::Foreground,
            ] {
                prop_assert_eq!(Name::parse(&name.to_string()), Some(name));
                prop_assert_eq!(Folder::parse(&name.to_string()), None);
            }
            for folder in [Folder::Actor(number), Folder::Deleter] {
                prop_assert_eq!(Folder::parse(&folder.to_string()), Some(folder));
                prop_assert_eq!(Name::parse(&folder.to_string()), None);
            }
        }
    }
}
