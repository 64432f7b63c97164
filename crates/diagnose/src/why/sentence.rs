//! The answer in a sentence.

use record::units as show;

use super::frames::{Place, Reason};
use super::join::{FEW_LOOKS, PART};
use super::report::{Cause, Deletion, DeviceWork, SenderWork, Verdict, Victim, Wait, Why};

/// A victim's own discards are the culprit if they took this share of its wait in the drive.
const OWN: f64 = 0.1;

/// If looks at a victim stand for less than this, in seconds, they tell nothing of it.
const SHORT_S: f64 = 0.005;

/// The answer. `drives`: those that the subject works on; `None` of a whole machine.
pub(super) fn sentence(why: &Why, drives: Option<&[String]>) -> String {
    answer(why) + &in_flight(why, drives)
}

/// The discards that the end of the observation left in flight. Layers pass them on, so those of one
/// device are named: the one with most.
fn in_flight(why: &Why, drives: Option<&[String]>) -> String {
    let of = |device: &String| drives.is_none_or(|drives| drives.contains(device));
    let left = why.devices.iter();
    let left = left.filter(|one| one.in_flight_bytes > 0 && of(&one.device));
    let Some(most) = left.max_by_key(|one| one.in_flight_bytes) else {
        return String::new();
    };
    let (were, slow) = match most.discards_in_flight {
        1 => ("was", "it slows"),
        _ => ("were", "they slow"),
    };
    format!(
        " At the end {} of {} {were} still in flight on {}, so {slow} down what comes next.",
        show::counted(most.discards_in_flight, "discard"),
        show::bytes(most.in_flight_bytes),
        most.device
    )
}

fn answer(why: &Why) -> String {
    let Some(victim) = why.victims.first() else {
        return format!(
            "Nothing waited for storage in {}.",
            show::seconds(why.seconds)
        );
    };
    match why.verdict {
        Verdict::Trim => format!("{}{}", blamed(why, victim, victim.discards_s), without(why)),
        Verdict::PartlyTrim => format!(
            "Partly TRIM: {}{} {}",
            blamed(why, victim, victim.discards_s),
            without(why),
            rest(victim)
        ),
        Verdict::NotTrim => not_trim(why, victim),
        Verdict::Unclear => unclear(why, victim),
        Verdict::Nothing if victim.seconds < SHORT_S => format!(
            "{} was not seen to wait: in {} trimbench had {} at it. A higher rate (--set rate=200) makes more.",
            who(why, victim),
            show::seconds(why.seconds),
            show::counted(why.sampling.samples, "look"),
        ),
        Verdict::Nothing => format!(
            "{} did not wait for storage: of {} it was blocked for {}.",
            who(why, victim),
            show::seconds(victim.seconds),
            time_of(victim, victim.blocked_s, victim.traced_s)
        ),
    }
}

/// A time in seconds; of a few looks with one digit. `exact_s` of it is traced.
fn time_of(victim: &Victim, seconds: f64, exact_s: f64) -> String {
    if seconds <= 0.0 || victim.looks_for(seconds, exact_s) >= FEW_LOOKS {
        return show::seconds(seconds);
    }
    let unit = 10f64.powf(seconds.log10().floor());
    let rounded = (seconds / unit).round() * unit;
    match rounded {
        _ if rounded > victim.seconds => format!("about {}", show::seconds(seconds)),
        0.0..0.995 => format!("about {:.0} ms", rounded * 1e3),
        _ => format!("about {rounded:.0} s"),
    }
}

/// `vim (pid 123)`, or `psql (pid 12) waited for postgres (pid 34), which`.
fn who(why: &Why, victim: &Victim) -> String {
    let named = |name, pid| format!("{} (pid {pid})", record::units::names::harmless(name));
    let own = named(&victim.name, victim.pid);
    match &why.client {
        Some(client) => format!(
            "{} waited for {own}, which",
            named(&client.name, client.pid)
        ),
        None => own,
    }
}

