//! Describes the runs in words.

use experiments::tune::{BESIDE, Policy, Target, Trials};
use record::units::{bytes, minutes, names};

use super::args::{Details, TuneArgs};

/// Describes the runs before they begin.
pub(super) fn of(trials: &Trials, args: &TuneArgs, details: &Details, target: &Target) -> String {
    let (range, at) = (target.range, names::shown(&target.mount.mount_point));
    let (fs, drives) = (&target.mount.fs, target.drives.join(", "));
    let (now, most) = (range.now_bytes, range.hw_bytes);
    let sends = match target.is_online() {
        true => "discards",
        false => "none (nodiscard)",
    };
    let mut text = format!(
        "{at} ({fs}), on {drives}: discard_max_bytes is {now} (at most {most}), and deleting \
         sends {sends}.\n\nWill try, in turns:\n"
    );
    for trial in &trials.all {
        let now = trial.limit_bytes == range.now_bytes;
        let as_is = now && trial.policy == Policy::Online && target.is_online();
        text += &format!("  {}{}\n", trial, if as_is { " (as it is)" } else { "" });
    }
    let each = trials.setup.written_bytes();
    let runs = trials.count();
    let spare = match trials.all.len() {
        0 => String::new(),
        spare => format!(" (up to {spare} more where something disturbs one)"),
    };
    let written = |runs: usize| bytes(each.saturating_mul(runs as u64));
    let (all, at_most) = (written(runs), written(runs + trials.all.len()));
    let (least, longest) = (minutes(BESIDE * runs as u32), minutes(args.time));
    let but = match args.apply {
        true => ", but for what it advises (--apply)",
        false => "",
    };
    let irreversible = irreversible(trials, details, target);
    text + &format!(
        "\n{runs} runs{spare}, each beside 8 readers and an fsync 20 times a second. Each writes {}, \
         {all} in all (at most {at_most}), and deletes it again. At least {least}, and never longer \
         than {longest}.\nWhat it sets is put back at the end, whatever the end is{but}.\n{irreversible}\n",
        bytes(each)
    )
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
