//! The set-up before a run: the place, its devices, and whether TRIM gets through.

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
        page.labelled(
            label(title),
            LABEL,
            &[
                ink(Ink::Bold, actor.name.as_str()),
                plain(format!(": {}", words::actor(actor))),
            ],
        );
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
    page.labelled(
        label("path"),
        LABEL,
        &[ink(Ink::Bold, target.path.as_str())],
    );
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
    let size = record::units::bytes(target.size_bytes);
    let text = match target.available_bytes {
        Some(available) => format!("{} of {size} available", record::units::bytes(available)),
        None => size,
    };
    page.labelled(label("space"), LABEL, &[plain(text)]);
}

fn host(page: &mut Page, head: &Head) {
    let host = &head.host;
    let plural = if host.cpus == 1 { "" } else { "s" };
    if host.name.is_empty() && host.kernel.is_empty() {
        return;
    }
    let mut text = format!("{}, Linux {}", host.name, host.kernel);
    if host.cpus > 0 {
        text += &format!(", {} processor{plural}", host.cpus);
    }
    if host.memory_bytes > 0 {
        text += &format!(", {}", record::units::bytes(host.memory_bytes));
    }
    page.labelled(label("machine"), LABEL, &[plain(text)]);
}

/// A device in its place in the tree.
struct Node<'a> {
    device: &'a DeviceInfo,
    /// The lines drawn before its name.
    branch: String,
    /// The lines drawn before those under it.
    trunk: String,
    /// Whether it has been drawn before: both halves of a RAID can be on one drive.
    again: bool,
}

/// The devices as a tree, the target's own at its root. A device that no root leads to is a
/// root of its own.
fn tree(devices: &[DeviceInfo]) -> Vec<Node<'_>> {
    let mut nodes: Vec<Node<'_>> = Vec::new();
    let roots = devices.iter().filter(|device| device.level == 0);
    for device in roots.chain(devices) {
        if !nodes.iter().any(|node| node.device.name == device.name) {
            grow(&mut nodes, devices, device, "", "");
        }
    }
    nodes
}

fn grow<'a>(
    nodes: &mut Vec<Node<'a>>,
    devices: &'a [DeviceInfo],
    device: &'a DeviceInfo,
    branch: &str,
    trunk: &str,
) {
    let again = nodes.iter().any(|node| node.device.name == device.name);
    nodes.push(Node {
        device,
        branch: branch.to_owned(),
        trunk: trunk.to_owned(),
        again,
    });
    // A name that leads back to itself ends here, too.
    if again {
        return;
    }
    let below: Vec<&DeviceInfo> = device
        .below
        .iter()
        .filter_map(|name| devices.iter().find(|other| other.name == *name))
        .collect();
    for (n, child) in below.iter().enumerate() {
        let (fork, stem) = if n + 1 == below.len() {
            ("└─ ", "   ")
        } else {
            ("├─ ", "│  ")
        };
        let (branch, stem) = (format!("{trunk}{fork}"), format!("{trunk}{stem}"));
        grow(nodes, devices, child, &branch, &stem);
    }
}

fn devices(page: &mut Page, devices: &[DeviceInfo]) {
    let nodes = tree(devices);
    for (n, node) in nodes.iter().enumerate() {
        let title = left(if n == 0 { "devices" } else { "" }, LABEL);
        let name = ink(Ink::Bold, node.device.name.as_str());
        let what = if node.again {
            ink(Ink::Dim, " (see above)")
        } else {
            plain(format!(" {}", what(node.device)))
        };
        draw(page, &title, &node.branch, &[name, what]);
        // A partition has the limits of its drive, which come next.
        let children = !node.device.below.is_empty();
        let told_below = node.device.kind == DeviceKind::Partition && children;
        // Without a size nothing is known of it but its name.
        if !node.again && !told_below && node.device.size_bytes > 0 {
            let stem = if children { "│  " } else { "" };
            let (hue, limits) = limits(node.device);
            let title = " ".repeat(LABEL);
            draw(
                page,
                &title,
                &format!("{}{stem}", node.trunk),
                &[ink(hue, limits)],
            );
        }
    }
    if nodes.is_empty() {
        page.labelled(label("devices"), LABEL, &[plain("none known")]);
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
    let is_virtual = ["vd", "xvd"]
        .iter()
        .any(|start| device.name.starts_with(start));
    let kind = match (device.kind, device.rotational) {
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
        text += &format!(", {}", record::units::bytes(device.size_bytes));
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
        return (
            Ink::Yellow,
            format!(
                "discards switched off (discard_max_bytes is 0; the device takes up to {})",
                record::units::bytes(limits.max_hw_bytes)
            ),
        );
    }
    let hardware = if limits.max_hw_bytes == limits.max_bytes {
        String::new()
    } else {
        format!(" (hardware {})", record::units::bytes(limits.max_hw_bytes))
    };
    let plural = if limits.max_segments == 1 { "" } else { "s" };
    (
        Ink::Dim,
        format!(
            "discards up to {}{hardware} in {} segment{plural}, granularity {}",
            record::units::bytes(limits.max_bytes),
            limits.max_segments,
            record::units::bytes(limits.granularity_bytes)
        ),
    )
}
