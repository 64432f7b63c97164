//! Which device is made of which: iostat doesn't say.
//!
//! A RAID's reads are those of its members, second by second. So a device is made of some others if
//! its reads are the sum of theirs. Its reads are what programs saw; discards are counted where
//! they end, at the members. Names tell only which of two is above the other.

use record::DeviceKind;

use super::actors::Look;
use super::log::{Log, Sample};

/// Members' reads add up to within this share of the whole's.
const SUM: f64 = 0.02;

/// Two devices with the same reads are one above the other (a partition, a mapping) only if their
/// reads differ by less than this share. Two drives of one kind under one kind of load come close.
const SAME: f64 = 0.002;

/// With fewer operations in all, sums say nothing.
const ENOUGH: f64 = 1000.0;

/// More candidates than this aren't tried in every combination.
const MOST: usize = 14;

/// Nor more combinations than this, second by second.
const LOOKS: usize = 256;

/// A device made of others, as places in [`Log::columns`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Made {
    pub(super) whole: usize,
    pub(super) members: Vec<usize>,
}

/// All devices that are made of others, as these rows of the log tell it.
pub(super) fn infer(look: &Look<'_>) -> Vec<Made> {
    let sums = Sums::of(look);
    let stacks = sums.stacks();
    let mut found: Vec<Made> = Vec::new();
    for stack in &stacks {
        found.extend(stack.windows(2).map(|pair| Made::over(pair[0], pair[1])));
    }
    // A stack is used as its top, and made of what its bottom is made of.
    let tops: Vec<usize> = stacks.iter().map(|stack| stack[0]).collect();
    let bottom = |stack: usize| stacks[stack][stacks[stack].len() - 1];
    let most = sums.totals.iter().copied().fold(0.0, f64::max);
    let mut wholes: Vec<(usize, Vec<usize>)> = Vec::new();
    for (n, &top) in tops.iter().enumerate() {
        if sums.totals[top] >= ENOUGH.max(SUM * most)
            && let Some(members) = sums.members(&stacks[n], &tops)
        {
            wholes.push((n, members));
        }
    }
    let mut joined: Vec<usize> = Vec::new();
    for (one, &a) in tops.iter().enumerate() {
        for (other, &b) in tops.iter().enumerate().skip(one + 1) {
            let part = |i: usize, (n, members): &(usize, Vec<usize>)| {
                tops[*n] == i || members.contains(&i)
            };
            let known = |i: usize| joined.contains(&i) || wholes.iter().any(|whole| part(i, whole));
            if known(a) || known(b) || sums.totals[a] < ENOUGH || !sums.same(a, b) {
                continue;
            }
            found.push(match sums.is_above(a, b) {
                true => Made::over(bottom(one), b),
                false => Made::over(bottom(other), a),
            });
            joined.extend([a, b]);
        }
    }
    // Two that are made of the same lie one above the other: a volume on a RAID.
    while let Some((n, members)) = wholes.pop() {
        let twin = wholes.iter_mut().find(|(_, others)| *others == members);
        let Some((twin, _)) = twin else {
            let whole = bottom(n);
            found.push(Made { whole, members });
            continue;
        };
        let (upper, lower) = match sums.is_above(tops[n], tops[*twin]) {
            true => (n, *twin),
            false => (*twin, n),
        };
        *twin = lower;
        found.push(Made::over(bottom(upper), tops[lower]));
    }
    found
}

/// The compared figures: reads, or writes where nobody reads.
struct Sums<'a> {
    look: &'a Look<'a>,
    kind: usize,
    totals: Vec<f64>,
}

