//! The set-up before a run: the place, its devices, and whether TRIM gets through.

use ::record::units::{bytes, counted};
use ::record::{DeviceInfo, DeviceKind, Head, Target};

use super::Style;
use super::glyphs::{columns, left};
use super::page::{Ink, Page, Span, ink, plain};
use crate::words;

/// Columns of the labels at the left.
const LABEL: usize = 11;

/// Shows the set-up before a run: mount, devices, discards, space, and the foreground to come.
pub fn set_up(head: &Head, style: &Style) -> String {
    let mut page = Page::new(style);
    place(&mut page, &head.target);
    // What an imported log doesn't tell is left out.
    if !head.target.path.is_empty() {
        let (tone, text) = words::discard_setting(head.target.discard);
        page.labelled(label("discards"), LABEL, &[ink(Ink::of(tone), text)]);
    }
    space(&mut page, &head.target);
    for (i, actor) in head.actors.iter().enumerate() {
        let title = if i == 0 { "foreground" } else { "" };
        let name = ink(Ink::Bold, actor.name.as_str());
        let work = plain(format!(": {}", words::actor(actor)));
        page.labelled(label(title), LABEL, &[name, work]);
    }
    host(&mut page, head);
    devices(&mut page, &head.devices);
    page.finish()
}

fn label(text: &str) -> Span {
    ink(Ink::Dim, text)
}

fn place(page: &mut Page, target: &Target) {
    if target.path.is_empty() {
        return;
    }
    let path = ink(Ink::Bold, target.path.as_str());
    page.labelled(label("path"), LABEL, &[path]);
    if target.fs.is_none() && target.mount.is_none() {
        if target.size_bytes > 0 {
            page.labelled(label("kind"), LABEL, &[plain("raw device")]);
        }
        return;
    }
    let fs = target.fs.as_deref().unwrap_or("unknown file system");
    let mount = target.mount.as_deref().unwrap_or("an unknown place");
    let mut text = format!("{fs} at {mount}");
    if let Some(source) = &target.source {
        text += &format!(" from {source}");
    }
    let mut spans = vec![plain(text)];
    if !target.options.is_empty() {
        spans.push(ink(Ink::Dim, format!(" ({})", target.options.join(", "))));
    }
    page.labelled(label("mount"), LABEL, &spans);
}

fn space(page: &mut Page, target: &Target) {
    // An imported log doesn't tell sizes.
    if target.size_bytes == 0 {
        return;
    }
    let size = bytes(target.size_bytes);
    let text = match target.available_bytes {
        Some(available) => format!("{} of {size} available", bytes(available)),
        None => size,
    };
    page.labelled(label("space"), LABEL, &[plain(text)]);
}

fn host(page: &mut Page, head: &Head) {
    let host = &head.host;
    if host.name.is_empty() && host.kernel.is_empty() {
        return;
    }
    let mut text = format!("{}, Linux {}", host.name, host.kernel);
    if host.cpus > 0 {
        text += &format!(", {}", counted(host.cpus.into(), "processor"));
    }
    if host.memory_bytes > 0 {
        text += &format!(", {}", bytes(host.memory_bytes));
    }
    page.labelled(label("machine"), LABEL, &[plain(text)]);
}

/// Draws devices as a tree, the target's own at its root. A device that no root leads to is a root of
/// its own.
fn devices(page: &mut Page, devices: &[DeviceInfo]) {
    let mut tree = Tree {
        devices,
        drawn: Vec::new(),
    };
    let roots = devices.iter().filter(|device| device.level == 0);
    for device in roots.chain(devices) {
        if !tree.drawn.contains(&device.name.as_str()) {
            tree.grow(page, device, "", "");
        }
    }
    if tree.drawn.is_empty() {
        page.labelled(label("devices"), LABEL, &[plain("none known")]);
    }
}

struct Tree<'a> {
    devices: &'a [DeviceInfo],
    drawn: Vec<&'a str>,
}

