//! Discards at each layer of a stack since the probe was freed.

use linux::SysRoot;
use linux::stats::{Counters as Reading, DeviceStats};
use storage::Description;
use storage::stack::{LayerKind, Stack};

use super::outcome::Counted;
use super::probe::PROBE_BYTES;

/// Open counters of a stack's layers.
pub(super) struct Counters {
    layers: Vec<Layer>,
}

struct Layer {
    counted: Counted,
    stats: Option<(DeviceStats, Reading)>,
    /// How many bytes devices of its level discard for each byte freed.
    copies: f64,
    /// Whether a count of nothing means nothing: md counts no discards.
    silent: bool,
}

impl Counters {
    pub(super) fn open(sys: &SysRoot, stack: &Stack, found: &Description) -> Counters {
        let layers = stack.layers.iter().map(|layer| {
            let device = found.devices.iter().find(|device| {
                let drive = device.drive.as_ref().map(|drive| drive.name.as_str());
                device.name == layer.name || drive == Some(layer.name.as_str())
            });
            let stats = DeviceStats::open(sys, &layer.name).ok();
            let stats = stats.and_then(|stats| stats.read().ok().map(|now| (stats, now)));
            let off = device.is_some_and(|device| device.counting.off);
            // A partition of an NVMe drive with several paths counts at its drive.
            let elsewhere = layer.kind == LayerKind::Partition
                && device.is_some_and(|device| device.counting.statistics_of.is_some());
            Layer {
                counted: Counted {
                    name: layer.name.clone(),
                    below: layer.below.clone(),
                    top: layer.level == 0,
                    bytes: None,
                    commands: 0,
                    share: 0.0,
                },
                stats: stats.filter(|_| !off && !elsewhere),
                copies: device.map_or(1.0, |device| device.counting.copies),
                silent: matches!(layer.kind, LayerKind::Md(_)),
            }
        });
        Counters {
            layers: layers.collect(),
        }
    }

    /// The counts of each layer so far. Levels with several devices share a probe between them, so
    /// a member's share is that of all devices beside it.
    pub(super) fn read(&self) -> Vec<Counted> {
        let mut all: Vec<Counted> = self.layers.iter().map(Layer::read).collect();
        let beside = |one: &Counted, other: &Counted, layers: &[Counted]| {
            let common = layers
                .iter()
                .any(|above| above.below.contains(&one.name) && above.below.contains(&other.name));
            one.name == other.name || common || one.top && other.top
        };
        let sums: Vec<f64> = all
            .iter()
            .map(|one| {
                all.iter()
                    .filter(|other| beside(one, other, &all))
                    .map(|other| other.share)
                    .sum()
            })
            .collect();
        for (one, sum) in all.iter_mut().zip(sums) {
            one.share = sum;
        }
        all
    }
}

impl Layer {
    fn read(&self) -> Counted {
        let mut counted = self.counted.clone();
        let now = self
            .stats
            .as_ref()
            .and_then(|(stats, before)| Some(stats.read().ok()?.since(before)));
        if let Some(did) = now.filter(|did| !self.silent || did.discard_bytes > 0) {
            counted.bytes = Some(did.discard_bytes);
            counted.commands = did.discards;
            counted.share = did.discard_bytes as f64 / (PROBE_BYTES as f64 * self.copies);
        }
        counted
    }
}
