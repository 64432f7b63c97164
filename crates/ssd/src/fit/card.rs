//! A fit as a device card: what was measured says so, and what wasn't says what
//! was taken in its place.

use record::units::settings::SetError;

use super::{Barrier, Figure, Fit};
use crate::card::{Card, Entry, Note, Sure};

/// Cost of a MiB where only one size was seen: 256 entries of a map of 4-KiB units at 32.5 ns each.
/// Both drives whose cost by size is known have that (Samsung 870 EVO 33 ns, Crucial T500 32 ns;
/// iostat logs of 2024).
const USUAL_US_PER_MIB: f64 = 8.32;

/// Why nothing is served beside a discard, whatever a drive could do.
const SENT_ALONE: &str =
    "Linux sends its TRIM outside of the queue, when every other command is done";

/// Sizes this many times apart are those of a ladder.
const SEVERAL: f64 = 4.0;

/// How the sentence begins, after its subject, that a card holds for one size alone.
const HOLDS: &str = "holds for discards of about ";

impl Card {
    /// Why it holds for discards of one size alone, if it does, as a sentence without its subject.
    pub fn holds_for(&self) -> Option<&str> {
        let at = self.about().rfind(HOLDS)?;
        Some(&self.about()[at..])
    }

    /// The size of the discards that it was made of, in bytes, if they had one: it holds for no other.
    pub fn one_size(&self) -> Option<u64> {
        let size = self.holds_for()?[HOLDS.len()..].split_once(" alone")?.0;
        let (number, unit) = size.trim_end().split_once(' ')?;
        let unit = record::units::parse_size(&format!("1{unit}")).ok()?;
        Some((number.parse::<f64>().ok()? * unit as f64) as u64)
    }
}

/// A card's account of how it was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Made {
    /// The card's name.
    pub name: String,
    /// The drive, e.g. its model and size.
    pub drive: String,
    /// When and on what it was measured, e.g. `2026-03-01, Linux 6.12, ext4`.
    pub when: String,
}

/// A mean time of reads that is known no better than to this share of it is no drive's.
const DISTURBED: f64 = 0.2;

impl Fit {
    /// The card of the drive that was measured.
    ///
    /// It has every figure that a simulated drive needs. Figures that aren't identifiable are
    /// chosen so that discards of the measured sizes take the measured time. They count as assumed
    /// or as a bound, with the reason as their source.
    ///
    /// # Errors
    /// If a figure is so large that no card can hold it.
    pub fn card(&self, made: &Made) -> Result<Card, SetError> {
        let mut entries = Entries {
            when: &made.when,
            list: Vec::new(),
        };
        self.discards(&mut entries);
        self.reads(&mut entries);
        let unknown = "not measured; usual for a drive with a cache";
        for (path, value) in [
            ("write.latency", "20us"),
            ("write.parallelism", "4"),
            ("flush.latency", "1ms"),
        ] {
            entries.add(path, value.to_owned(), Sure::Assumed, unknown);
        }
        Card::of(&made.name, &self.about(made), entries.list)
    }

    /// Why a card of it holds for discards of one size alone, if it does.
    pub(super) fn of_one_size(&self) -> Option<String> {
        let ends = [self.points.first(), self.points.last()].map(|p| p.map_or(0.0, |p| p.mib));
        let next = match ends[1] > SEVERAL * ends[0] {
            true => "",
            false => " A ladder measures several sizes: trimbench fit DIRECTORY --output CARD.",
        };
        let size = record::units::bytes(self.only_bytes()?);
        let why = why(&self.a_us);
        Some(format!("{HOLDS}{size} alone: {why}.{next}"))
    }

    fn about(&self, made: &Made) -> String {
        let sentence = match (&self.a_us, &self.b_us_per_mib) {
            (Figure::Known(a), Figure::Known(b)) if b.value > 0.0 && a.value > 0.0 => format!(
                " Break-even size a/b = {}.",
                record::units::bytes((a.value / b.value * record::units::MIB as f64) as u64)
            ),
            (Figure::Known(_), Figure::Known(_)) => String::new(),
            _ => match self.of_one_size() {
                Some(holds) => format!(" It {holds}"),
                None => " Not all of its figures could be measured: see the sources.".to_owned(),
            },
        };
        format!("{}, measured {}.{sentence}", made.drive, made.when)
    }