/// `Who waited … of … in fsync: … sent 165 discards of 42 ms each to sda.`
fn blamed(why: &Why, victim: &Victim, seconds: f64) -> String {
    let own = victim.seconds_of(Cause::InDiscards) >= seconds / 2.0;
    let mut text = format!(
        "{} waited {} of {}",
        who(why, victim),
        time_of(victim, seconds, victim.traced_s),
        show::seconds(victim.seconds)
    );
    if let Some(call) = call_of(victim) {
        text += &format!(" in {call}");
    }
    match culprit(why, victim) {
        Some(sender) => {
            text += &format!(
                "{}: {}",
                if own { "" } else { " behind discards" },
                sent(sender, victim, own)
            )
        }
        None if own => text += " in discards of its own; who else sends some is not known",
        None => match &suspects(why, victim)[..] {
            several @ [_, _, ..] => {
                text += &format!(
                    " behind discards of {}; on which of these drives it waited is not known",
                    several.join(" or ")
                )
            }
            _ => text += " behind discards; who sent them is not known",
        },
    }
    let behind_s = victim.seconds_of(Cause::BehindDiscards);
    if own && behind_s >= OWN * seconds {
        let behind = show::seconds(behind_s);
        text += &format!(". For {behind} of it, it waited behind discards that it did not send");
    }
    text + "."
}

/// The devices that the longest wait for discards may be at, where its place isn't known. Those
/// that discard for a layer above are left out.
fn suspects<'a>(why: &Why, victim: &'a Victim) -> Vec<&'a str> {
    let longest = victim.waits.iter().find(|wait| wait.cause.is_discards());
    let all = longest.map_or(&[][..], |wait| &wait.suspects);
    let for_layers = |device: &&String| {
        let mut senders = why.senders.iter().filter(|one| one.device == **device);
        senders.clone().next().is_some() && senders.all(is_layers)
    };
    let some = all.iter().filter(|device| !for_layers(device));
    some.map(String::as_str).collect()
}

/// Whether a layer sends them for what lies above.
fn is_layers(sender: &SenderWork) -> bool {
    matches!(sender.reason, Reason::Loop | Reason::Layer)
}

/// The sender that is to blame for a victim's waits. `None` where the waits may be at one of
/// several devices that discard, and nothing says at which.
pub(super) fn culprit<'a>(why: &'a Why, victim: &Victim) -> Option<&'a SenderWork> {
    let own = victim.seconds_of(Cause::InDiscards) >= victim.discards_s / 2.0;
    let suspects = suspects(why, victim);
    if !own && suspects.len() > 1 {
        return None;
    }
    // The longest is the one to explain. Where nothing says its devices, any may be it.
    let longest = victim.waits.iter().find(|wait| wait.cause.is_discards());
    let devices = longest.map_or(&[][..], |wait| &wait.devices);
    let matters = |one: &&SenderWork| match devices.is_empty() {
        false => devices.contains(&one.device),
        true => suspects.is_empty() || suspects.contains(&one.device.as_str()),
    };
    let there = || why.senders.iter().filter(matters);
    // A discard or two of its own elsewhere don't explain its waits.
    let explains = |one: &&SenderWork| one.in_drive_s >= OWN * victim.discards_s;
    let mut by_itself = there().filter(|one| victim.sent(one) && explains(one));
    let found = own.then(|| by_itself.next()).flatten();
    found
        .or_else(|| there().find(|one| !is_layers(one)))
        .or_else(|| there().next())
}

/// `its btrfs commit sent 165 discards of 42 ms each to sda (discard=sync)`.
fn sent(sender: &SenderWork, victim: &Victim, own: bool) -> String {
    let many = format!("sent {} to {}", sender.many(), sender.device);
    let program = format!(
        "{}{}",
        record::units::names::harmless(&sender.program),
        sender
            .pid
            .map_or(String::new(), |pid| format!(" (pid {pid})"))
    );
    let its = own && victim.sent(sender);
    let text = match sender.reason {
        Reason::BtrfsCommit if its => format!("its btrfs commit {many} (discard=sync)"),
        Reason::BtrfsCommit => format!("the btrfs commit of {program} {many} (discard=sync)"),
        Reason::BtrfsAsync => format!("btrfs {many} in the background (discard=async)"),
        Reason::ExtCommit => format!("ext4 {many} after its journal's commit (discard)"),
        Reason::ExtCall if its => {
            format!("ext4, which has no journal, {many} within the call (discard)")
        }
        Reason::ExtCall => {
            format!("ext4, which has no journal, {many} within a call of {program} (discard)")
        }
        Reason::XfsLog => format!("XFS {many} after a checkpoint of its log (discard)"),
        Reason::F2fs => format!("F2FS {many} in the background (discard)"),
        Reason::Fat => format!("FAT {many} within a call of {program} (discard)"),
        Reason::Swap => format!("swap {many}"),
        Reason::Trim => format!("{program} trims a file system (FITRIM) and {many}"),
        Reason::Device => format!("{program} discards a device (BLKDISCARD) and {many}"),
        Reason::Loop => format!("a loop device {many}, for one above it"),
        Reason::Layer => format!("a device layer {many}, for one above it"),
        Reason::Unknown => format!("{program} {many}"),
    };
    match (&sender.deletion, &sender.deleted) {
        (Some(deletion), _) => format!("{text}; {}", freed(deletion)),
        (None, Some(deleted)) => format!("{text}; the cleaner {}", deleted.words()),
        (None, None) => text,
    }
}

