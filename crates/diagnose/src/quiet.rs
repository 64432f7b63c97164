//! The quietest window of the week, from a history of I/O: pure.
//!
//! A history is a log of `watch --json`, or the answer of Prometheus to `query_range`. Of several devices
//! the busiest counts, because a volume's I/O is also that of the disks below it. The week is in local
//! time, as people's days and their jobs are.

use std::collections::BTreeMap;
use std::io::Read;

use record::units;
use serde::Deserialize;

/// The week is looked at in quarters of an hour, of which all offsets of time zones are multiples.
const SLOT_S: i64 = 900;
const SLOTS: usize = 7 * 24 * 4;
/// A window spreads the machines of a fleet over so many slots at most: half a day.
const WIDEST: usize = 48;
/// A longer sample shows no time of the day.
const LONGEST_S: f64 = 86_400.0;
/// The year 5138, in seconds since 1970. A later time is none.
const LATEST_S: f64 = 1e11;

/// Reads and writes over time.
#[derive(Debug, Default)]
pub struct History {
    /// By the number of the slot since 1970.
    slots: BTreeMap<i64, Sum>,
}

#[derive(Debug, Default)]
struct Sum {
    seconds: f64,
    operations: f64,
}

/// Why there is no window.
#[derive(Debug, PartialEq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum QuietError {
    #[error("neither a log of watch --json nor Prometheus' answer to query_range: {0}")]
    Foreign(String),
    #[error("is empty or damaged: it ends before its first figures")]
    Empty,
    #[error(
        "covers {}, and a week is needed: run trimbench watch --quiet --interval 1m --json FILE for a \
         week or more, or ask Prometheus for more days",
        units::seconds(*.known_s)
    )]
    TooShort { known_s: f64 },
    #[error(
        "the trim takes {}, and the history has no stretch of the week that long without a gap",
        units::seconds(*.needed_s)
    )]
    NoWindow { needed_s: f64 },
}

/// An update of `watch`, or an answer of Prometheus.
#[derive(Deserialize)]
struct Document {
    #[serde(flatten)]
    update: Option<Update>,
    data: Option<Answer>,
}

#[derive(Deserialize)]
struct Update {
    unix_s: f64,
    seconds: f64,
    devices: Vec<Device>,
}

#[derive(Deserialize)]
struct Device {
    reads: Work,
    writes: Work,
    counts: bool,
}

#[derive(Deserialize)]
struct Work {
    per_s: f64,
}

#[derive(Deserialize)]
struct Answer {
    result: Vec<Series>,
}

#[derive(Deserialize)]
struct Series {
    values: Vec<(f64, String)>,
}

impl History {
    /// Reads a history. A line that a killed `watch` left unfinished is its end.
    ///
    /// # Errors
    /// If it is something else, or damaged.
    pub fn read(from: impl Read) -> Result<History, QuietError> {
        let (mut history, mut is_empty) = (History::default(), true);
        for document in serde_json::Deserializer::from_reader(from).into_iter::<Document>() {
            match document {
                Ok(Document {
                    data: Some(data), ..
                }) => history.answer(data),
                Ok(Document {
                    update: Some(update),
                    ..
                }) => history.update(&update),
                Ok(_) => return Err(QuietError::Foreign("it has no I/O".to_owned())),
                Err(error) if error.is_eof() => break,
                Err(error) => return Err(QuietError::Foreign(error.to_string())),
            }
            is_empty = false;
        }
        match is_empty {
            true => Err(QuietError::Empty),
            false => Ok(history),
        }
    }

    fn update(&mut self, update: &Update) {
        let known = update.devices.iter().filter(|device| device.counts);
        let busiest = known.map(|device| device.reads.per_s + device.writes.per_s);
        if let Some(per_s) = busiest.reduce(f64::max) {
            self.add(update.unix_s - update.seconds, update.unix_s, per_s);
        }
    }

    /// A value is the rate in the step before its time. `NaN` is none.
    fn answer(&mut self, answer: Answer) {
        let mut values: BTreeMap<i64, f64> = BTreeMap::new();
        for (at_s, text) in answer.result.into_iter().flat_map(|series| series.values) {
            if let Some(value) = text.parse().ok().filter(|value: &f64| value.is_finite()) {
                let busiest = values.entry(at_s as i64).or_default();
                *busiest = busiest.max(value);
            }
        }
        let steps = values.keys().zip(values.keys().skip(1));
        let Some(step) = steps.map(|(one, next)| next - one).min() else {
            return;
        };
        for (end, per_s) in values {
            self.add((end - step) as f64, end as f64, per_s);
        }
    }

