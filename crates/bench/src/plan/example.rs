//! Plans for tests.

use std::path::PathBuf;
use std::time::Duration;

use super::*;

/// A reader, and nothing that is deleted.
pub(crate) fn example() -> Plan {
    let s = Duration::from_secs(1);
    Plan {
        scenario: None,
        look_at: None,
        run: None,
        place: Place::Directory(PathBuf::from("/tmp")),
        actors: vec![ActorSpec::reader(false, LoopKind::Closed { depth: 4 })],
        file: ForegroundFile {
            size_bytes: 64 << 20,
            direct: false,
            keep: false,
            reuse: false,
        },
        engine: Engine::Auto,
        seed: 7,
        canary_per_s: None,
        fio: None,
        deletion: None,
        control: None,
        timing: Timing {
            interval: s / 10,
            settle_limit: s,
            baseline: s,
            recovery: s,
            drain_limit: 5 * s,
        },
        low: None,
        blind: false,
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
