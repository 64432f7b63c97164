//! The result of a test. Its JSON is `trimbench.verify/1`.

use record::Origin;
use serde::Serialize;

use crate::verify::cause::CauseCount;
use crate::verify::finding::Finding;

/// The schema's name.
pub const SCHEMA: &str = "trimbench.verify/1";
/// So many damaged places are described in the text.
const SHOWN: usize = 5;
/// So many causes are named in the headline.
const NAMED: usize = 3;

/// Counts of operations that succeeded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Operations {
    /// Writes.
    pub writes: u64,
    /// Reads that were compared.
    pub reads: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Bytes read and compared.
    pub read_bytes: u64,
    /// Holes punched into files.
    pub punches: u64,
    /// Files cut short or made longer.
    pub truncations: u64,
    /// Files removed, and made again.
    pub removals: u64,
    /// Discards of parts of a raw device.
    pub discards: u64,
    /// Bytes discarded there.
    pub discarded_bytes: u64,
    /// Trims of the whole file system.
    pub fstrims: u64,
    /// `fdatasync` of files.
    pub syncs: u64,
}

/// Errors that the kernel reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failure {
    /// The operation.
    pub operation: String,
    /// The error.
    pub error: String,
    /// How often.
    pub count: u64,
}

/// How a test ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// Nothing was wrong.
    #[default]
    Clean,
    /// Data were damaged.
    Corrupt,
    /// A signal stopped it, and nothing had been wrong until then.
    Interrupted,
    /// It could not go on, and nothing had been wrong until then.
    Failed,
    /// No data were wrong, and then the drive could no longer be read.
    Incomplete,
    /// No data were wrong, but the kernel reported errors.
    Errors,
}

/// The result of a test.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: &'static str,
    /// Whose result it is.
    pub origin: Origin,
    /// How it ended.
    pub outcome: Outcome,
    /// The directory or device.
    pub path: String,
    /// The file system; `None` of a raw device.
    pub fs: Option<String>,
    /// The device; `None` where that is not known.
    pub device: Option<String>,
    /// The checksum in each sector.
    pub checksum: &'static str,
    /// Bytes that were tested.
    pub size_bytes: u64,
    /// Files or regions.
    pub files: u32,
    /// Threads.
    pub workers: u32,
    /// How long it took, in seconds.
    pub seconds: f64,
    /// Whether data were read past the page cache.
    pub direct: bool,
    /// Counts of operations.
    pub operations: Operations,
    /// Damaged places found; more than are described if there are very many.
    pub finding_count: u64,
    /// The causes of all that were looked into, the most frequent one first.
    pub causes: Vec<CauseCount>,
    /// Damaged places.
    pub findings: Vec<Finding>,
    /// Errors that the kernel reported.
    pub failures: Vec<Failure>,
    /// Why it could not go on.
    pub ended_by: Option<String>,
    /// Notes about all else that deserves attention.
    pub notes: Vec<String>,
}

impl Report {
    /// The result in plain lines, each with its end.
    pub fn text(&self) -> String {
        let mut lines = vec![self.headline()];
        if self.outcome == Outcome::Corrupt {
            lines.extend([self.counted(), self.advice()]);
        }
        let operations = &self.operations;
        lines.push(format!(
            "wrote {} and compared {} in {} ({} together)",
            record::units::bytes(operations.written_bytes),
            record::units::bytes(operations.read_bytes),
            record::units::seconds(self.seconds),
            record::units::byte_rate(
                (operations.written_bytes + operations.read_bytes) as f64 / self.seconds.max(1e-3)
            ),
        ));
        lines.push(format!("beside {}", self.deletions()));
        if !self.failures.is_empty() && self.outcome != Outcome::Errors {
            lines.push(format!("the kernel reported errors: {}", self.errors()));
        }
        lines.extend(
            self.ended_by
                .iter()
                .map(|why| format!("it ended early: {why}")),
        );
        lines.extend(self.notes.iter().map(|note| format!("note: {note}")));
        if self.outcome == Outcome::Corrupt {
            lines.extend(self.places());
        }
        lines.join("\n  ") + "\n"
    }

    /// The damaged places: the first ones, and where the others are.
    fn places(&self) -> Vec<String> {
        let shown = self.findings.iter().take(SHOWN);
        let mut lines: Vec<String> = shown.map(|found| found.summary.clone()).collect();
        let described = self.findings.len() as u64;
        let more = self.finding_count - lines.len() as u64;
        if more > 0 {
            lines.push(format!(
                "and {} more places (--json FILE describes {} of {})",
                record::units::count(more),
                record::units::count(described),
                record::units::count(self.finding_count),
            ));
        }
        lines
    }

    /// How many places have each cause.
    fn counted(&self) -> String {
        let causes: Vec<String> = self.causes.iter().map(CauseCount::counted).collect();
        let explained: u64 = self.causes.iter().map(|cause| cause.findings).sum();
        let first = match explained < self.finding_count {
            true => format!(", {} of them explained", record::units::count(explained)),
            false => String::new(),
        };
        format!(
            "{}{first}: {}",
            record::units::counted(self.finding_count, "damaged place"),
            causes.join("; ")
        )
    }

    /// The next step.
    fn advice(&self) -> String {
        let device = self.device.as_deref().unwrap_or("the device");
        match self
            .causes
            .first()
            .is_some_and(|count| count.cause.is_trim())
        {
            true => format!(
                "next: stop discards on {device} (mount without discard, disable fstrim.timer), and \
                 restore what it holds from a backup"
            ),
            false => format!(
                "next: keep no data on {device}; the kernel's log (dmesg) and `smartctl -a` may show \
                 whether it is the drive, its cable or the memory"
            ),
        }
    }