    /// Adds a stretch to the slots that it lies in.
    fn add(&mut self, from_s: f64, to_s: f64, per_s: f64) {
        let is_time = from_s >= 0.0 && to_s < LATEST_S && to_s - from_s <= LONGEST_S;
        let is_known = is_time && per_s >= 0.0 && per_s.is_finite();
        let mut at = from_s;
        while is_known && at < to_s {
            let slot = (at / SLOT_S as f64).floor() as i64;
            let end = to_s.min((slot + 1) as f64 * SLOT_S as f64);
            let sum = self.slots.entry(slot).or_default();
            sum.seconds += end - at;
            sum.operations += per_s * (end - at);
            at = end;
        }
    }

    /// Returns the quietest window for a trim that takes so long. `offset_s`: by how much local time is
    /// ahead of UTC at a moment.
    ///
    /// # Errors
    /// If less than a week of I/O is known, or no stretch of the week is long enough.
    pub fn quietest(
        &self,
        needed_s: f64,
        offset_s: impl Fn(i64) -> i64,
    ) -> Result<Window, QuietError> {
        let known_s: f64 = self.slots.values().map(|sum| sum.seconds).sum();
        // The ends of a week are rarely those of slots.
        if known_s < ((SLOTS as i64 - 1) * SLOT_S) as f64 {
            return Err(QuietError::TooShort { known_s });
        }
        let loads = self.loads(offset_s);
        let slots = (needed_s / SLOT_S as f64).ceil().max(1.0) as usize;
        let found = calmest(&loads, slots).ok_or(QuietError::NoWindow { needed_s })?;
        let mut known: Vec<f64> = loads.iter().flatten().copied().collect();
        known.sort_by(f64::total_cmp);
        let unknown = SLOTS - known.len();
        let median = known.get(known.len() / 2);
        let minutes = |slots: usize| slots as u64 * SLOT_S as u64 / 60;
        Ok(Window {
            start: minutes(found.start),
            minutes: minutes(found.slots),
            spare: (minutes(found.slots)).saturating_sub((needed_s / 60.0).ceil() as u64),
            per_s: found.peak,
            is_quieter: median.is_some_and(|median| found.peak < *median),
            known_s,
            unknown: unknown as f64 / SLOTS as f64,
        })
    }

    /// The mean load of each slot of a week that begins on Sunday, of all its weeks the highest. `None`
    /// where no week has half of the slot.
    fn loads(&self, offset_s: impl Fn(i64) -> i64) -> Vec<Option<f64>> {
        let mut loads = vec![None; SLOTS];
        for (slot, sum) in &self.slots {
            if sum.seconds * 2.0 < SLOT_S as f64 {
                continue;
            }
            let utc_s = slot * SLOT_S;
            // 1970 began on a Thursday.
            let local = (utc_s + offset_s(utc_s)).div_euclid(SLOT_S) + 4 * 24 * 4;
            let load: &mut Option<f64> = &mut loads[local.rem_euclid(SLOTS as i64) as usize];
            let mean = sum.operations / sum.seconds;
            *load = Some(load.map_or(mean, |most| most.max(mean)));
        }
        loads
    }
}

/// A window in slots.
struct Found {
    start: usize,
    slots: usize,
    peak: f64,
}

/// Returns the stretch with the lowest peak, with the neighbours that are no busier. The week is a ring.
fn calmest(loads: &[Option<f64>], slots: usize) -> Option<Found> {
    let at = |slot: usize| loads[slot % SLOTS];
    if slots > SLOTS {
        return None;
    }
    let figures = |start: usize| -> Option<(f64, f64, usize)> {
        let mut within = (start..start + slots).map(at);
        within.try_fold((0.0, 0.0, start), |(peak, sum, start), load| {
            Some((load?.max(peak), sum + load?, start))
        })
    };
    let all = (0..SLOTS).filter_map(figures);
    let lowest = all.min_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let (peak, _, mut start) = lowest?;
    let is_quiet = |slot: usize| at(slot).is_some_and(|load| load <= peak);
    let mut length = slots;
    while length < WIDEST && is_quiet(start + length) {
        length += 1;
    }
    while length < WIDEST && is_quiet(start + SLOTS - 1) {
        start = (start + SLOTS - 1) % SLOTS;
        length += 1;
    }
    Some(Found {
        start,
        slots: length,
        peak,
    })
}

