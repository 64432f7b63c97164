//! Findings about the layers of a stack.

use record::units::bytes;
use storage::Fault;
use storage::stack::{Effect, Layer, LayerKind, PARITY_PARAMETER, Stack};

use super::super::Inspection;
use super::{Finding, luks, queue};

/// Above this a granularity leaves much free space untrimmed.
const COARSE_BYTES: u64 = 256 << 10;

pub(super) fn of(facts: &Inspection, stack: &Stack) -> Vec<Finding> {
    let known = stack
        .layers
        .iter()
        .filter(|one| one.effect != Effect::Unknown);
    let each = |layer| {
        [
            luks::of(facts, stack, layer),
            parity(stack, layer),
            md_fault(facts, stack, layer),
            thin_pool(stack, layer),
            coarse(layer),
            vdo(stack, layer),
            switched_off(layer),
            lowered(layer),
        ]
    };
    let mut found: Vec<Finding> = known.flat_map(each).flatten().collect();
    found.extend(stack.layers.iter().filter_map(removed_volumes));
    found
}

pub(super) fn below_takes(stack: &Stack, layer: &Layer) -> bool {
    layer
        .below
        .iter()
        .filter_map(|name| stack.layer(name))
        .any(Layer::takes)
}

fn parity(stack: &Stack, layer: &Layer) -> Option<Finding> {
    if !layer.kind.has_parity() {
        return None;
    }
    if layer.takes() {
        let finding = Finding::new("raid5-splits", &layer.name);
        return Some(finding.limit("discard_granularity", layer.limits.granularity_bytes));
    }
    below_takes(stack, layer).then(|| {
        Finding::new("raid5-off", &layer.name)
            .evidence(PARITY_PARAMETER, &layer.why)
            .limit("discard_max_bytes", 0)
    })
}

/// The fault of a layer's kernel that discards meet, and the layer's level.
pub(super) fn fault<'a>(
    facts: &Inspection,
    stack: &Stack,
    layer: &'a Layer,
) -> Option<(&'a str, &'static Fault)> {
    let LayerKind::Md(level) = &layer.kind else {
        return None;
    };
    let drives = stack.layers.iter().map(|one| one.name.as_str());
    Some((level, Fault::of(level, facts.kernel(), drives)?))
}

fn md_fault(facts: &Inspection, stack: &Stack, layer: &Layer) -> Option<Finding> {
    let (level, fault) = fault(facts, stack, layer).filter(|_| layer.takes())?;
    Some(
        Finding::new("md-discard-fault", &layer.name)
            .with("level", level)
            .with("fault", fault.what)
            .with("source", fault.source)
            .evidence("/proc/sys/kernel/osrelease", facts.kernel()),
    )
}

fn thin_pool(stack: &Stack, layer: &Layer) -> Option<Finding> {
    let pool = layer.kind == LayerKind::ThinPool;
    // A pool that ignores discards frees nothing, either: then its volumes take none.
    let frees = |one: &Layer| one.takes() && one.below.contains(&layer.name);
    let stops = layer.effect == Effect::Stops && stack.layers.iter().any(frees);
    (pool && stops && below_takes(stack, layer)).then(|| {
        let label = layer.label.as_deref().unwrap_or(&layer.name);
        Finding::new("thin-no-passdown", &layer.name)
            .with("label", label)
            .evidence(format!("dmsetup table {label}"), "no_discard_passdown")
    })
}

fn removed_volumes(layer: &Layer) -> Option<Finding> {
    let pool = layer.kind == LayerKind::ThinPool && layer.takes();
    pool.then(|| limited("thin-removed-lv", layer))
}

/// A finding of a device that its limit shows.
fn limited(name: &str, layer: &Layer) -> Finding {
    Finding::new(name, &layer.name).limit("discard_max_bytes", layer.limits.max_bytes)
}

/// A granularity that leaves small free extents untrimmed.
fn coarse(layer: &Layer) -> Option<Finding> {
    let granularity = layer.limits.granularity_bytes;
    let kind = matches!(layer.kind, LayerKind::Thin | LayerKind::Drive);
    (kind && layer.takes() && granularity >= COARSE_BYTES).then(|| {
        Finding::new("thin-granularity", &layer.name)
            .with("granularity", bytes(granularity))
            .limit("discard_granularity", granularity)
    })
}

fn vdo(stack: &Stack, layer: &Layer) -> Option<Finding> {
    let vdo = layer.kind == LayerKind::Vdo && stack.trims_online();
    vdo.then(|| limited("vdo-flood", layer))
}

fn switched_off(layer: &Layer) -> Option<Finding> {
    let limits = &layer.limits;
    let off = limits.max_bytes == 0 && limits.max_hw_bytes > 0;
    (off && layer.kind != LayerKind::Partition).then(|| {
        limited("disabled-at-runtime.off", layer)
            .with("most", limits.max_hw_bytes)
            .with("file", queue(&layer.name, "discard_max_bytes"))
            .limit("discard_max_hw_bytes", limits.max_hw_bytes)
    })
}

fn lowered(layer: &Layer) -> Option<Finding> {
    let limits = &layer.limits;
    // The kernel takes whole granules, and no more than 4 GiB.
    let most = linux::limit::most(limits.max_hw_bytes, limits.granularity_bytes);
    let lowered = limits.max_bytes > 0 && limits.max_bytes < most;
    // A simulated drive has its profile's limit.
    let own = !matches!(layer.kind, LayerKind::Partition | LayerKind::Simulated);
    (lowered && own).then(|| {
        limited("max-lowered", layer)
            .with("max", bytes(limits.max_bytes))
            .with("most", most)
            .with("file", queue(&layer.name, "discard_max_bytes"))
            .limit("discard_max_hw_bytes", limits.max_hw_bytes)
    })
}
