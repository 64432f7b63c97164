//! The keys of a scenario, section by section.

use std::time::Duration;

use record::section;
use record::units::values as v;

use super::uses::{AT_BLOCKS, IN_THE_FILE, MIXED, OWN_FILE};
use super::words::{self, ActorOp, Arrival, Counters};
use crate::plan::{Control, Engine, PatternKind};

section! {
    /// The keys at the top, outside any section.
    pub struct General["", |_| ""] {
        /// The scenario in a line.
        "about" about: String = v::line;
        /// The figure that tells most.
        "look-at" look_at: String = v::line;
        /// The engine of reads and writes.
        "engine" engine: Engine = words::engine, default "auto", words words::engines;
        /// Reads per second of the canary, one outstanding 4 KiB read; 0 for none.
        "canary" canary_per_s: f64 = v::rate_or_none, default "100";
        /// Seed of offsets and arrivals.
        "seed" seed: u64 = v::number, default "1";
        /// The same deletion first without discards, to find out whether other causes make the same
        /// dip.
        "control" control: Control = str::parse, default "off", words Control::words;
        /// Devices whose discards the kernel doesn't count (queue/iostats is off).
        "counters" counters: Counters = str::parse, default "needed", words Counters::words;
    }
}

section! {
    /// The file that readers, writers, mixed actors and the canary share, as a database's table.
    pub struct Foreground["foreground", |_| ""] {
        /// Its size.
        "size" size_bytes: u64 = v::size, most "1G";
    }
}

section! {
    /// One source of load in the foreground.
    pub struct Actor["actor", Actor::kind] {
        /// Its name in the output.
        "name" name: String = v::actor_name, shown "from op";
        /// Its operation.
        "op" op: ActorOp = ActorOp::parse, default "read", words ActorOp::words;
        /// Order of its blocks.
        "pattern" pattern: PatternKind = str::parse, default "random", words PatternKind::words,
            needs |actor| actor.does(IN_THE_FILE);
        /// Bytes per operation; tasks have their own default.
        "block-size" block_bytes: u32 = v::block_size, default "4k";
        /// Closed loop: operations kept in flight; open loop: most in flight.
        "depth" depth: u32 = v::depth, default "8; open: 64; append, a task, open task: 1";
        /// Operations submitted and reaped at once (closed loop).
        "batch" batch: u32 = v::depth, default "1",
            needs |actor| actor.does(AT_BLOCKS).or_else(|| actor.rate_per_s.map(|_| "no rate (--rate)".into()));
        /// Open loop: operations per second, whatever happens.
        "rate" rate_per_s: f64 = v::rate, shown "none";
        /// Open loop: when operations arrive.
        "arrival" arrival: Arrival = str::parse, default "constant", words Arrival::words,
            needs |actor| actor.rate_per_s.is_none().then(|| "a rate (--rate)".into());
        /// Whether it goes through the page cache.
        "buffered" buffered: bool = v::truth, default "false",
            needs |actor| actor.does(AT_BLOCKS);
        /// Share of reads in a mixed load.
        "reads" read_percent: u8 = v::read_percent, default "70%",
            needs |actor| actor.does(MIXED);
        /// Largest size of its own file.
        "size" size_bytes: u64 = v::size, shown "1G; a task: its own",
            needs |actor| actor.does(OWN_FILE);
    }
}

section! {
    /// How long the phases last.
    pub struct Phases["phases", |_| ""] {
        /// Longest time to wait for a steady foreground.
        "settle" settle: Duration = v::duration, default "60s";
        /// Length of the baseline, before a deletion or an event.
        "baseline" baseline: Duration = v::positive_duration, default "10s";
        /// Time to continue after the discards are done.
        "recovery" recovery: Duration = v::duration, default "10s";
        /// How long discards are waited for after the last deletion call.
        "drain-limit" drain_limit: Duration = v::duration, default "60s";
        /// Length of the record's intervals, 10ms to 10s.
        "interval" interval: Duration = v::interval, default "100ms";
    }
}

section! {
    /// How the record is judged.
    pub struct Judging["judge", |_| ""] {
        /// An interval counts as stalled below this share of the baseline.
        "low" low: f64 = v::low, shown "the run's own, or 50%";
        /// On a slowed drive of `lab`: times and rates as those of the drive that it stands for.
        "as-drive" as_drive: bool = v::truth, default "false";
    }
}

#[cfg(test)]
mod tests {
    use load::deleter::{AskedDeletion, End};
    use record::units::settings::Section;

    use super::*;

    #[test]
    fn each_key_takes_its_own_default() {
        let (general, phases) = (General::default(), Phases::default());
        assert_eq!((general.seed(), general.canary_per_s()), (1, 100.0));
        assert_eq!(
            (general.engine(), general.control()),
            (Engine::Auto, Control::Off)
        );
        assert_eq!(general.counters(), Counters::Needed);
        assert!(!Judging::default().as_drive());
        let lengths = [phases.settle(), phases.baseline(), phases.recovery()];
        assert_eq!(lengths.map(|time| time.as_secs()), [60, 10, 10]);
        let rest = [phases.drain_limit(), phases.interval()];
        assert_eq!(rest.map(|time| time.as_millis()), [60_000, 100]);
        for (how, parallel, sleep_ms, files) in [
            ("unlink", 1, 100, 1),
            ("spill", 4, 500, 1),
            ("purge", 1, 100, 32),
        ] {
            let deletion = AskedDeletion::of(&[format!("how={how}")]).unwrap();
            assert_eq!(deletion.parallel(), parallel, "{how}");
            assert_eq!(deletion.sleep().as_millis(), sleep_ms, "{how}");
            assert_eq!(deletion.files(), files, "{how}");
        }
        let plain = AskedDeletion::default();
        assert_eq!(plain.chunk_bytes(), 128 << 20);
        assert!(!plain.fsync() && !plain.no_sync());
        assert_eq!((plain.from(), plain.at_once()), (End::Head, 4));
        assert_eq!((plain.every(), plain.levels()), (Duration::from_secs(2), 3));
        assert_eq!(plain.write_rate_bytes_per_s(), 100 << 20);
        let times = [plain.run_for(), plain.event_quiet()];
        assert_eq!(
            times.map(|time| time.as_secs()),
            [30, crate::drain::QUIET.as_secs()]
        );
    }
}