/// The quietest window of the week.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// When it begins, in minutes since Sunday 0:00, local time.
    pub start: u64,
    /// Its length.
    pub minutes: u64,
    /// The minutes by which a trim may begin later.
    pub spare: u64,
    /// Reads and writes of the busiest device, each second: the mean of a quarter of an hour, at most.
    pub per_s: f64,
    /// Whether that is less than in half of the week's quarters.
    pub is_quieter: bool,
    /// How much of the history is known, in seconds.
    pub known_s: f64,
    /// The share of the week of which nothing is known.
    pub unknown: f64,
}

impl Window {
    /// Its begin, as `OnCalendar=` takes it.
    pub fn calendar(&self) -> String {
        let (day, time) = moment(self.start);
        format!("{day} *-*-* {time}:00")
    }
}

/// `Sun 03:45–05:15, with I/O at most 12/s in 21 days of history`.
impl std::fmt::Display for Window {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (day, from) = moment(self.start);
        let (end, to) = moment(self.start + self.minutes);
        let end = if end == day { "" } else { &format!("{end} ") };
        let (per_s, days) = (units::rate(self.per_s), (self.known_s / 86_400.0).round());
        write!(
            f,
            "{day} {from}–{end}{to}, with I/O at most {per_s} in {days} days of history"
        )?;
        if !self.is_quieter {
            f.write_str("; no window so long is quieter than the rest of the week")?;
        }
        match self.unknown > 0.0 {
            true => write!(
                f,
                "; {} of the week is unknown",
                units::percent(self.unknown)
            ),
            false => Ok(()),
        }
    }
}