    fn headline(&self) -> String {
        let place = match &self.fs {
            Some(fs) => format!("{} ({fs})", self.path),
            None => self.path.clone(),
        };
        match self.outcome {
            Outcome::Clean => format!("CLEAN  {place} returned all data as they were written"),
            Outcome::Corrupt => {
                let named = self.causes.iter().take(NAMED).map(CauseCount::headline);
                format!("CORRUPT  {place}: {}", named.collect::<Vec<_>>().join("; "))
            }
            Outcome::Interrupted => format!("INTERRUPTED  {place}: nothing was wrong until then"),
            Outcome::Failed => format!("FAILED  {place}: nothing was wrong until then"),
            Outcome::Incomplete => format!(
                "INCOMPLETE  {place}: no data were wrong, but then the drive could no longer be read"
            ),
            Outcome::Errors => format!(
                "ERRORS  {place}: no data were wrong, but the kernel reported errors: {}",
                self.errors()
            ),
        }
    }

    /// The kernel's errors, each with its count.
    fn errors(&self) -> String {
        let words = |failure: &Failure| {
            let times =
                record::units::counted(failure.count, &format!("failed {}", failure.operation));
            format!("{times} ({})", failure.error)
        };
        let words: Vec<String> = self.failures.iter().map(words).collect();
        words.join(", ")
    }

    fn deletions(&self) -> String {
        let operations = &self.operations;
        let counts = [
            (operations.discards, "discard"),
            (operations.punches, "punched hole"),
            (operations.truncations, "truncation"),
            (operations.removals, "removed file"),
            (operations.fstrims, "fstrim"),
        ];
        let some = counts.iter().filter(|(count, _)| *count > 0);
        let words: Vec<String> = some
            .map(|(count, one)| record::units::counted(*count, one))
            .collect();
        match words.is_empty() {
            true => "no discards".to_owned(),
            false => words.join(", "),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::verify::cause::{Again, Cause};
    use crate::verify::pattern::Pattern;

    fn schema() -> jsonschema::Validator {
        testkit::schema::closed(include_str!("../../schema/verify-1.json"))
    }

    pub(crate) fn finding() -> Finding {
        Finding {
            path: "/data/slot-000001".into(),
            is_file: true,
            landed: None,
            pointed: true,
            file: 1,
            offset_bytes: 4096,
            length_bytes: 8192,
            device: Some("/dev/sdb".into()),
            device_sector: Some(8),
            aligned_bytes: 4096,
            erase_block_bytes: None,
            pattern: Pattern::BitFlips { bits: 2 },
            cause: Cause::BitFlips,
            other_causes: Vec::new(),
            expected_generation: Some(1),
            found_s: 1.0,
            written_s: None,
            was_right: true,
            second_read: Again::Right,
            rewritten: Again::NotTried,
            kernel_error: None,
            nearest_discard: None,
            latest_discard: None,
            trim_reach_bytes: None,
            summary: String::new(),
        }
        .summed_up()
    }

    fn report(findings: Vec<Finding>) -> Report {
        Report {
            schema: SCHEMA,
            origin: Origin::default(),
            outcome: match findings.is_empty() {
                true => Outcome::Clean,
                false => Outcome::Corrupt,
            },
            path: "/data".into(),
            fs: Some("ext4".into()),
            device: None,
            checksum: "crc32c",
            size_bytes: 1 << 30,
            files: 16,
            workers: 4,
            seconds: 2.0,
            direct: true,
            operations: Operations {
                punches: 1,
                ..Operations::default()
            },
            finding_count: findings.len() as u64,
            causes: CauseCount::of(&findings),
            findings,
            failures: vec![Failure {
                operation: "read".into(),
                error: "Input/output error".into(),
                count: 3,
            }],
            ended_by: None,
            notes: vec!["a note".into()],
        }
    }

    #[test]
    fn the_json_is_as_the_schema_says() {
        let schema = schema();
        for report in [report(Vec::new()), report(vec![finding()])] {
            let json = serde_json::to_value(&report).unwrap();
            let errors: Vec<_> = schema.iter_errors(&json).map(|e| e.to_string()).collect();
            assert_eq!(errors, Vec::<String>::new());
        }
        assert!(!schema.is_valid(&serde_json::json!({"schema": SCHEMA})));
    }

    #[test]
    fn the_text_names_the_damage_first() {
        let mut damaged = report(vec![finding()]);
        damaged.finding_count = 5;
        let text = damaged.text();
        assert!(
            text.starts_with(
                "CORRUPT  /data (ext4): the drive returns damaged data (1 place, 8.0 KiB)\n  \
                 5 damaged places, 1 of them explained: 1 bit-flips\n  next: "
            ),
            "{text}"
        );
        for words in [
            "2 bits flipped",
            "and 4 more places (--json FILE describes 1 of 5)",
            "beside 1 punched hole",
            "the kernel reported errors: 3 failed reads (Input/output error)",
            "note: a note",
        ] {
            assert!(text.contains(words), "{words}: {text}");
        }
        let many = report(vec![finding(); 21]).text();
        assert_eq!(many.matches("is damaged:").count(), SHOWN, "{many}");
        let last = many.lines().last().unwrap_or_default();
        assert_eq!(
            last,
            "  and 16 more places (--json FILE describes 21 of 21)"
        );
        assert!(report(Vec::new()).text().starts_with("CLEAN"));
        let mut gone = report(vec![finding()]);
        gone.outcome = Outcome::Incomplete;
        assert!(!gone.text().contains("is damaged"), "{}", gone.text());
        let mut errors = report(Vec::new());
        errors.outcome = Outcome::Errors;
        let headline = "ERRORS  /data (ext4): no data were wrong, but the kernel reported errors: \
                        3 failed reads (Input/output error)\n";
        assert!(errors.text().starts_with(headline), "{}", errors.text());
    }
}