impl<'a> Sums<'a> {
    fn of(look: &'a Look<'a>) -> Sums<'a> {
        let all = 0..look.log.columns.len();
        let reads: f64 = all.clone().map(|i| look.sum(i, |s| s.count[0])).sum();
        let kind = usize::from(reads < ENOUGH);
        let totals = all.map(|i| look.sum(i, |s| s.count[kind])).collect();
        Sums { look, kind, totals }
    }

    fn discards(&self, i: usize) -> f64 {
        self.look.sum(i, |s| s.bytes[2])
    }

    fn rate(&self, i: usize, row: usize) -> f64 {
        f64::from(self.look.log.columns[i].at(row).count[self.kind])
    }

    /// The sum of a figure over all reports.
    fn over_all(&self, of: impl Fn(usize) -> f64) -> f64 {
        self.look.rows.iter().map(|&row| of(row)).sum()
    }

    /// Devices that did exactly the same in every row, the upper first: a drive
    /// and its only partition. Members of a RAID are alike, but never as much.
    fn stacks(&self) -> Vec<Vec<usize>> {
        let mut stacks: Vec<Vec<usize>> = Vec::new();
        let columns = &self.look.log.columns;
        for i in (0..columns.len()).filter(|&i| !columns[i].is_idle()) {
            let same =
                |stack: &&mut Vec<usize>| self.totals[i] >= ENOUGH && self.equal(i, stack[0]);
            match stacks.iter_mut().find(same) {
                Some(stack) => {
                    let below = stack.iter().position(|&other| self.is_above(i, other));
                    stack.insert(below.unwrap_or(stack.len()), i);
                }
                None => stacks.push(vec![i]),
            }
        }
        stacks
    }

    fn equal(&self, one: usize, other: usize) -> bool {
        if self.are_apart(one, other) {
            return false;
        }
        let [one, other] = [one, other].map(|i| &self.look.log.columns[i]);
        self.look
            .rows
            .iter()
            .all(|&r| one.at(r).count[..2] == other.at(r).count[..2])
    }

    fn floor(&self, i: usize) -> Option<Floor> {
        Floor::of(&self.look.log.columns[i].name)
    }

    /// Whether neither can lie on the other: two drives, two paths, or two partitions.
    fn are_apart(&self, one: usize, other: usize) -> bool {
        let floor = self.floor(one).filter(|&floor| floor != Floor::Stacked);
        floor.is_some() && floor == self.floor(other)
    }

    /// Of two that did the same, their names decide. Else the lower one is where discards are;
    /// else it doesn't matter, and the longer name is mostly that of a part.
    fn is_above(&self, one: usize, other: usize) -> bool {
        if let (Some(a), Some(b)) = (self.floor(one), self.floor(other))
            && a != b
        {
            return a > b;
        }
        let (a, b) = (self.discards(one), self.discards(other));
        let length = |i: usize| self.look.log.columns[i].name.len();
        a < b || a == b && length(one) > length(other)
    }

    /// The members of a stack of devices, as tops of other stacks; `None` if no
    /// set of them adds up to it.
    fn members(&self, stack: &[usize], tops: &[usize]) -> Option<Vec<usize>> {
        let whole = stack[0];
        let total = self.totals[whole];
        // A drive has paths, but no other members; nobody is made of something above it.
        let floor = self.floor(stack[stack.len() - 1]);
        let below = |i: usize| match (floor, self.floor(i)) {
            (Some(Floor::Drive), member) => member == Some(Floor::Path),
            (Some(floor), Some(member)) => member <= floor,
            _ => true,
        };
        let others = tops.iter().copied().filter(|&i| i != whole && below(i));
        let mut candidates: Vec<usize> = others
            .filter(|&i| (SUM * total..(1.0 - SUM) * total).contains(&self.totals[i]))
            .filter(|&i| self.beyond(i, whole) <= SUM * total)
            .collect();
        candidates.sort_by(|&a, &b| self.totals[b].total_cmp(&self.totals[a]));
        candidates.truncate(MOST);
        let mut best: Option<(f64, Vec<usize>)> = None;
        let mut looks = 0;
        for set in 1_u32..1 << candidates.len() {
            if set.count_ones() < 2 {
                continue;
            }
            let members: Vec<usize> = (0..candidates.len())
                .filter(|bit| set >> bit & 1 == 1)
                .map(|bit| candidates[bit])
                .collect();
            let together: f64 = members.iter().map(|&i| self.totals[i]).sum();
            if (together - total).abs() > SUM * total {
                continue;
            }
            looks += 1;
            if looks > LOOKS {
                break;
            }
            let apart = self.apart(whole, &members);
            if apart <= SUM * total && best.as_ref().is_none_or(|b| apart < b.0) {
                best = Some((apart, members));
            }
        }
        let (_, mut members) = best?;
        members.sort_unstable();
        // A whole that counts discards itself counts the members' ones, or a copy of them.
        let own = self.discards(whole);
        let theirs: f64 = members.iter().map(|&i| self.discards(i)).sum();
        (own == 0.0 || whole_number(theirs / own, members.len(), 0.1).is_some()).then_some(members)
    }

    /// How much a device did beyond what another did, report by report.
    fn beyond(&self, i: usize, whole: usize) -> f64 {
        self.over_all(|r| (self.rate(i, r) - self.rate(whole, r)).max(0.0))
    }

    /// How far members are from a whole, report by report.
    fn apart(&self, whole: usize, members: &[usize]) -> f64 {
        self.over_all(|r| {
            let together: f64 = members.iter().map(|&i| self.rate(i, r)).sum();
            (together - self.rate(whole, r)).abs()
        })
    }

    fn same(&self, one: usize, other: usize) -> bool {
        if self.are_apart(one, other) {
            return false;
        }
        let total = self.totals[one];
        (total - self.totals[other]).abs() <= SAME * total
            && self.apart(one, &[other]) <= SAME * total
    }
}