    fn discards(&self, entries: &mut Entries<'_>) {
        let rests = record::units::counted(self.discards, "discard");
        let (a, b) = self.costs();
        entries.add(
            "discard.a",
            time(a.us),
            a.sure,
            &format!("{}; {rests}", a.source),
        );
        entries.add("discard.b", per_mib(b.us), b.sure, &b.source);
        if let Some(jitter) = self.jitter.filter(|&j| j >= 0.01) {
            let text = format!("{:.0}%", jitter * 100.0);
            let source = "spread between stretches of a few discards, as each one's";
            entries.add("discard.jitter", text, Sure::Derived, source);
        }
        if let Some(bytes) = self.max_bytes {
            let source = "as Linux sends them: its discard_max_bytes";
            let text = record::units::bytes_exact(bytes);
            entries.add("discard.max_bytes", text, Sure::Measured, source);
        }
        let (sure, source) = self.queue();
        // None of the records tells how many discards a drive works at beside each other.
        let queue = if self.drains() {
            "non-ncq-drain"
        } else {
            "exclusive"
        };
        entries.add("discard.queue", queue.to_owned(), sure, &source);
        let (value, sure, source) = self.phi();
        let value = (value * 1000.0).round() / 1000.0;
        entries.add("discard.phi", value.to_string(), sure, &source);
    }

    /// How sure it is that a discard runs alone, and what says so.
    fn queue(&self) -> (Sure, String) {
        if self.drains() {
            return (
                Sure::Measured,
                format!("{SENT_ALONE}, as its ata_device says"),
            );
        }
        let Some(barrier) = self.share.barrier else {
            let source = "not in the records; the worst case";
            return (Sure::Assumed, source.to_owned());
        };
        let seen = self.share.seen();
        match barrier {
            Barrier::Batches => (
                Sure::Derived,
                format!(
                    "{seen}, so nothing else is served beside a discard; a drive that drains its queue \
                     first (non-ncq-drain) looks alike"
                ),
            ),
            Barrier::TimeLost => (
                Sure::Derived,
                format!("{seen}, so nothing else is served beside one; see phi"),
            ),
            Barrier::None => (
                Sure::Assumed,
                format!("{seen} (see phi); that discards run one at a time is the worst case"),
            ),
        }
    }

    /// phi, how sure it is, and what says so.
    fn phi(&self) -> (f64, Sure, String) {
        if self.drains() {
            return (1.0, Sure::Derived, SENT_ALONE.to_owned());
        }
        let figure = &self.share.phi;
        let Some(phi) = figure.estimate() else {
            let source = format!("the worst case; {}", why(figure));
            return (1.0, Sure::Assumed, source);
        };
        let (low, high) = (
            record::units::percent(phi.low),
            record::units::percent(phi.high),
        );
        let source = match phi.value == 1.0 && self.share.barrier == Some(Barrier::Batches) {
            true => format!("a barrier: {}", self.share.seen()),
            false => format!(
                "the time that other I/O lost beside discards, as a share of theirs; 95 % confidence \
                 {low} to {high}"
            ),
        };
        (phi.value, Sure::Derived, source)
    }

    /// a in microseconds and b in microseconds per MiB as [`Fit::card`] has them: measured, or
    /// what it assumes in their place.
    pub fn costs_in_card(&self) -> (f64, f64) {
        let (a, b) = self.costs();
        (a.us, b.us)
    }

    /// a and b, or what takes their place.
    fn costs(&self) -> (Cost, Cost) {
        if let Some(line) = self.line {
            return (
                Cost::of(line.a_us, &self.a_us, ""),
                Cost::of(line.b_us, &self.b_us_per_mib, " per MiB"),
            );
        }
        let why_not = why(&self.a_us).to_owned();
        let (mib, sure, service) = match &self.service_us {
            Figure::Known(service) => (self.at_mib, Sure::Assumed, service.value),
            Figure::AtMost { bound, .. } => (self.at_mib, Sure::Bound, *bound),
            Figure::Unknown { .. } => (self.at_mib, Sure::Assumed, 0.0),
        };
        let left = (service - USUAL_US_PER_MIB * mib).max(0.0);
        // Not even the smallest discard takes less than a.
        let least = self.points.iter().map(|point| point.service_us.high);
        let a = least.fold(left, f64::min);
        let b = if mib > 0.0 { (service - a) / mib } else { 0.0 };
        let (of_a, of_b) = match a < left {
            true => (
                "the most that the smallest discard takes",
                "what a leaves of it",
            ),
            false => (
                "what b leaves of it",
                "33 ns for each 4 KiB at most, as two measured drives",
            ),
        };
        let size = record::units::bytes((mib * record::units::MIB as f64) as u64);
        let how = format!("a discard of {size} takes {}; {why_not}", us(service));
        (
            Cost::new(a, sure, format!("{of_a}: {how}")),
            Cost::new(b, sure, format!("{of_b}: {how}")),
        )
    }

