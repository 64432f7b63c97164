//! Plans for tests.

use std::path::PathBuf;
use std::time::Duration;

use super::*;

/// A reader, and nothing that is deleted.
pub(crate) fn example() -> Plan {
    let s = Duration::from_secs(1);
    let phases = Phases {
        settle: Some(s),
        baseline: Some(s),
        recovery: Some(s),
        drain_limit: Some(5 * s),
        ..Phases::default()
    };
    let place = Place::Directory(PathBuf::from("/tmp"));
    Plan {
        actors: vec![ActorSpec::reader(false, LoopKind::Closed { depth: 4 })],
        seed: 7,
        ..Plan::plain(place, false, 64 << 20, phases)
    }
}

/// 64 MiB in four files.
pub(crate) fn example_deletion(method: impl Into<Method>) -> Deletion {
    Deletion {
        method: method.into(),
        size_bytes: 64 << 20,
        files: 4,
        extent_bytes: None,
        commit: true,
    }
}
