//! Updates as plain lines, for files, pipes and terminals that can't move the cursor.

use record::units::{self as show, names};

use super::update::{Blocked, DeviceUpdate, Update, Work};
use crate::why::frames::Reason;
use crate::why::join::FEW_LOOKS;
use crate::why::{Missing, SenderWork};

/// Less than so many seconds by TRIM have no words.
const LEAST_S: f64 = 0.02;

/// A wait for which fewer looks stand has no line without TRIM.
const FEWEST_LOOKS: f64 = 1.5;

/// At most so many senders and blocked processes have a line in an update.
const MOST: usize = 5;

/// An update in lines: one for each device that did something, that with most time in TRIM first.
/// Pending discards and missing facts follow, unless their line is in `said`, the update before. Then
/// come the senders of discards, and the processes that TRIM kept waiting or that waited for a tenth of the
/// time. An idle machine has the lines of what is pending, or one line.
pub fn text(update: &Update, said: &mut Vec<String>) -> String {
    let time = clock(update.unix_s);
    let mut text = String::new();
    let mut busy: Vec<_> = update.devices.iter().filter(|one| one.is_busy()).collect();
    busy.sort_by(|a, b| b.discarding.total_cmp(&a.discarding));
    for device in busy {
        text += &format!("{time} {}\n", line(device, update.debt(&device.device)));
    }
    let idle = text.is_empty();
    let (paces, lacks) = (update.paces(), update.missing.iter().map(Missing::words));
    let lacks: Vec<String> = lacks.collect();
    let news = lacks.iter().filter(|lack| !said.contains(lack));
    let paces_now = paces.iter().filter(|pace| idle || !said.contains(pace));
    for one in paces_now.chain(news) {
        text += &format!("{time} {one}\n");
    }
    *said = [paces, lacks].concat();
    if text.is_empty() {
        text = format!("{time} idle\n");
    }
    // Of one that sent before, the rest came to an end.
    let sent = update.senders.iter().filter(|one| one.discards > 0);
    for one in sent.take(MOST) {
        text += &format!("{time}   {}\n", sender(one, update.seconds));
    }
    let long = |one: &&Blocked| {
        let is_long = one.seconds >= update.seconds / 10.0;
        one.discards_s >= LEAST_S || is_long && one.looks >= FEWEST_LOOKS
    };
    for one in update.blocked.iter().filter(long).take(MOST) {
        text += &format!("{time}   {}\n", blocked(one, update.seconds));
    }
    if update.lost_events > 0 {
        let lost = show::counted(update.lost_events, "event");
        text += &format!("{time}   the kernel dropped {lost}\n");
    }
    text
}

/// `12:03:07`, UTC.
pub(super) fn clock(unix_s: f64) -> String {
    let whole = show::utc(unix_s);
    whole.get(11..19).unwrap_or("").to_owned()
}

fn line(device: &DeviceUpdate, debt: Option<String>) -> String {
    let mut text = device.device.clone();
    if device.counts {
        text += &format!("  reads {}", work(&device.reads));
        text += &format!("  writes {}", work(&device.writes));
        text += &format!(
            "  flushes {} {}",
            show::rate(device.flushes.per_s),
            show::mean_ms(device.flushes.mean_ms)
        );
        text += &format!("  in flight {}", device.in_flight);
    }
    text += &format!("  TRIM {}", work(&device.discards));
    if let Some(size) = device.discards.mean_bytes() {
        text += &format!(" of {}", show::bytes(size));
    }
    text += &format!("  in TRIM {}", show::percent(device.discarding));
    if let Some(debt) = debt {
        text += &format!("  debt {debt}");
    }
    text
}

fn work(work: &Work) -> String {
    format!(
        "{} {}/s {}",
        show::rate(work.per_s),
        show::bytes(work.bytes_per_s as u64),
        show::mean_ms(work.mean_ms)
    )
}

fn sender(one: &SenderWork, seconds: f64) -> String {
    let mut text = format!(
        "discards: {} sent {} to {}{}, {}/s sent",
        program(&one.program, one.pid),
        one.many(),
        one.device,
        match one.reason {
            Reason::Unknown => String::new(),
            reason => format!(" ({})", reason.word()),
        },
        show::bytes((one.bytes as f64 / seconds.max(1e-9)) as u64),
    );
    let deletion = one.deletion.as_ref();
    if let Some(deletion) = deletion.filter(|deletion| Some(deletion.pid) != one.pid) {
        let deleter = program(&deletion.program, Some(deletion.pid));
        text += &format!("; {deleter} freed the space");
    }
    if let Some(deleted) = &one.deleted {
        text += &format!("; the cleaner {}", deleted.words());
    }
    text
}