    fn reads(&self, entries: &mut Entries<'_>) {
        match self.reads.service_us.estimate() {
            Some(read) if read.half_width() > DISTURBED * read.value => {
                let [low, high] = [read.low, read.high].map(us);
                let source = format!(
                    "usual for an SSD; the reads beside no discards were disturbed ({low} to {high})"
                );
                entries.add("read.latency", "80us".to_owned(), Sure::Assumed, &source);
            }
            Some(read) => {
                let rate = self.reads.per_s.map_or_else(String::new, |r| {
                    format!(", {} of them", record::units::rate(r))
                });
                let source = format!("mean time of a read beside no discards{rate}");
                entries.add("read.latency", time(read.value), Sure::Measured, &source);
            }
            None => {
                let source = format!("usual for an SSD; {}", why(&self.reads.service_us));
                entries.add("read.latency", "80us".to_owned(), Sure::Assumed, &source);
            }
        }
        let seen = self.reads.in_flight.map_or(0, |n| n.ceil() as u32);
        let source = match seen {
            0 => "not measured; usual for an SSD".to_owned(),
            n => format!("{n} were in flight; how many more it takes wasn't tried"),
        };
        let parallel = seen.max(32).to_string();
        entries.add("read.parallelism", parallel, Sure::Assumed, &source);
    }
}

struct Cost {
    us: f64,
    sure: Sure,
    source: String,
}

impl Cost {
    /// A cost as the line has it.
    fn of(value: f64, figure: &Figure, unit: &str) -> Cost {
        match figure {
            Figure::Known(known) => {
                let (low, high) = (us(known.low), us(known.high));
                let source = format!("95 % confidence {low} to {high}{unit}");
                Cost::new(value, Sure::Derived, source)
            }
            // The line's value is a guess below the bound, so it is none itself.
            figure => Cost::new(value, Sure::Assumed, format!("not sure: {}", why(figure))),
        }
    }

    fn new(us: f64, sure: Sure, source: String) -> Cost {
        Cost { us, sure, source }
    }
}

struct Entries<'m> {
    when: &'m str,
    list: Vec<(&'static str, Entry)>,
}

impl Entries<'_> {
    fn add(&mut self, path: &'static str, text: String, sure: Sure, source: &str) {
        let source = match sure {
            Sure::Assumed => source.to_owned(),
            Sure::Measured | Sure::Derived | Sure::Bound => {
                format!("measured {}: {source}", self.when)
            }
        };
        let note = Note { sure, source };
        self.list.push((path, Entry { text, note }));
    }
}

fn why(figure: &Figure) -> &str {
    figure.why().unwrap_or("known")
}

/// A time as a card has it, to four digits.
fn time(us: f64) -> String {
    format!("{}us", digits(us))
}

fn per_mib(us: f64) -> String {
    format!("{}us/MiB", digits(us))
}

fn us(us: f64) -> String {
    record::units::latency_us(us)
}

/// Four significant digits, without an exponent.
fn digits(value: f64) -> String {
    if !(value.is_finite() && value > 0.0) {
        return "0".to_owned();
    }
    let decimals = (3 - value.log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_cards_take_them() {
        assert_eq!(time(975.96), "976us");
        assert_eq!(time(2000.0), "2000us");
        assert_eq!(time(51_234.9), "51235us");
        assert_eq!(per_mib(8.171_23), "8.171us/MiB");
        assert_eq!(per_mib(0.000_000_4), "0us/MiB");
        assert_eq!(time(f64::NAN), "0us");
    }
}