/// The day and the time of a minute of the week.
fn moment(minute: u64) -> (&'static str, String) {
    const DAYS: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    let day = DAYS[(minute / 1440 % 7) as usize];
    (day, format!("{:02}:{:02}", minute / 60 % 24, minute % 60))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-10-04, a Sunday, 0:00 UTC.
    const SUNDAY: i64 = 1_791_072_000;

    /// So many days from `SUNDAY` on, each minute with the load of that minute.
    fn history(days: i64, load: impl Fn(i64) -> f64) -> History {
        let mut history = History::default();
        for minute in 0..days * 1440 {
            let from = (SUNDAY + minute * 60) as f64;
            history.add(from, from + 60.0, load(minute));
        }
        history
    }

    /// Busy but from one minute of each week to another.
    fn quiet(from: i64, to: i64) -> impl Fn(i64) -> f64 {
        move |minute| match (from..to).contains(&minute.rem_euclid(10_080)) {
            true => 7.0,
            false => 500.0,
        }
    }

    #[test]
    fn the_window_is_where_it_is_quiet_and_long_enough() {
        let night = history(21, quiet(225, 315));
        let found = night.quietest(25.0 * 60.0, |_| 0).unwrap();
        assert_eq!(found.calendar(), "Sun *-*-* 03:45:00");
        assert_eq!((found.minutes, found.spare, found.unknown), (90, 65, 0.0));
        assert_eq!(
            found.to_string(),
            "Sun 03:45–05:15, with I/O at most 7.0/s in 21 days of history"
        );
        // Ten hours ahead, the same moment has another name.
        let found = night.quietest(60.0, |_| 36_000).unwrap();
        assert_eq!(found.calendar(), "Sun *-*-* 13:45:00");
        let longer = night.quietest(91.0 * 60.0, |_| 0).unwrap();
        assert_eq!(longer.per_s, 500.0);
        assert!(
            longer
                .to_string()
                .ends_with("; no window so long is quieter than the rest of the week"),
            "{longer}"
        );
        let whole = night.quietest(8.0 * LONGEST_S, |_| 0).unwrap_err();
        assert!(matches!(whole, QuietError::NoWindow { .. }));
    }

    #[test]
    fn the_week_is_a_ring() {
        let over_its_end = |minute: i64| quiet(0, 150)((minute + 60).rem_euclid(10_080));
        let found = history(14, over_its_end).quietest(7200.0, |_| 0).unwrap();
        assert_eq!(found.calendar(), "Sat *-*-* 23:00:00");
        assert!(found.to_string().starts_with("Sat 23:00–Sun 01:30, "));
    }

    /// Clocks go back by an hour on 2026-10-25, 1:00 UTC, and the quiet hour with them.
    #[test]
    fn a_job_that_keeps_local_time_is_quiet_at_one_time_of_the_day() {
        let offset = |utc_s: i64| {
            if utc_s < SUNDAY + 21 * 86_400 + 3600 {
                7200
            } else {
                3600
            }
        };
        let local = |minute: i64| minute + offset(SUNDAY + minute * 60) / 60;
        let night = history(42, |minute| quiet(1440 + 180, 1440 + 240)(local(minute)));
        let found = night.quietest(1800.0, offset).unwrap();
        assert_eq!(found.calendar(), "Mon *-*-* 03:00:00");
        assert_eq!((found.minutes, found.per_s), (60, 7.0));
        // Of UTC's hours no whole one is quiet in all weeks.
        assert_eq!(night.quietest(1800.0, |_| 0).unwrap().per_s, 500.0);
    }

    #[test]
    fn unknown_is_neither_quiet_nor_loud() {
        assert!(matches!(
            history(6, |_| 1.0).quietest(60.0, |_| 0),
            Err(QuietError::TooShort { known_s }) if known_s == 6.0 * 86_400.0
        ));
        // Off from Sunday 2:00 to 3:00, the quietest hour but for the one before.
        let off = |minute: i64| (120..180).contains(&minute.rem_euclid(10_080));
        let mut history = History::default();
        for minute in (0..21 * 1440).filter(|minute| !off(*minute)) {
            let from = (SUNDAY + minute * 60) as f64;
            history.add(from, from + 60.0, quiet(60, 180)(minute));
        }
        let found = history.quietest(1800.0, |_| 0).unwrap();
        assert_eq!((found.start, found.minutes), (60, 60));
        assert!(
            found
                .to_string()
                .ends_with("; 0.6 % of the week is unknown"),
            "{found}"
        );
        history.add(0.0, f64::INFINITY, 1.0);
        history.add(0.0, 900.0, f64::NAN);
        assert_eq!(history.quietest(1800.0, |_| 0).unwrap(), found);
    }

    #[test]
    fn both_formats_are_read() {
        let device = |per_s: f64, counts: bool| {
            format!(
                "{{\"reads\":{{\"per_s\":{per_s}}},\"writes\":{{\"per_s\":1}},\"counts\":{counts}}}"
            )
        };
        let devices = [device(4.0, true), device(9.0, true), device(99.0, false)].join(",");
        let line = format!("{{\"unix_s\":1800,\"seconds\":900,\"devices\":[{devices}]}}\n");
        let cut = format!("{line}{}", &line[..20]);
        let answer = r#"{"status":"success","data":{"resultType":"matrix","result":[
            {"metric":{"device":"sda"},"values":[[1800,"10"],[2700.0,"NaN"],[3600,"3"],[4500,"2"]]},
            {"metric":{"device":"sdb"},"values":[[1800,"4"],[4500,"5.5"]]}]}}"#;
        for (text, wanted) in [
            (cut.as_str(), &[(1, 10.0)][..]),
            (answer, &[(1, 10.0), (3, 3.0), (4, 5.5)]),
        ] {
            let history = History::read(text.as_bytes()).unwrap();
            let means = history
                .slots
                .iter()
                .map(|(slot, sum)| (*slot, sum.operations / sum.seconds));
            assert_eq!(means.collect::<Vec<_>>(), wanted);
        }
        for cut in ["", "\n", &line[..20], &answer[..200]] {
            let read = History::read(cut.as_bytes());
            assert!(matches!(read, Err(QuietError::Empty)), "{cut}");
        }
        for wrong in ["no JSON", "{}", "[]"] {
            assert!(
                matches!(History::read(wrong.as_bytes()), Err(QuietError::Foreign(_))),
                "{wrong}"
            );
        }
    }

    proptest! {
        #[test]
        fn no_other_window_has_a_lower_peak(
            loads in proptest::collection::vec(proptest::option::weighted(0.97, 0.0..9.0), SLOTS),
            slots in 1_usize..12,
        ) {
            let peak = |start: usize, slots: usize| {
                (start..start + slots).map(|slot| loads[slot % SLOTS]).try_fold(0.0_f64, |a, b| Some(a.max(b?)))
            };
            let lowest = (0..SLOTS).filter_map(|start| peak(start, slots)).reduce(f64::min);
            let found = calmest(&loads, slots);
            prop_assert_eq!(found.as_ref().map(|found| found.peak), lowest);
            if let Some(found) = found {
                prop_assert!(found.slots >= slots);
                prop_assert_eq!(peak(found.start, found.slots), lowest);
            }
        }
    }
}