impl SenderWork {
    /// `165 discards of 42 ms each`, `1 discard of 42 ms`.
    pub(crate) fn many(&self) -> String {
        let mut text = show::counted(self.discards, "discard");
        if let Some(ms) = self.mean_ms {
            text += &format!(" of {}", show::latency_us(ms * 1e3));
            text += if self.discards == 1 { "" } else { " each" };
        }
        text
    }
}

/// `rm (pid 7) had freed 8.0 GiB`.
fn freed(deletion: &Deletion) -> String {
    let program = record::units::names::harmless(&deletion.program);
    let pid = deletion.pid;
    match (deletion.bytes, deletion.files) {
        (Some(bytes), _) => format!("{program} (pid {pid}) had freed {}", show::bytes(bytes)),
        (None, Some(files)) => format!(
            "{program} (pid {pid}) had removed {}",
            show::counted(files, "file")
        ),
        (None, None) => format!("{program} (pid {pid}) had freed the space"),
    }
}

fn without(why: &Why) -> String {
    let (Some(seconds), Some(victim)) = (why.without_trim_s, why.victims.first()) else {
        return String::new();
    };
    // What isn't exact of the discards isn't of the rest.
    let guessed_s = (victim.discards_s - victim.traced_s).max(0.0);
    let seconds = time_of(victim, seconds, seconds - guessed_s);
    match &why.client {
        Some(client) => format!(
            " {} would take {seconds} without TRIM.",
            record::units::names::harmless(&client.name)
        ),
        None => format!(" Without TRIM: {seconds}."),
    }
}

/// The other waits in a sentence.
fn rest(victim: &Victim) -> String {
    let others = victim.blocked_s - victim.discards_s;
    let cause = victim.longest_cause(|cause| cause.is_blocked() && !cause.is_discards());
    format!(
        "It waited {} for other things, most of it for {}.{}",
        time_of(victim, others, 0.0),
        cause.map_or("nothing", Cause::about),
        cleaner(victim)
    )
}

/// How long btrfs' cleaner and quotas kept a victim waiting, where that is a part of its waits.
fn cleaner(victim: &Victim) -> String {
    let waits = victim.waits.iter().filter(|wait| wait.is_for_cleaner());
    let waits: Vec<&Wait> = waits.filter(|wait| !wait.cause.is_discards()).collect();
    let seconds: f64 = waits.iter().map(|wait| wait.seconds).sum();
    if waits.is_empty() || seconds < PART * victim.blocked_s {
        return String::new();
    }
    let is = |place| waits.iter().any(|wait| wait.place == place);
    let what = match (is(Place::Cleaner), is(Place::Quotas)) {
        (true, true) => "btrfs-cleaner and the accounting of quotas",
        (true, false) => Place::Cleaner.words(),
        _ => Place::Quotas.words(),
    };
    let which = waits.iter().find_map(|wait| {
        let (at, deleted) = (wait.at.as_deref()?, wait.deleted.as_ref()?);
        let at = show::names::shown(at);
        Some(format!(" on {at}: the cleaner {}", deleted.words()))
    });
    format!(
        " {what} kept it waiting for {}{}.",
        time_of(victim, seconds, 0.0),
        which.unwrap_or_default()
    )
}

fn not_trim(why: &Why, victim: &Victim) -> String {
    let cause = why.main_cause.unwrap_or(Cause::Sleep);
    let seconds = victim.seconds_of(cause);
    let call = victim.waits.iter().find(|wait| wait.cause == cause);
    let call = call
        .and_then(|wait| wait.call)
        .filter(|_| cause.is_blocked());
    let did = match cause {
        Cause::Cpu => "computed or waited for a processor".to_owned(),
        cause => format!("waited for {}", cause.about()),
    };
    let mut text = format!(
        "Not TRIM: {} {did}, {} of {}{}.",
        who(why, victim),
        time_of(victim, seconds, 0.0),
        show::seconds(victim.seconds),
        call.map_or(String::new(), |call| format!(" (in {call})"))
    );
    text += &cleaner(victim);
    match discarding(why, victim) {
        Some(device) => {
            text += &format!(
                " Discards were in flight on {} for {} meanwhile{}.",
                device.device,
                show::seconds(device.discarding_s),
                match device.slows_others {
                    Some(false) => " and slowed nothing down",
                    _ => "",
                }
            );
        }
        None => match own_devices(victim) {
            Some(own) => text += &format!(" There were no discards on {}.", own.join(" or ")),
            None => text += " There were no discards.",
        },
    }
    text
}

