//! An inspection as text for people.

mod drive;

use std::fmt::Write;

use record::units::names::{harmless, shown};
use record::units::{bytes, counted, minutes};
use record::{DiscardLimits, DiscardSetting};
use storage::FileSystem;
use storage::stack::{Effect, Layer, LayerKind, Stack};

use super::policy::Trimmer;
use super::{Finding, Inspection, Proof, Severity};
use crate::forecast::{self, Forecast};
use crate::{Look, wrapped};

/// The whole page; with every figure if `verbose` is true.
pub fn page(found: &Inspection, verbose: bool, look: Look) -> String {
    let mut out = String::new();
    if let Some(forecast) = &found.if_deleted {
        if_deleted(&mut out, found, forecast, look);
        out.push('\n');
    }
    for stack in &found.stacks {
        picture(&mut out, found, stack, verbose, look);
        out.push('\n');
    }
    if verbose {
        for drive in &found.drives {
            drive::all(&mut out, drive);
        }
    } else {
        drive::brief(&mut out, &found.drives);
    }
    if let Some(proof) = &found.proof {
        proven(&mut out, proof, look);
    }
    policy(&mut out, found);
    findings(&mut out, &found.findings, look);
    if !found.missing.is_empty() {
        out += "Not found out\n";
        for one in &found.missing {
            let text = format!("{}: {}", one.what, one.why);
            wrap(&mut out, "  ", &text, look.width);
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// The forecast of a deletion, and all that it leaves out.
fn if_deleted(out: &mut String, found: &Inspection, forecast: &Forecast, look: Look) {
    let text = forecast::sentence(forecast, "Deleting");
    let sent = found.stacks.first().is_some_and(Stack::trims_online);
    wrap(out, "", &text, look.width);
    let fs = found
        .stacks
        .first()
        .and_then(|one| one.file_system.as_ref());
    if fs.is_some_and(|fs| fs.rules() == FileSystem::Btrfs) {
        let more = "(on btrfs a rough figure: it frees a whole extent when its last part goes, also what \
                    was punched or rewritten since, so more bytes in fewer discards. It discards its own tree \
                    blocks, too, which are not counted here, and after 10 s whole block groups that become \
                    empty)";
        wrap(out, "  ", more, look.width);
    }
    if forecast.unwritten_bytes > 0 {
        let freed = bytes(forecast.unwritten_bytes);
        let more = format!(
            "({freed} more come free without a discard: allocated and never written. `trimbench \
             fstrim` discards them)"
        );
        wrap(out, "  ", &more, look.width);
    }
    if forecast.kept_files > 0 {
        let kept = counted(forecast.kept_files, "file");
        let more = format!("({kept} with other names elsewhere: nothing comes free of those)");
        wrap(out, "  ", &more, look.width);
    }
    if !sent {
        *out += "  (if it were mounted with discard; now it sends none)\n";
    }
    if forecast.time.is_none() {
        wrap(out, "  ", forecast::NO_CARD, look.width);
    }
}

/// A stack, one line for each layer.
fn picture(out: &mut String, found: &Inspection, stack: &Stack, verbose: bool, look: Look) {
    match &stack.file_system {
        Some(fs) => {
            let options = match verbose {
                true => format!(" ({})", harmless(&fs.options.join(","))),
                false => String::new(),
            };
            let at = shown(&fs.mount_point);
            let _ = writeln!(out, "{at}  {} on {}{options}", fs.kind, shown(&fs.source));
            let mark = match fs.sends {
                DiscardSetting::Unknown => "?".to_owned(),
                _ if fs.is_online() => mark(Effect::Passes, look),
                _ => mark(Effect::Stops, look),
            };
            let _ = writeln!(out, "  {mark} {}: {}", fs.kind, fs.when);
            if let Some(pending) = &fs.pending {
                let bytes = pending.bytes.map(bytes);
                let commands = pending
                    .commands
                    .map(|n| record::units::counted(n, "command"));
                let amount = bytes.or(commands).unwrap_or_default();
                let pace = match (pending.per_s, pending.takes_s) {
                    (Some(per_s), Some(takes_s)) => format!(
                        ", at most {per_s} discards/s (iops_limit): about {}",
                        minutes(std::time::Duration::from_secs_f64(takes_s))
                    ),
                    _ => String::new(),
                };
                let _ = writeln!(out, "    pending: {amount}{pace} ({})", pending.file);
            }
        }
        None => {
            let _ = writeln!(out, "{}", shown(&stack.path));
        }
    }
    let tops = stack.layers.iter().filter(|layer| layer.level == 0);
    let mut drawn = Vec::new();
    for top in tops {
        layer(out, found, stack, top, 1, &mut drawn, look);
    }
    for warning in &stack.warnings {
        wrap(out, "    ", &harmless(&warning.to_string()), look.width);
    }
    let _ = writeln!(out, "  = {}", conclusion(stack));
}

fn layer(
    out: &mut String,
    found: &Inspection,
    stack: &Stack,
    one: &Layer,
    depth: usize,
    drawn: &mut Vec<String>,
    look: Look,
) {
    if drawn.contains(&one.name) {
        return;
    }
    drawn.push(one.name.clone());
    let mut what = vec![one.kind.words()];
    let drive = found
        .drive(&one.name)
        .filter(|_| one.kind == LayerKind::Drive);
    what.extend(drive.map(|drive| drive::transport(drive.transport).to_owned()));
    what.extend(one.model.as_deref().map(harmless));
    what.push(bytes(one.size_bytes));
    let mut how = harmless(&one.why);
    if one.takes() {
        let limits = limits(&one.limits);
        how = match how.is_empty() {
            true => limits,
            false => format!("{how}; {limits}"),
        };
    }
    let mark = mark(one.effect, look);
    let indent = "  ".repeat(depth);
    let title = match &one.label {
        Some(label) => format!("{} ({})", one.name, shown(label)),
        None => one.name.clone(),
    };
    let _ = writeln!(out, "{indent}{mark} {title}  {}: {how}", what.join(", "));
    for below in one.below.iter().filter_map(|name| stack.layer(name)) {
        layer(out, found, stack, below, depth + 1, drawn, look);
    }
}

/// A proof: what each layer counted, and what the blocks read as.
fn proven(out: &mut String, proof: &Proof, look: Look) {
    let how = match proof.fitrim {
        true => "freed and trimmed",
        false => "freed",
    };
    let probe = bytes(proof.probe_bytes);
    let _ = writeln!(
        out,
        "Proof: {probe} written to {}, {how}",
        shown(&proof.path)
    );
    for layer in &proof.layers {
        let _ = match layer.bytes {
            Some(n) => writeln!(
                out,
                "  {}: {} discarded in {}",
                layer.name,
                bytes(n),
                record::units::counted(layer.commands, "command")
            ),
            None => writeln!(out, "  {}: counts no discards", layer.name),
        };
    }
    let _ = match (&proof.raw, &proof.raw_missing) {
        (Some(raw), _) => writeln!(
            out,
            "  its blocks now: {} unchanged, {} zeros, {} other",
            bytes(raw.unchanged_bytes),
            bytes(raw.zero_bytes),
            bytes(raw.other_bytes)
        ),
        (None, why) => writeln!(
            out,
            "  its blocks were not read: {}",
            why.as_deref().unwrap_or("")
        ),
    };
    let summary = format!("= {}", harmless(&proof.summary));
    wrap(out, "  ", &summary, look.width);
    out.push('\n');
}

/// Limits in words.
fn limits(limits: &DiscardLimits) -> String {
    format!(
        "at most {}, granularity {}",
        bytes(limits.max_bytes),
        bytes(limits.granularity_bytes)
    )
}

fn conclusion(stack: &Stack) -> String {
    let sends = stack.file_system.as_ref().map(|fs| fs.sends);
    let unknown = sends == Some(DiscardSetting::Unknown);
    let sends = stack.file_system.as_ref().is_none_or(|fs| fs.is_online());
    let drives: Vec<&str> = stack.drives().map(|layer| layer.name.as_str()).collect();
    match (&stack.stops_at, stack.layers.is_empty(), sends) {
        (_, true, _) => "no block device that is known lies below".to_owned(),
        (Some(stop), ..) => format!("discards stop at {stop}"),
        (None, ..) if !stack.open => {
            format!("whether discards get to {} is unknown", drives.join(", "))
        }
        (None, ..) if unknown => format!(
            "the way to {} is open; whether the mount sends any is unknown",
            drives.join(", ")
        ),
        (None, _, true) => format!("discards get to {}", drives.join(", ")),
        (None, _, false) => format!(
            "the way to {} is open, and the mount sends none",
            drives.join(", ")
        ),
    }
}

fn mark(effect: Effect, look: Look) -> String {
    let (plain, unicode, colour) = match effect {
        Effect::Passes => ("v", "↓", "32"),
        Effect::Reshapes => ("~", "≈", "33"),
        Effect::Stops => ("x", "✗", "31"),
        Effect::Unknown => ("?", "?", "33"),
    };
    let mark = if look.unicode { unicode } else { plain };
    match look.colour {
        true => format!("\x1b[{colour}m{mark}\x1b[0m"),
        false => mark.to_owned(),
    }
}

fn policy(out: &mut String, found: &Inspection) {
    out.push_str("Who trims\n");
    let online: Vec<String> = found
        .stacks
        .iter()
        .filter(|stack| stack.trims_online())
        .map(|stack| shown(stack.subject()))
        .collect();
    let online = match online.is_empty() {
        true => "no mount above".to_owned(),
        false => online.join(" "),
    };
    let _ = writeln!(out, "  online discard: {online}");
    if found.policy.trimmers.is_empty() {
        out.push_str("  timers, cron: no known trimmer\n");
    }
    for one in &found.policy.trimmers {
        let _ = writeln!(
            out,
            "  {}",
            harmless(&format!("{}: {}", one.name, trimmer(one)))
        );
    }
    for one in &found.policy.users {
        let on = one
            .device
            .as_ref()
            .map_or(String::new(), |device| format!(" on {device}"));
        let text = format!(
            "{}{on}: whether it trims is unknown: {}",
            one.name, one.switch
        );
        let _ = writeln!(out, "  {}", harmless(&text));
    }
    if let Some(issue) = found.policy.issue_discards {
        let _ = writeln!(out, "  LVM: issue_discards is {}", u8::from(issue));
    }
    out.push('\n');
}

fn trimmer(one: &Trimmer) -> String {
    if let Some(why) = one.inactive {
        return format!("{why} ({})", one.file);
    }
    let mut parts = vec![
        one.schedule
            .clone()
            .unwrap_or_else(|| "at times unknown".to_owned()),
    ];
    if let Some(next) = one.next_unix_s {
        parts.push(format!("next {}", record::units::utc(next as f64)));
    }
    if one.random_delay_s > 0 {
        let delay = minutes(std::time::Duration::from_secs(one.random_delay_s));
        parts.push(format!("or up to {delay} later"));
    }
    if let Some(last) = one.last_unix_s {
        parts.push(format!("last {}", record::units::utc(last as f64)));
    }
    let mut covers: Vec<String> = one.covers.iter().map(shown).collect();
    if one.covers_unknown {
        let and = if covers.is_empty() { "" } else { "and " };
        covers.push(format!("{and}mounts chosen at run time"));
    }
    parts.push(match covers.is_empty() {
        true if one.is_for_pools() => one.program.clone(),
        true => format!("{} of no mount here", one.program),
        false => format!("{} of {}", one.program, covers.join(" ")),
    });
    parts.join(", ")
}

fn findings(out: &mut String, findings: &[Finding], look: Look) {
    if findings.is_empty() {
        out.push_str("Findings: none\n\n");
        return;
    }
    out.push_str("Findings\n");
    for finding in findings {
        let severity = finding.severity.name().to_uppercase();
        let severity = match (look.colour, finding.severity) {
            (false, _) => severity,
            (true, Severity::Note) => format!("\x1b[36m{severity}\x1b[0m"),
            (true, Severity::Warning) => format!("\x1b[33m{severity}\x1b[0m"),
            (true, Severity::Critical) => format!("\x1b[1;31m{severity}\x1b[0m"),
        };
        let _ = writeln!(
            out,
            "  {severity} {}  {}",
            finding.id,
            shown(&finding.subject)
        );
        wrap(out, "    ", &harmless(&finding.what), look.width);
        for one in &finding.evidence {
            let value = harmless(&format!("{} = {}", one.file, one.value));
            let _ = writeln!(out, "    evidence: {value}");
        }
        if !finding.cost.is_empty() {
            wrap(out, "    ", &format!("cost: {}", finding.cost), look.width);
        }
        if let Some(remedy) = &finding.remedy {
            // Never broken: it is to be copied.
            let _ = writeln!(out, "    do: {}", harmless(remedy));
        }
        out.push('\n');
    }
}

/// Adds a text in lines of the terminal's width.
fn wrap(out: &mut String, indent: &str, text: &str, width: usize) {
    out.push_str(&wrapped(text, width, indent, indent));
}
