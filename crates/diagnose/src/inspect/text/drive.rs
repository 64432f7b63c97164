//! The drives' own reports, as text.

use std::fmt::{Display, Write};

use record::AtaTrim;
use record::Transport;
use record::units::bytes;
use record::units::names::harmless;
use storage::drive::{Ata, Drive, Health, Nvme, ReadsAs, Scsi};

/// A line for each drive that says something of its own.
pub(super) fn brief(out: &mut String, drives: &[Drive]) {
    let lines: Vec<String> = drives.iter().filter_map(line).collect();
    if lines.is_empty() {
        return;
    }
    out.push_str("Drives (-v: all they say)\n");
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
    out.push('\n');
}

fn line(drive: &Drive) -> Option<String> {
    let mut parts = Vec::new();
    if let Some(page) = &drive.nvme {
        parts.push(format!("Deallocate {}", yes(page.deallocate)));
    }
    if let Some(page) = &drive.ata {
        parts.push(format!("TRIM {}", yes(page.trim)));
    }
    if let Some(trim) = drive.limits.ata_trim {
        parts.push(queueing(trim).to_owned());
    }
    if let Some(page) = &drive.scsi {
        parts.extend(page.unmap.map(|unmap| format!("UNMAP {}", yes(unmap))));
    }
    if let Some(mode) = &drive.provisioning_mode {
        parts.push(format!("provisioning_mode {mode}"));
    }
    if let Some(reads) = drive.reads_as() {
        parts.push(format!("trimmed blocks read as {}", reads_as(reads)));
    }
    let preferred = drive
        .nvme
        .as_ref()
        .and_then(|page| page.preferred_granularity_bytes);
    if let Some(preferred) = preferred {
        parts.push(format!("prefers {} granularity", bytes(preferred)));
    }
    (!parts.is_empty()).then(|| format!("{}: {}", drive.name, parts.join(", ")))
}

/// Rows of a table.
struct Rows<'a>(&'a mut String);

impl Rows<'_> {
    fn add(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.0, "  {name:<34} {value}");
    }
}

/// Everything.
pub(super) fn all(out: &mut String, drive: &Drive) {
    let model = drive.model.as_deref().unwrap_or("no model");
    let firmware = drive.firmware.as_deref().unwrap_or("not reported");
    let (model, firmware) = (harmless(model), harmless(firmware));
    let _ = writeln!(
        out,
        "{}  {model}, {}",
        drive.name,
        transport(drive.transport)
    );
    let mut rows = Rows(out);
    rows.add("size", bytes(drive.size_bytes));
    rows.add("firmware", firmware);
    let limits = &drive.limits;
    rows.add("discard_max_bytes", exact(limits.max_bytes));
    rows.add("discard_max_hw_bytes", exact(limits.max_hw_bytes));
    rows.add("discard_granularity", exact(limits.granularity_bytes));
    rows.add("max_discard_segments", limits.max_segments);
    if let Some(rotational) = drive.rotational {
        rows.add("rotational", yes(rotational));
    }
    if let Some(trim) = limits.ata_trim {
        rows.add("TRIM through libata", queueing(trim));
    }
    if let Some(mode) = &drive.provisioning_mode {
        rows.add("provisioning_mode", mode);
    }
    if let Some(page) = &drive.nvme {
        nvme(&mut rows, page);
    }
    if let Some(page) = &drive.health {
        health(&mut rows, page);
    }
    if let Some(page) = &drive.ata {
        ata(&mut rows, page);
    }
    if let Some(page) = &drive.scsi {
        scsi(&mut rows, page);
    }
    rows.0.push('\n');
}

fn nvme(rows: &mut Rows<'_>, page: &Nvme) {
    rows.add("Deallocate (ONCS bit 2)", yes(page.deallocate));
    rows.add("Write Zeroes (ONCS bit 3)", yes(page.write_zeroes));
    rows.add("deallocated blocks read (DLFEAT)", reads_as(page.reads_as));
    rows.add(
        "Write Zeroes deallocates (DLFEAT)",
        yes(page.zeroes_deallocate),
    );
    rows.add("logical block", exact(page.lba_bytes));
    let none = || "not reported".to_owned();
    rows.add(
        "preferred granularity (NPDG)",
        page.preferred_granularity_bytes.map_or_else(none, exact),
    );
    rows.add(
        "preferred alignment (NPDA)",
        page.preferred_alignment_bytes.map_or_else(none, exact),
    );
    rows.add("in use (NUSE)", page.used_bytes.map_or_else(none, bytes));
    rows.add("ranges in a command (DMRL)", limit(page.max_ranges.into()));
    rows.add(
        "blocks in a range (DMRSL)",
        limit(page.max_range_blocks.into()),
    );
    rows.add("blocks in a command (DMSL)", limit(page.max_blocks));
    rows.add(
        "largest discard Linux makes of it",
        exact(page.linux_max_bytes),
    );
}