/// Where a device of this name lies in a storage stack, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Floor {
    /// One of several paths to an NVMe drive.
    Path,
    Drive,
    Partition,
    /// A mapping, a RAID, a loop device.
    Stacked,
}

impl Floor {
    /// `None` of a name that tells nothing (`iostat -N`).
    fn of(name: &str) -> Option<Floor> {
        if is_stacked(name) || name.starts_with("mapper/") {
            return Some(Floor::Stacked);
        }
        let drive = split_drive(name)?;
        Some(match drive {
            (_, true) => Floor::Path,
            ("", _) => Floor::Drive,
            (rest, _) => {
                let number = rest.strip_prefix('p').unwrap_or(rest);
                let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
                return digits.then_some(Floor::Partition);
            }
        })
    }
}

/// Splits off what follows a drive's own name, and says whether it is a path of a drive; `None` of other names.
fn split_drive(name: &str) -> Option<(&str, bool)> {
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let number = |text: &'_ str| (digits(text) > 0).then(|| digits(text));
    if let Some(rest) = name.strip_prefix("nvme") {
        let rest = &rest[number(rest)?..];
        let (rest, path) = match rest.strip_prefix('c') {
            Some(rest) => (&rest[number(rest)?..], true),
            None => (rest, false),
        };
        let rest = rest.strip_prefix('n')?;
        return Some((&rest[number(rest)?..], path));
    }
    if let Some(rest) = name.strip_prefix("mmcblk") {
        return Some((&rest[number(rest)?..], false));
    }
    let kinds = ["sd", "xvd", "vd", "hd"];
    let rest = kinds.iter().find_map(|kind| name.strip_prefix(kind))?;
    let letters = rest.bytes().take_while(u8::is_ascii_lowercase).count();
    (1..=3)
        .contains(&letters)
        .then(|| (&rest[letters..], false))
}

/// Whether the kernel gives this name to devices that lie over others only.
pub(super) fn is_stacked(name: &str) -> bool {
    ["loop", "dm-", "md", "bcache", "drbd"]
        .iter()
        .filter_map(|kind| name.strip_prefix(kind))
        .any(|number| number.starts_with(|c: char| c.is_ascii_digit()))
}

/// The kind of a device with this name that is made of so many members.
pub(super) fn kind(name: &str, members: usize) -> DeviceKind {
    match Floor::of(name) {
        Some(Floor::Partition) => DeviceKind::Partition,
        Some(Floor::Stacked) if name.starts_with("loop") => DeviceKind::Loop,
        Some(Floor::Stacked) if name.starts_with("md") => DeviceKind::Md,
        Some(Floor::Stacked) if name.starts_with("dm-") || name.starts_with("mapper/") => {
            DeviceKind::Dm
        }
        None if members > 1 => DeviceKind::Md,
        _ => DeviceKind::Disk,
    }
}

/// A share that is a whole number from 1 to `most`, but for so much.
fn whole_number(share: f64, most: usize, slack: f64) -> Option<f64> {
    let whole = share.round();
    ((1.0..=most as f64).contains(&whole) && (share - whole).abs() <= slack * whole)
        .then_some(whole)
}

/// Writes of a whole from which on its members' tell copies.
const WRITES: f64 = 16.0;
/// So far a share of bytes written may be from a whole number: bitmaps and superblocks are written, too.
const NEARLY: f64 = 0.2;
/// So far the members of one mirror may be apart, second by second, as a share of what one writes.
const ALIKE: f64 = 0.05;

