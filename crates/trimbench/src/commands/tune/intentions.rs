//! Describes the runs in words.

use experiments::tune::{BESIDE, Policy, Target, Trials};
use record::units::names;

use super::args::{Details, TuneArgs};

/// Describes the runs before they begin.
pub(super) fn of(trials: &Trials, args: &TuneArgs, details: &Details, target: &Target) -> String {
    let range = target.range;
    let mut text = format!(
        "{} ({}), on {}: discard_max_bytes is {} of at most {}, and deleting sends {}.\n\n",
        names::shown(&target.mount.mount_point),
        target.mount.fs,
        target.drives.join(", "),
        record::units::bytes_exact(range.now_bytes),
        record::units::bytes_exact(range.hw_bytes),
        if target.is_online() {
            "discards"
        } else {
            "none (nodiscard)"
        },
    );
    text += "Will try, in turns:\n";
    for trial in &trials.all {
        let now = trial.limit_bytes == range.now_bytes;
        let as_is = now && trial.policy == Policy::Online && target.is_online();
        text += &format!("  {}{}\n", trial, if as_is { " (as it is)" } else { "" });
    }
    let each = trials.setup.written_bytes();
    let runs = trials.count();
    let most_runs = (runs + trials.all.len()) as u64;
    text += &format!(
        "\n{runs} runs{}, each beside 8 readers and an fsync 20 times a second. Each writes {}, \
             {} in all (at most {}), and deletes it again. At least {}, and never longer than {}.\n\
             What it sets is put back at the end, whatever the end is{}.\n{}\n",
        match trials.all.len() {
            0 => String::new(),
            spare => format!(" (up to {spare} more where something disturbs one)"),
        },
        record::units::bytes(each),
        record::units::bytes(each.saturating_mul(runs as u64)),
        record::units::bytes(each.saturating_mul(most_runs)),
        record::units::minutes(BESIDE * runs as u32),
        record::units::minutes(args.time),
        if args.apply.is_some() {
            ", but for what it advises (--apply)"
        } else {
            ""
        },
        irreversible(trials, details, target),
    );
    text
}

/// The sentence where a limit doesn't come back.
fn irreversible(trials: &Trials, details: &Details, target: &Target) -> String {
    let most = target.range.most_bytes();
    let left = trials.left_changed(target);
    if !left.is_empty() {
        format!(
            "But the limit of {} will be {most} until the next start: Linux takes no more for \
                 it by hand.\n",
            left.join(", ")
        )
    } else if !target.irreversible.is_empty() && details.policies().contains(&Policy::Online) {
        format!(
            "No other limit is tried: that of {} would come back with the next start only, for \
                 Linux takes no more than {most} by hand; --set limits=… tries others all the same.\n",
            target.irreversible.join(", ")
        )
    } else {
        String::new()
    }
}
