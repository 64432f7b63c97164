//! The record's head: everything that is needed to repeat the run.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use load::{ActorSpec, Clock};
use record::{DiscardsAtMost, Head, RUN_SCHEMA, Target};
use storage::FileSystem;

use crate::actors::Actors;
use crate::error::BenchError;
use crate::fio;
use crate::plan::{Deletion, Method, Plan};
use crate::survey::Survey;

/// The head of a run's record, but for the time when it starts.
pub(crate) fn of(plan: &Plan, survey: &Survey, actors: &Actors) -> Result<Head, BenchError> {
    let own = actors.specs.iter().flat_map(ActorSpec::series);
    Ok(Head {
        schema: RUN_SCHEMA.into(),
        run: plan.run.clone(),
        version: env!("CARGO_PKG_VERSION").into(),
        started_unix_s: 0.0,
        host: linux::host::describe(),
        target: Target {
            discards_at_most: at_most(&survey.target, plan.deletion.as_ref()),
            ..survey.target.clone()
        },
        scenario: serde_json::to_value(plan).unwrap_or_default(),
        interval_ms: plan.phases.interval().as_secs_f64() * 1e3,
        actors: own.chain(fio::series(plan)?).collect(),
        devices: survey.devices.clone(),
    })
}

/// Returns the most that the file system discards for what the run frees; `None`: not known.
///
/// With each extent that a commit frees, ext4 discards once more what is free behind it. So a
/// deletion by pieces has no such bound.
fn at_most(target: &Target, deletion: Option<&Deletion>) -> Option<DiscardsAtMost> {
    let most = target.discards_at_most?;
    let Some(deletion) = deletion.filter(|_| FileSystem::named(target).is_ext()) else {
        return Some(most);
    };
    let is_whole = matches!(deletion.method, Method::Unlink(_)) && deletion.extent_bytes.is_none();
    is_whole.then(|| DiscardsAtMost {
        more_bytes: most.more_bytes.saturating_mul(deletion.files.into()),
        ..most
    })
}

/// The time at which a clock was at 0, in seconds since 1970.
pub(crate) fn started_unix_s(clock: Clock) -> f64 {
    let since_zero = Duration::from_nanos(clock.now().0);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(0.0, |now| now.saturating_sub(since_zero).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use record::units::{GIB, MIB};

    use super::*;
    use crate::plan::{Truncate, Unlink};

    #[test]
    fn ext4_has_no_bound_for_what_is_freed_by_pieces() {
        let on = |fs: &str| Target {
            fs: Some(fs.to_owned()),
            discards_at_most: FileSystem::of(fs).discards_at_most(),
            ..Target::default()
        };
        let of = |method: Method, files: u32| Deletion {
            method,
            size_bytes: GIB,
            files,
            extent_bytes: None,
            commit: true,
        };
        let pieces = || -> Method {
            Truncate {
                chunk_bytes: 16 * MIB,
                sleep: Duration::ZERO,
                fsync: true,
            }
            .into()
        };
        let more = |fs: &str, deletion: &Deletion| {
            let most = at_most(&on(fs), Some(deletion));
            most.map(|most| most.more_bytes / MIB)
        };
        let whole = |files: u32| of(Unlink { parallel: 1 }.into(), files);
        assert_eq!(more("ext4", &whole(1)), Some(128));
        assert_eq!(more("ext4", &whole(64)), Some(64 * 128));
        assert_eq!(more("ext4", &of(pieces(), 1)), None);
        let fragmented = Deletion {
            extent_bytes: Some(MIB),
            ..whole(1)
        };
        assert_eq!(more("ext4", &fragmented), None);
        // XFS discards what is freed alone.
        assert_eq!(more("xfs", &of(pieces(), 1)), Some(64));
        assert!(at_most(&on("ext4"), None).is_some());
    }
}