impl<'a> Tree<'a> {
    /// Draws a device and those below it. `branch` is drawn before its name, `trunk` before those
    /// below. Both halves of a RAID can be on one drive; its second place points to the first.
    fn grow(&mut self, page: &mut Page, device: &'a DeviceInfo, branch: &str, trunk: &str) {
        let title = match self.drawn.is_empty() {
            true => "devices",
            false => "",
        };
        let again = self.drawn.contains(&device.name.as_str());
        let what = match again {
            true => ink(Ink::Dim, " (see above)"),
            false => plain(format!(" {}", what(device))),
        };
        let name = ink(Ink::Bold, device.name.as_str());
        draw(page, &left(title, LABEL), branch, &[name, what]);
        // A name that leads back to itself ends here, too.
        if again {
            return;
        }
        self.drawn.push(&device.name);
        // A partition's limits are its drive's.
        let shown_below = device.kind == DeviceKind::Partition && !device.below.is_empty();
        if !shown_below && device.size_bytes > 0 {
            let stem = if device.below.is_empty() { "" } else { "│  " };
            let (hue, limits) = limits(device);
            let branch = format!("{trunk}{stem}");
            draw(page, &" ".repeat(LABEL), &branch, &[ink(hue, limits)]);
        }
        if let Some(life) = device.life.as_ref().and_then(words::written) {
            let life = ink(Ink::Dim, format!("over its life {life}"));
            draw(page, &" ".repeat(LABEL), trunk, &[life]);
        }
        let devices = self.devices;
        let named = |name: &String| devices.iter().find(|other| other.name == *name);
        let below: Vec<&DeviceInfo> = device.below.iter().filter_map(named).collect();
        for (n, child) in below.iter().enumerate() {
            let (fork, stem) = match n + 1 == below.len() {
                true => ("└─ ", "   "),
                false => ("├─ ", "│  "),
            };
            let (branch, stem) = (format!("{trunk}{fork}"), format!("{trunk}{stem}"));
            self.grow(page, child, &branch, &stem);
        }
    }
}

/// Text beside its place in the tree.
fn draw(page: &mut Page, title: &str, branch: &str, text: &[Span]) {
    let label = format!("{title}{branch}");
    let indent = columns(&label);
    page.labelled(ink(Ink::Dim, label), indent, text);
}

fn what(device: &DeviceInfo) -> String {
    // Virtual disks say that they rotate, whatever is below them.
    let is_virtual = device.name.starts_with("vd") || device.name.starts_with("xvd");
    let nvme = device.name.strip_prefix("nvme");
    let is_path = nvme.is_some_and(|number| number.contains('c'));
    let kind = match (device.kind, device.rotational) {
        (DeviceKind::Disk, _) if is_path => "path of a drive",
        (DeviceKind::Disk, _) if is_virtual => "virtual disk",
        (DeviceKind::Disk, Some(true)) => "hard disk",
        (DeviceKind::Disk, Some(false)) => "SSD",
        (DeviceKind::Disk, None) => "drive",
        (DeviceKind::Partition, _) => "partition",
        (DeviceKind::Loop, _) => "loop device",
        (DeviceKind::Md, _) => "software RAID",
        (DeviceKind::Dm, _) => "device mapper",
    };
    let mut text = kind.to_owned();
    if device.size_bytes > 0 {
        text += &format!(", {}", bytes(device.size_bytes));
    }
    if let Some(model) = &device.model {
        text += &format!(", {}", model.trim());
    }
    if let Some(firmware) = &device.firmware {
        text += &format!(", firmware {firmware}");
    }
    if let Some(scheduler) = &device.scheduler {
        text += &format!(", scheduler {scheduler}");
    }
    text
}

fn limits(device: &DeviceInfo) -> (Ink, String) {
    let limits = &device.discard;
    if limits.max_hw_bytes == 0 && limits.max_bytes == 0 {
        return (Ink::Yellow, "takes no discards".to_owned());
    }
    if limits.max_bytes == 0 {
        let most = bytes(limits.max_hw_bytes);
        let why = format!("discard_max_bytes is 0; the device takes up to {most}");
        return (Ink::Yellow, format!("discards switched off ({why})"));
    }
    let hardware = match limits.max_hw_bytes == limits.max_bytes {
        true => String::new(),
        false => format!(" (hardware {})", bytes(limits.max_hw_bytes)),
    };
    let segments = counted(limits.max_segments, "segment");
    let (most, granularity) = (bytes(limits.max_bytes), bytes(limits.granularity_bytes));
    let text = format!("discards up to {most}{hardware} in {segments}, granularity {granularity}");
    (Ink::Dim, text)
}

#[cfg(test)]
mod tests {
    use record::Written;

    use super::*;

    #[test]
    fn a_drive_tells_its_life_if_it_counts_it() {
        let shown = |life| {
            let style = Style {
                colour: false,
                width: 100,
                unicode: true,
            };
            let mut page = Page::new(&style);
            let drive = DeviceInfo {
                life,
                ..DeviceInfo::disk("nvme0n1")
            };
            devices(&mut page, &[drive]);
            page.finish()
        };
        let life = Written {
            host_written_bytes: Some(38 << 40),
            flash_written_bytes: Some(44 << 40),
        };
        let line = "over its life 38.0 TiB written by the host, 44.0 TiB to flash";
        assert!(shown(Some(life)).contains(line), "{}", shown(Some(life)));
        for unknown in [None, Some(Written::default())] {
            assert!(!shown(unknown).contains("life"), "{}", shown(unknown));
        }
    }
}
