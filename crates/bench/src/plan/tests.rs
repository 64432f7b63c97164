//! Plans for tests, and what a deletion is.

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

const S: Duration = Duration::from_secs(1);

#[test]
fn a_file_is_whole_blocks_of_its_share() {
    let mut deletion = example_deletion(Unlink { parallel: 1 });
    (deletion.size_bytes, deletion.files) = (100_000, 3);
    assert_eq!(deletion.file_bytes(), 32_768);
    deletion.method = Spill {
        parallel: 2,
        pause: S,
        run_for: S,
    }
    .into();
    assert_eq!(deletion.file_bytes(), 49_152, "one for each thread");
    deletion.method = Lsm {
        levels: 3,
        file_bytes: 8192,
        rate_bytes_per_s: 1,
        run_for: S,
    }
    .into();
    assert_eq!(deletion.file_bytes(), 8192);
}

#[test]
fn a_control_is_taken_only_where_it_keeps_discards_away() {
    use Control::{Nodiscard, SecondName};
    let of = |method: Method| (Nodiscard.suits(&method), SecondName.suits(&method));
    let purge = Purge {
        at_once: 1,
        every: S,
    };
    let spill = Spill {
        parallel: 1,
        pause: S,
        run_for: S,
    };
    assert_eq!(of(Unlink { parallel: 1 }.into()), (true, true));
    assert_eq!(of(purge.into()), (true, true));
    assert_eq!(of(Swap.into()), (true, false));
    assert_eq!(of(spill.into()), (true, false));
    assert_eq!(of(Fstrim.into()), (false, false));
}