fn blocked(one: &Blocked, seconds: f64) -> String {
    let about = if one.looks < FEW_LOOKS { "about " } else { "" };
    let mut text = format!(
        "waited: {} {about}{} of {}",
        program(&one.program, Some(one.pid)),
        // Its first look may stand for time before the update.
        show::seconds(one.seconds.min(seconds)),
        show::seconds(seconds)
    );
    if one.discards_s >= LEAST_S {
        text += &match one.discards_s >= 0.95 * one.seconds {
            true => " (all by TRIM)".to_owned(),
            false => format!(" ({about}{} by TRIM)", show::seconds(one.discards_s)),
        };
    }
    if let Some(call) = one.call {
        text += &format!(" in {call}");
    }
    text += &format!(": {}", one.word());
    if let Some(at) = &one.at {
        text += &format!(" on {}", names::shown(at));
    } else if !one.suspects.is_empty() {
        text += &format!(" of {}, if it waited there", one.suspects.join(" or "));
    }
    if let Some(deleted) = &one.deleted {
        text += &format!(": the cleaner {}", deleted.words());
    }
    if let Some(function) = &one.function {
        text += &format!(" ({function})");
    }
    text
}

/// `rm (pid 7)`.
fn program(name: &str, pid: Option<u32>) -> String {
    let name = names::harmless(name);
    pid.map_or(name.clone(), |pid| format!("{name} (pid {pid})"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::tests::stall;
    use crate::why::frames::Place;
    use crate::why::{Cause, Deleted};

    fn text(update: &Update) -> String {
        super::text(update, &mut Vec::new())
    }

    #[test]
    fn a_stall_has_a_line_for_each_device_sender_and_victim() {
        let text = text(&stall(0.0));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 5, "{text}");
        for (line, parts) in lines.iter().zip([
            ["loop8", "in TRIM 98 %", "debt 1.0 GiB"],
            ["vda", "reads 1,230/s", "in TRIM 0.0 %"],
            [
                "pending on /mnt/lab: 1.0 GiB",
                "at most 20 discards/s (iops_limit)",
                "about 15 s",
            ],
            [
                "kworker/u8:1 (pid 44)",
                "(ext4 commit)",
                "rm (pid 14923) freed the space",
            ],
            [
                "dd (pid 14925) 0.97 s of 1.0 s (all by TRIM) in write",
                "behind discards",
                "/mnt/lab",
            ],
        ]) {
            for part in parts {
                assert!(line.contains(part), "{part:?} missing in {line}");
            }
        }
        assert!(
            lines[0].starts_with("2026-") || lines[0].as_bytes()[2] == b':',
            "{text}"
        );
    }

    #[test]
    fn a_rough_wait_is_about_so_long() {
        let mut update = stall(0.0);
        update.blocked[0].looks = 9.0;
        let about = text(&update);
        assert!(about.contains("dd (pid 14925) about 0.97 s of"), "{about}");
        // One look tells nothing, unless a discard was in flight, then a short wait tells, too.
        (update.blocked[0].seconds, update.blocked[0].discards_s) = (0.03, 0.03);
        assert!(text(&update).contains("about 30.0 ms of 1.0 s (all by TRIM)"));
        update.blocked[0].seconds = 0.97;
        update.blocked[0].looks = 1.4;
        assert!(text(&update).contains("about 0.97 s of 1.0 s (about 30.0 ms by TRIM)"));
        (update.blocked[0].cause, update.blocked[0].discards_s) = (Cause::Commit, 0.0);
        assert!(!text(&update).contains("dd (pid"));
    }

    #[test]
    fn a_wait_at_an_unknown_place_names_the_device_whose_discards_it_may_be() {
        let mut update = stall(0.0);
        update.blocked[0].at = None;
        update.blocked[0].suspects = vec!["loop7".to_owned(), "vda".to_owned()];
        let text = text(&update);
        let expected = "waited: dd (pid 14925) 0.97 s of 1.0 s (all by TRIM) in write: behind \
                        discards of loop7 or vda, if it waited there";
        assert!(text.contains(expected), "{text}");
    }

    #[test]
    fn the_cleaner_is_named_with_the_subvolumes_unless_discards_explain_the_wait() {
        let mut update = stall(0.0);
        let mut deleted = Deleted::default();
        deleted.add(&[257, 258], 1.0);
        deleted.add(&[258], 2.0);
        update.blocked[0].place = Place::Cleaner;
        update.blocked[0].deleted = Some(deleted);
        assert!(text(&update).contains("in write: behind discards on /mnt/lab"));
        (update.blocked[0].cause, update.blocked[0].discards_s) = (Cause::Commit, 0.2);
        let expected = "of 1.0 s (0.20 s by TRIM) in write: btrfs-cleaner on /mnt/lab: the cleaner freed subvolume 257 (1 more pending)";
        assert!(text(&update).contains(expected), "{}", text(&update));
        (update.blocked[0].place, update.blocked[0].deleted) = (Place::Quotas, None);
        let text = text(&update);
        assert!(
            text.contains("in write: btrfs-quotas on /mnt/lab ("),
            "{text}"
        );
    }

    #[test]
    fn pending_discards_are_named_once_with_when_they_begin() {
        let mut update = stall(0.0);
        let debt = update.debts[0].devices.clone();
        update.debts[0].takes_s = Some(0.1);
        let mut below = update.devices[0].clone();
        below.device = "vdz".to_owned();
        update.debts[0].devices = [debt, vec!["vdz".to_owned()]].concat();
        update.devices.push(below);
        let text = text(&update);
        let expected = "pending on /mnt/lab: 1.0 GiB, begins up to 120 s after the deletion, \
                        at most 20 discards/s (iops_limit), then takes less than 1 s";
        assert_eq!(text.matches(expected).count(), 1, "{text}");
    }

    #[test]
    fn one_discard_has_its_time_and_not_each() {
        let mut update = stall(0.0);
        update.senders[0].discards = 1;
        let text = text(&update);
        assert!(
            text.contains("sent 1 discard of 42.5 ms to loop8"),
            "{text}"
        );
    }

    #[test]
    fn the_device_that_discards_most_comes_first() {
        let mut update = stall(0.0);
        update.devices.reverse();
        let text = text(&update);
        assert!(
            text.find("loop8").unwrap() < text.find("vda").unwrap(),
            "{text}"
        );
    }

    #[test]
    fn an_idle_machine_has_one_line() {
        let text = text(&Update::of(1.0, 1.0, Vec::new()));
        assert_eq!(text, "00:00:00 idle\n");
    }

    #[test]
    fn a_file_system_without_debt_adds_none() {
        let mut update = stall(0.0);
        let mut none = update.debts[0].clone();
        none.bytes = Some(0);
        update.debts.push(none.clone());
        assert_eq!(update.debt("loop8").as_deref(), Some("1.0 GiB"));
        update.debts = vec![none.clone(), none];
        assert_eq!(update.debt("loop8").as_deref(), Some("0 B"));
    }

    #[test]
    fn a_fact_that_is_missing_is_said_each_time_it_begins() {
        let lack = Missing {
            what: "who frees space".to_owned(),
            why: "many events come".to_owned(),
        };
        let mut update = stall(0.0);
        let said = &mut Vec::new();
        for (missing, expected) in [(true, true), (true, false), (false, false), (true, true)] {
            update.missing = missing.then(|| lack.clone()).into_iter().collect();
            let text = super::text(&update, said);
            let line = " not seen: who frees space: many events come\n";
            assert_eq!(text.contains(line), expected, "{text}");
        }
    }

    #[test]
    fn pending_discards_are_named_while_nothing_is_busy() {
        let mut update = Update::of(1.0, 1.0, Vec::new());
        update.debts = stall(0.0).debts;
        let expected = "00:00:00 pending on /mnt/lab: 1.0 GiB, begins up to 120 s after the \
                        deletion, at most 20 discards/s (iops_limit), then takes about 15 s\n";
        let pending = &mut Vec::new();
        for _ in 0..2 {
            assert_eq!(super::text(&update, pending), expected);
        }
        // Beside other work, once.
        update.devices = stall(0.0).devices;
        let busy = super::text(&update, pending);
        assert!(!busy.contains("pending"), "{busy}");
        update.debts[0].bytes = Some(1 << 29);
        let less = super::text(&update, pending);
        assert!(less.contains("pending on /mnt/lab: 512 MiB"), "{less}");
    }
}