/// Nobody could see whether the discards made it wait.
fn unclear(why: &Why, victim: &Victim) -> String {
    let call = victim.waits.iter().find(|wait| wait.cause.is_blocked());
    let call = call.and_then(|wait| wait.call);
    let whole = show::seconds(victim.seconds);
    let did = match victim.blocked_s > 0.0 {
        true => {
            let waited = time_of(victim, victim.blocked_s, 0.0);
            let call = call.map_or(String::new(), |call| format!(" in {call}"));
            format!("waited {waited} of {whole}{call}")
        }
        false => format!(
            "took {whole} and had {} at it",
            show::counted(victim.looks, "look")
        ),
    };
    let busy = discarding(why, victim).map_or(String::new(), |device| {
        let seconds = show::seconds(device.discarding_s);
        format!(" on {} for {seconds}", device.device)
    });
    format!(
        "Unclear: {} {did} while discards were in flight{busy}; stacks and senders need root.",
        who(why, victim)
    )
}

/// Of the devices that a victim was blocked at the one that discarded longest; of all where one
/// isn't known.
fn discarding<'a>(why: &'a Why, victim: &Victim) -> Option<&'a DeviceWork> {
    let own = own_devices(victim);
    let of = |one: &&DeviceWork| {
        let own = own.as_ref();
        own.is_none_or(|own| own.contains(&one.device.as_str()))
    };
    let busy = why.devices.iter().filter(of);
    let busy = busy.max_by(|a, b| a.discarding_s.total_cmp(&b.discarding_s));
    busy.filter(|one| one.discarding_s > 0.0)
}

/// The devices that a victim was blocked at. `None` where one of the places isn't known.
fn own_devices(victim: &Victim) -> Option<Vec<&str>> {
    let mut devices: Vec<&str> = Vec::new();
    for wait in victim.waits.iter().filter(|wait| wait.cause.is_blocked()) {
        if wait.devices.is_empty() {
            return None;
        }
        devices.extend(wait.devices.iter().map(String::as_str));
    }
    devices.sort_unstable();
    devices.dedup();
    (!devices.is_empty()).then_some(devices)
}

impl Victim {
    /// So many looks stand for the part of a time that is not `exact_s`; infinitely many if that part
    /// doesn't matter.
    pub(crate) fn looks_for(&self, seconds: f64, exact_s: f64) -> f64 {
        let guessed_s = seconds - exact_s;
        match guessed_s > seconds / 10.0 {
            true => guessed_s * self.looks as f64 / self.seconds,
            false => f64::INFINITY,
        }
    }

    /// Whether it sent these, by one of its threads.
    pub(super) fn sent(&self, sender: &SenderWork) -> bool {
        (sender.pid).is_some_and(|pid| pid == self.pid || self.threads.contains(&pid))
    }

    /// The time of a cause, in seconds.
    pub(super) fn seconds_of(&self, cause: Cause) -> f64 {
        let waits = self.waits.iter().filter(|wait| wait.cause == cause);
        waits.map(|wait| wait.seconds).sum()
    }

    /// The cause among some that took most.
    pub(crate) fn longest_cause(&self, of: impl Fn(Cause) -> bool) -> Option<Cause> {
        let all = Cause::ALL.iter().copied().filter(|cause| of(*cause));
        let sums = all.map(|cause| (cause, self.seconds_of(cause)));
        let most = sums.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (most.1 > 0.0).then_some(most.0)
    }
}

/// The call in which it waited longest for discards.
fn call_of(victim: &Victim) -> Option<&'static str> {
    let mut sums: Vec<(&'static str, f64)> = Vec::new();
    for wait in victim.waits.iter().filter(|wait| wait.cause.is_discards()) {
        let Some(call) = wait.call else { continue };
        match sums.iter_mut().find(|one| one.0 == call) {
            Some(one) => one.1 += wait.seconds,
            None => sums.push((call, wait.seconds)),
        }
    }
    let most = sums.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most.1 >= victim.discards_s / 2.0).then_some(most.0)
}