impl Made {
    fn over(upper: usize, lower: usize) -> Made {
        Made {
            whole: upper,
            members: vec![lower],
        }
    }

    /// How many of its members write, and discard, each byte: 2 of a mirror of two, 1 of stripes;
    /// `None` where nothing tells.
    pub(super) fn copies(&self, look: &Look<'_>) -> Option<f64> {
        if self.members.len() < 2 {
            return Some(1.0);
        }
        let most = self.members.len();
        let share = |of: fn(&Sample) -> f32| {
            let members = self.members.iter().map(|&i| look.sum(i, of));
            members.sum::<f64>() / look.sum(self.whole, of)
        };
        let discards = share(|s| s.bytes[2]);
        if discards.is_finite() {
            return whole_number(discards, most, 0.1);
        }
        let writes = look.sum(self.whole, |s| s.count[1]);
        let by_writes = whole_number(share(|s| s.bytes[1]), most, NEARLY);
        by_writes.filter(|&copies| writes >= WRITES && self.are_mirrors(copies as usize, look))
    }

    /// Whether the members are mirrors of so many copies, by their writes: of each mirror all write
    /// the same. Parity is written as often as a second copy, but to another member each time.
    fn are_mirrors(&self, copies: usize, look: &Look<'_>) -> bool {
        let written = |i: usize, row: usize| f64::from(look.log.columns[i].at(row).bytes[1]);
        let over_all =
            |of: &dyn Fn(usize) -> f64| -> f64 { look.rows.iter().map(|&row| of(row)).sum() };
        let alike = |one: usize, other: usize| {
            let apart = over_all(&|row| (written(one, row) - written(other, row)).abs());
            apart <= ALIKE * over_all(&|row| written(one, row))
        };
        let twins = |&one: &usize| {
            let alike = self.members.iter().filter(|&&other| alike(one, other));
            alike.count() >= copies
        };
        let most = self.members.len();
        [1, most].contains(&copies) || most.is_multiple_of(copies) && self.members.iter().all(twins)
    }

    /// Says it with names.
    pub(super) fn sentence(&self, log: &Log) -> String {
        let name = |i: usize| log.columns[i].name.as_str();
        let whole = name(self.whole);
        let members: Vec<&str> = self.members.iter().map(|&i| name(i)).collect();
        let paths = members
            .iter()
            .all(|name| Floor::of(name) == Some(Floor::Path));
        let all = members.join(" and ");
        match (&members[..], paths) {
            ([one], true) => {
                format!("{one} was taken to be a path of {whole}, since their reads are the same.")
            }
            (_, true) => format!(
                "{all} were taken to be paths of {whole}, since their reads add up to its own."
            ),
            ([one], _) => {
                format!("{whole} was taken to lie on {one}, since their reads are the same.")
            }
            _ => format!(
                "{whole} was taken to be made of {all}, since their reads add up to its own."
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_lies_above() {
        for (name, floor) in [
            ("nvme0c0n1", Some(Floor::Path)),
            ("nvme0n1", Some(Floor::Drive)),
            ("nvme10n2p3", Some(Floor::Partition)),
            ("sda", Some(Floor::Drive)),
            ("sdab12", Some(Floor::Partition)),
            ("mmcblk0p1", Some(Floor::Partition)),
            ("dm-3", Some(Floor::Stacked)),
            ("md127", Some(Floor::Stacked)),
            ("mapper/vg-a", Some(Floor::Stacked)),
            ("vg-home", None),
            ("sdx.y", None),
            ("c0d0p1", None),
        ] {
            assert_eq!(Floor::of(name), floor, "{name}");
        }
    }

    #[test]
    fn names_tell_the_kind_of_a_device() {
        for (name, members, right) in [
            ("dm-7", 0, DeviceKind::Dm),
            ("dm-7", 4, DeviceKind::Dm),
            ("mapper/mpatha", 2, DeviceKind::Dm),
            ("md127", 1, DeviceKind::Md),
            ("vol-data", 2, DeviceKind::Md),
            ("loop3", 1, DeviceKind::Loop),
            ("nvme1n1p2", 1, DeviceKind::Partition),
            ("nvme1n1", 2, DeviceKind::Disk),
            ("nvme1c0n1", 0, DeviceKind::Disk),
            ("c0d0", 0, DeviceKind::Disk),
        ] {
            assert_eq!(kind(name, members), right, "{name} {members}");
        }
    }
}
