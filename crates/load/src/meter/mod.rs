//! What an actor writes and a sampler reads, without either waiting for the other.

use std::io;

use crate::clock::Nanos;

/// The state an actor shares with its sampler.
#[derive(Debug)]
pub struct Meter {}

/// How an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoFailure {
    /// The kernel returned this `errno`.
    Os(i32),
    /// Fewer bytes were moved than asked for: the file was cut by somebody else.
    Short,
}

impl std::fmt::Display for IoFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            IoFailure::Os(errno) => write!(f, "{}", io::Error::from_raw_os_error(errno)),
            IoFailure::Short => f.write_str("short transfer: the file ends here now"),
        }
    }
}

impl Meter {
    /// The first operation that failed: how, and when.
    pub fn first_error(&self) -> Option<(IoFailure, Nanos)> {
        unimplemented!()
    }

    /// Operations that failed so far.
    pub fn errors(&self) -> u64 {
        unimplemented!()
    }

    /// Operations that succeeded so far.
    pub fn ops(&self) -> u64 {
        unimplemented!()
    }

    /// Number of operations in flight, and the intended start of the oldest.
    pub fn in_flight(&self) -> (u64, Option<Nanos>) {
        unimplemented!()
    }
}