fn health(rows: &mut Rows<'_>, page: &Health) {
    let mut add = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            rows.add(name, value);
        }
    };
    let written = &page.written;
    add("written by the host", written.host_written_bytes.map(bytes));
    let flash = written.flash_written_bytes.map(|flash| {
        let amplified = written
            .amplification()
            .map(|times| format!("{times:.1} times as much"));
        let amplified = amplified.unwrap_or_else(|| "the host wrote nothing".to_owned());
        format!("{}, {amplified}", bytes(flash))
    });
    add("written to flash (OCP C0h)", flash);
    let used = page.percentage_used.map(|share| format!("{share} %"));
    add("life used", used);
    let count = record::units::count;
    add("media errors", page.media_errors.map(count));
    add("minutes too hot", page.hot_minutes.map(count));
    let throttled = page
        .throttled_s
        .map(|all| record::units::seconds(all as f64));
    add("throttled for", throttled);
    let within = page.slow_trims_within_s;
    let within = within.map(|all| record::units::seconds(all as f64));
    add("TRIMs watched for (OCP C3h)", within);
    for slow in &page.slow_trims {
        let utc = |ms: u64| record::units::utc(ms as f64 / 1e3);
        let one = [
            slow.latency_ms.map(|ms| format!(" of {ms} ms")),
            slow.at_unix_ms.map(|ms| format!(" at {}", utc(ms))),
        ];
        let one: String = one.into_iter().flatten().collect();
        let one = match one.as_str() {
            "" => one,
            _ => format!(", one{one}"),
        };
        let name = format!("TRIMs above {} ms (OCP C3h)", slow.above_ms);
        rows.add(&name, count(slow.commands) + &one);
    }
}

fn ata(rows: &mut Rows<'_>, page: &Ata) {
    rows.add("TRIM (word 169)", yes(page.trim));
    rows.add(
        "payload blocks (word 105)",
        limit(page.max_payload_blocks.into()),
    );
    rows.add("trimmed sectors read (word 69)", reads_as(page.reads_as));
    rows.add("queued TRIM (word 77)", yes(page.queued));
}

fn scsi(rows: &mut Rows<'_>, page: &Scsi) {
    let flag = |value: Option<bool>| value.map_or("not known", yes);
    let number = |value: Option<u32>| {
        value.map_or_else(|| "not known".to_owned(), |value| limit(value.into()))
    };
    rows.add("LBPME", flag(page.lbpme));
    rows.add("LBPRZ", flag(page.lbprz));
    rows.add("UNMAP (LBPU)", flag(page.unmap));
    rows.add("WRITE SAME(16) (LBPWS)", flag(page.write_same_16));
    rows.add("WRITE SAME(10) (LBPWS10)", flag(page.write_same_10));
    rows.add("blocks in an UNMAP", number(page.max_unmap_blocks));
    rows.add(
        "descriptors in an UNMAP",
        number(page.max_unmap_descriptors),
    );
    rows.add("granularity, in blocks", number(page.granularity_blocks));
    rows.add(
        "alignment, in blocks",
        page.alignment_blocks
            .map_or_else(|| "not reported".to_owned(), |n| n.to_string()),
    );
}

fn exact(n: u64) -> String {
    format!("{n} ({})", bytes(n))
}

fn limit(n: u64) -> String {
    match n {
        0 => "no limit reported".to_owned(),
        n => record::units::count(n),
    }
}

fn yes(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}

fn reads_as(reads: ReadsAs) -> &'static str {
    match reads {
        ReadsAs::Zeros => "zeros",
        ReadsAs::Ones => "0xff",
        ReadsAs::Deterministic => "the same each time",
        ReadsAs::Anything => "anything",
    }
}

fn queueing(trim: AtaTrim) -> &'static str {
    match trim {
        AtaTrim::Unsupported => "not supported",
        AtaTrim::ForcedUnsupported => "forbidden by Linux for this model",
        AtaTrim::ForcedUnqueued => "alone: Linux forbids this model to queue it",
        AtaTrim::Queued => "queued",
        AtaTrim::Unqueued => "alone: the drive cannot queue it",
    }
}

/// How a drive is connected, in words.
pub(super) fn transport(transport: Transport) -> &'static str {
    match transport {
        Transport::Nvme => "NVMe",
        Transport::Ata => "ATA",
        Transport::Scsi => "SCSI",
        Transport::Usb => "USB",
        Transport::Virtio => "virtio",
        Transport::Xen => "Xen",
        Transport::Mmc => "MMC",
        Transport::Memory => "memory",
        Transport::Loop => "loop device",
        Transport::Simulated => "simulated",
        Transport::Other => "unknown connection",
    }
}
