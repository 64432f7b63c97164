//! Which devices are the foreground's own: discards count there and nowhere else.

use super::actors::{Actor, Look};
use super::topology::{Made, is_stacked};

/// Fewer bytes than this are a trickle: journals discard a few KiB every few seconds.
const TRICKLE: f64 = (16_u64 << 20) as f64;

/// A device that carried less than this share of an actor's operations is no member of it.
const CARRIED: f64 = 0.001;

/// Members that weren't recognised carried this share of an actor's operations together,
/// to this many times as many.
const TOGETHER: std::ops::RangeInclusive<f64> = 0.8..=1.25;

/// So many other devices are named in a warning.
const NAMED: usize = 5;

/// The devices of a log, by the foreground.
pub(super) struct Own<'a> {
    look: &'a Look<'a>,
    /// The bytes that each device discarded.
    bytes: Vec<f64>,
    own: Vec<bool>,
}

impl<'a> Own<'a> {
    pub(super) fn of(look: &'a Look<'a>, made: &[Made], actors: &[Actor]) -> Own<'a> {
        let all = 0..look.log.columns.len();
        let discarded = |i: usize| look.sum(i, |s| s.bytes[2]) * look.interval_s;
        let mut it = Own {
            look,
            own: vec![false; all.len()],
            bytes: all.map(discarded).collect(),
        };
        for actor in actors {
            it.add(actor.column, made);
        }
        it.forget_stacked(made);
        if it.own_bytes() < TRICKLE {
            it.add_members(actors);
        }
        it
    }

    /// Whether a device is the foreground's own.
    pub(super) fn has(&self, i: usize) -> bool {
        self.own[i]
    }

    /// Describes the discards of other devices; `None` if they are next to nothing.
    pub(super) fn others(&self) -> Option<String> {
        let mut others: Vec<usize> = (0..self.own.len())
            .filter(|&i| !self.own[i] && self.bytes[i] >= TRICKLE)
            .collect();
        others.sort_by(|&a, &b| self.bytes[b].total_cmp(&self.bytes[a]));
        let name = |&i: &usize| {
            let bytes = record::units::bytes(self.bytes[i] as u64);
            format!("{} {bytes}", self.look.log.columns[i].name)
        };
        let named: Vec<String> = others.iter().take(NAMED).map(name).collect();
        let more = match others.len() - named.len() {
            0 => String::new(),
            1 => " and one more".to_owned(),
            n => format!(" and {n} more"),
        };
        (!named.is_empty()).then(|| {
            format!(
                "Other devices discarded, too: {}{more}. trimbench leaves those discards out, because \
                 the foreground isn't on these devices or they lie over a drive whose own discards \
                 count. If the foreground is on one of them, name it (--set device=NAME, --members).",
                named.join(", ")
            )
        })
    }

    /// Describes members of which it isn't known how many discard each byte.
    pub(super) fn unknown_copies(&self, made: &[Made]) -> Option<String> {
        let unknown = made.iter().find(|made| {
            let bytes: f64 = made.members.iter().map(|&i| self.bytes[i]).sum();
            self.own[made.whole] && bytes >= TRICKLE && made.copies(self.look).is_none()
        })?;
        let name = |i: usize| self.look.log.columns[i].name.as_str();
        let whole = name(unknown.whole);
        Some(format!(
            "Unknown copies: the writes to {whole} don't show whether its members are mirrors (too few, \
             or parity beside them). The bytes discarded may count each byte up to {} times.",
            unknown.members.len()
        ))
    }

    /// A device and all that it is made of.
    fn add(&mut self, i: usize, made: &[Made]) {
        if std::mem::replace(&mut self.own[i], true) {
            return;
        }
        let members = made.iter().filter(|m| m.whole == i);
        for &member in members.flat_map(|m| &m.members) {
            self.add(member, made);
        }
    }

    /// A loop device, a RAID or a mapping lies over something. Where that isn't known,
    /// and drives of the foreground discard themselves, its discards may be theirs.
    fn forget_stacked(&mut self, made: &[Made]) {
        let over = |i: usize| made.iter().any(|m| m.whole == i);
        let stacked: Vec<usize> = (0..self.own.len())
            .filter(|&i| self.own[i] && !over(i) && is_stacked(&self.look.log.columns[i].name))
            .collect();
        let theirs: f64 = stacked.iter().map(|&i| self.bytes[i]).sum();
        if self.own_bytes() - theirs >= TRICKLE {
            stacked.iter().for_each(|&i| self.own[i] = false);
        }
    }

    /// Where the foreground's devices discard nothing: members that weren't recognised,
    /// if they carried about as many operations as an actor and discarded.
    fn add_members(&mut self, actors: &[Actor]) {
        for actor in actors {
            let operations = |i: usize| self.look.sum(i, |s| s.count[actor.kind]);
            let all = operations(actor.column);
            let members: Vec<usize> = (0..self.own.len())
                .filter(|&i| !self.own[i] && self.bytes[i] >= TRICKLE)
                .filter(|&i| operations(i) > CARRIED * all)
                .collect();
            let together: f64 = members.iter().map(|&i| operations(i)).sum();
            if TOGETHER.contains(&(together / all)) {
                members.iter().for_each(|&i| self.own[i] = true);
            }
        }
    }

    fn own_bytes(&self) -> f64 {
        let own = self.own.iter().zip(&self.bytes);
        own.filter(|(own, _)| **own).map(|(_, bytes)| bytes).sum()
    }
}
