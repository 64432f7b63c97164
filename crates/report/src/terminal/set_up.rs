//! What was found before a run: the place, its devices, and whether TRIM gets through.

use ::timeline::record::{DeviceInfo, DeviceKind, Head, Target};
use ::timeline::units;

use super::Style;
use super::page::{Ink, Page, Span, ink, plain};
use super::words;

/// Columns of the labels at the left.
const LABEL: usize = 11;

/// A tree deeper than this isn't one: some name leads back to itself.
const DEEPEST: usize = 16;

/// What was found before a run: mount, devices, discards, space, and the foreground to come.
pub fn set_up(head: &Head, style: &Style) -> String {
    let mut page = Page::new(style);
    place(&mut page, &head.target);
    let (hue, text) = words::discard_setting(head.target.discard);
    page.labelled(label("discards"), LABEL, &[ink(hue, text)]);
    space(&mut page, &head.target);
    for (i, actor) in head.actors.iter().enumerate() {
        let title = if i == 0 { "foreground" } else { "" };
        page.labelled(
            label(title),
            LABEL,
            &[
                ink(Ink::Bold, actor.name.as_str()),
                plain(format!(" {}", words::actor(actor))),
            ],
        );
    }
    host(&mut page, head);
    Tree::new(&head.devices).draw(&mut page);
    page.finish()
}

fn label(text: &str) -> Span {
    ink(Ink::Dim, text)
}

fn place(page: &mut Page, target: &Target) {
    page.labelled(label("path"), LABEL, &[ink(Ink::Bold, target.path.as_str())]);
    let mut text = match (&target.fs, &target.mount) {
        (None, None) => "a raw device".to_owned(),
        (fs, mount) => {
            let fs = fs.as_deref().unwrap_or("unknown file system");
            let mount = mount.as_deref().unwrap_or("an unknown place");
            format!("{fs} at {mount}")
        }
    };
    if let Some(source) = &target.source {
        text += &format!(" from {source}");
    }
    let mut spans = vec![plain(text)];
    if !target.options.is_empty() {
        spans.push(ink(Ink::Dim, format!(" {}", target.options.join(", "))));
    }
    page.labelled(label("mount"), LABEL, &spans);
}

fn space(page: &mut Page, target: &Target) {
    let size = units::bytes(target.size_bytes);
    let text = match target.available_bytes {
        Some(available) => format!("{} of {size} available", units::bytes(available)),
        None => size,
    };
    page.labelled(label("space"), LABEL, &[plain(text)]);
}

fn host(page: &mut Page, head: &Head) {
    let host = &head.host;
    let plural = if host.cpus == 1 { "" } else { "s" };
    page.labelled(
        label("host"),
        LABEL,
        &[plain(format!(
            "{}, Linux {}, {} processor{plural}, {}",
            host.name,
            host.kernel,
            host.cpus,
            units::bytes(host.memory_bytes)
        ))],
    );
}

/// The devices as a tree, the target's own at its root.
struct Tree<'a> {
    devices: &'a [DeviceInfo],
    drawn: Vec<bool>,
}

impl<'a> Tree<'a> {
    fn new(devices: &'a [DeviceInfo]) -> Self {
        Tree {
            devices,
            drawn: vec![false; devices.len()],
        }
    }

    fn draw(mut self, page: &mut Page) {
        if self.devices.is_empty() {
            page.labelled(label("devices"), LABEL, &[plain("none known")]);
            return;
        }
        let mut title = "devices";
        for i in 0..self.devices.len() {
            let root = self.devices[i].level == 0;
            if root && !self.drawn[i] {
                self.device(page, &mut title, i, "", "", 0);
            }
        }
        // What no root leads to is still shown.
        for i in 0..self.devices.len() {
            if !self.drawn[i] {
                self.device(page, &mut title, i, "", "", 0);
            }
        }
    }

    fn device(
        &mut self,
        page: &mut Page,
        title: &mut &'static str,
        index: usize,
        branch: &str,
        trunk: &str,
        depth: usize,
    ) {
        let device = &self.devices[index];
        let mut spans = vec![plain(branch), ink(Ink::Bold, device.name.as_str())];
        if self.drawn[index] || depth > DEEPEST {
            // Both halves of a RAID can be partitions of one drive.
            spans.push(ink(Ink::Dim, "  (see above)"));
            line(page, title, &spans);
            return;
        }
        self.drawn[index] = true;
        spans.push(plain(format!("  {}", what(device))));
        line(page, title, &spans);

        let below: Vec<usize> = device
            .below
            .iter()
            .filter_map(|name| self.devices.iter().position(|other| other.name == *name))
            .collect();
        let stem = if below.is_empty() { "  " } else { "│ " };
        let (hue, limits) = limits(device);
        line(
            page,
            title,
            &[plain(format!("{trunk}{stem}")), ink(hue, limits)],
        );
        for (n, &child) in below.iter().enumerate() {
            let last = n + 1 == below.len();
            let branch = format!("{trunk}{}", if last { "└─" } else { "├─" });
            let trunk = format!("{trunk}{}", if last { "  " } else { "│ " });
            self.device(page, title, child, &branch, &trunk, depth + 1);
        }
    }
}

/// A line of the tree, the first with the title before it.
fn line(page: &mut Page, title: &mut &'static str, spans: &[Span]) {
    let mut all = vec![ink(Ink::Dim, super::page::left(title, LABEL))];
    *title = "";
    all.extend_from_slice(spans);
    page.line(&all);
}

fn what(device: &DeviceInfo) -> String {
    let kind = match (device.kind, device.rotational) {
        (DeviceKind::Disk, Some(true)) => "hard disk",
        (DeviceKind::Disk, Some(false)) => "solid-state drive",
        (DeviceKind::Disk, None) => "drive",
        (DeviceKind::Partition, _) => "partition",
        (DeviceKind::Loop, _) => "loop device",
        (DeviceKind::Md, _) => "software RAID",
        (DeviceKind::Dm, _) => "device mapper",
    };
    let mut text = format!("{kind}, {}", units::bytes(device.size_bytes));
    if let Some(model) = &device.model {
        text += &format!(", {}", model.trim());
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
        return (
            Ink::Yellow,
            format!(
                "discards switched off (discard_max_bytes is 0; the device takes up to {})",
                units::bytes(limits.max_hw_bytes)
            ),
        );
    }
    let hardware = if limits.max_hw_bytes == limits.max_bytes {
        String::new()
    } else {
        format!(" (hardware {})", units::bytes(limits.max_hw_bytes))
    };
    let plural = if limits.max_segments == 1 { "" } else { "s" };
    (
        Ink::Dim,
        format!(
            "discards up to {}{hardware} in {} segment{plural}, granularity {}",
            units::bytes(limits.max_bytes),
            limits.max_segments,
            units::bytes(limits.granularity_bytes)
        ),
    )
}
