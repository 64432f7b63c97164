//! Two suites side by side: two drives, or two kernels.

use judge::compare::student_95;
use report::sheet::Sheet;
use serde::Serialize;

use crate::suite::measure::{Measure, Unit};
use crate::suite::results::{Results, Row};
use crate::suite::sheet::{table, value};
use crate::suite::step::Step;

/// The schema of a comparison as JSON.
const COMPARE_SCHEMA: &str = "trimbench.suite-compare/1";

/// A figure of one cell in both suites.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The cell's name.
    pub cell: String,
    /// The step.
    pub step: Step,
    /// The figure.
    pub measure: Measure,
    /// Its unit.
    pub unit: Unit,
    /// Means of the rounds of both suites.
    pub means: [f64; 2],
    /// Rounds of both suites.
    pub rounds: [usize; 2],
    /// Second less first: the 95 % interval of the difference of the means (Welch). `None`: one of
    /// them has a single round, so nothing is known of its scatter.
    pub interval: Option<[f64; 2]>,
    /// Whether the interval leaves 0 out; `None` without one.
    pub differs: Option<bool>,
}

/// The figures that both suites have, compared.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Of its JSON: `trimbench.suite-compare/1`.
    pub schema: &'static str,
    /// Names of the suites.
    pub names: [String; 2],
    /// Drives and kernels of the suites.
    pub set_ups: [String; 2],
    /// The figures.
    pub differences: Vec<Difference>,
    /// Sentences about what can't be compared.
    pub notes: Vec<String>,
}

/// Compares the second suite with the first.
pub fn compare(names: [String; 2], both: [&Results; 2]) -> Comparison {
    let mut differences = Vec::new();
    let mut notes = Vec::new();
    for first in &both[0].rows {
        let second = both[1].rows.iter().find(|row| row.cell == first.cell);
        match second {
            Some(second) => differences.extend(cell(first, second)),
            None => notes.push(format!("{} is only in {}", first.cell, names[0])),
        }
    }
    let only_second = both[1].rows.iter().filter(|row| {
        let mut first = both[0].rows.iter();
        first.all(|first| first.cell != row.cell)
    });
    notes.extend(only_second.map(|row| format!("{} is only in {}", row.cell, names[1])));
    let sizes = both.map(|one| (one.head.plan.files, one.head.plan.file_bytes));
    if sizes[0] != sizes[1] {
        let words =
            sizes.map(|(files, size)| format!("{files} files of {}", record::units::bytes(size)));
        notes.push(format!(
            "the suites removed different files ({} and {}), so times differ for that reason",
            words[0], words[1]
        ));
    }
    Comparison {
        schema: COMPARE_SCHEMA,
        names,
        set_ups: both
            .map(|one| format!("{}, Linux {}", one.head.drive.words(), one.head.host.kernel)),
        differences,
        notes,
    }
}

fn cell(first: &Row, second: &Row) -> Vec<Difference> {
    let shared = first.values.iter().filter_map(|(key, a)| {
        let (b, (step, measure)) = (second.values.get(key)?, *key);
        let interval = welch(a, b);
        Some(Difference {
            cell: first.cell.to_string(),
            step,
            measure,
            unit: measure.unit(),
            means: [mean(a), mean(b)],
            rounds: [a.len(), b.len()],
            interval,
            differs: interval.map(|[low, high]| low > 0.0 || high < 0.0),
        })
    });
    shared.collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// The variance of a mean, and its degrees of freedom.
fn of_mean(values: &[f64]) -> Option<(f64, f64)> {
    let degrees = values.len().checked_sub(1).filter(|n| *n > 0)? as f64;
    let mean = mean(values);
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / degrees / values.len() as f64, degrees))
}

/// The 95 % interval of the difference of two means with unequal variances (Welch 1947, with
/// Satterthwaite's degrees of freedom).
fn welch(a: &[f64], b: &[f64]) -> Option<[f64; 2]> {
    let ((va, da), (vb, db)) = (of_mean(a)?, of_mean(b)?);
    let sum = va + vb;
    let degrees = match va * va / da + vb * vb / db {
        spread if spread > 0.0 => sum * sum / spread,
        _ => da + db,
    };
    let half = student_95(degrees) * sum.sqrt();
    let difference = mean(b) - mean(a);
    Some([difference - half, difference + half])
}

/// The comparison as tables, one for each cell.
pub fn comparison_sheet(of: &Comparison) -> Sheet {
    let [first, second] = &of.names;
    // The figures of a cell follow each other.
    let cells = of.differences.chunk_by(|a, b| a.cell == b.cell);
    let tables = cells.map(|cell| {
        let columns = ["figure", first, second, "change (95 % interval)"];
        table(&cell[0].cell, "", columns, cell.iter().map(line))
    });
    Sheet {
        title: format!("{first} and {second}"),
        about: vec![
            format!("{first}: {}", of.set_ups[0]),
            format!("{second}: {}", of.set_ups[1]),
            "Means of the rounds. A change is reported where its interval leaves 0 out; of twenty equal \
             figures one is expected to seem different."
                .to_owned(),
        ],
        tables: tables.collect(),
        panels: Vec::new(),
        notes: of.notes.clone(),
    }
}

fn line(of: &Difference) -> Vec<String> {
    let signed = |by: f64| {
        let sign = if by < 0.0 { "−" } else { "+" };
        format!("{sign}{}", value(of.unit, by.abs()))
    };
    let [a, b] = of.means;
    let change = match (of.interval, of.differs) {
        (Some([low, high]), Some(true)) => {
            format!("{} ({} to {})", signed(b - a), signed(low), signed(high))
        }
        (Some(_), _) => "none that is sure".to_owned(),
        (None, _) => "single rounds".to_owned(),
    };
    vec![
        format!("{}, {}", of.step.words(), of.measure.words()),
        value(of.unit, a),
        value(of.unit, b),
        change,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::tests as made;

    #[test]
    fn welchs_interval_is_that_of_the_books() {
        // Means 20.6 and 22.1; variances of the means 0.1 and 0.05.
        let a = [20.0, 20.6, 21.2];
        let b = [21.7, 22.1, 22.5];
        let [low, high] = welch(&a, &b).unwrap();
        let (va, vb): (f64, f64) = (0.36 / 3.0, 0.16 / 3.0);
        let degrees = (va + vb).powi(2) / (va * va / 2.0 + vb * vb / 2.0);
        let half = student_95(degrees) * (va + vb).sqrt();
        assert!((low - (1.5 - half)).abs() < 1e-9 && (high - (1.5 + half)).abs() < 1e-9);
        assert_eq!(welch(&[1.0], &b), None);
        assert_eq!(welch(&[1.0, 1.0], &[2.0, 2.0]), Some([1.0, 1.0]));
    }

    #[test]
    fn equal_suites_do_not_differ_and_slower_ones_do() {
        let cells = ["ext4/discard/discard", "xfs/nodiscard/nodiscard"];
        let results = Results::of(&made::log(&cells, 3, 1.0));
        let names = || ["a".to_owned(), "b".to_owned()];
        let same = compare(names(), [&results, &results]);
        assert!(!same.differences.is_empty());
        assert!(
            same.differences
                .iter()
                .all(|one| one.differs == Some(false)),
            "{same:?}"
        );
        let slower = Results::of(&made::log(&cells[..1], 3, 3.0));
        let other = compare(names(), [&results, &slower]);
        let mkfs = other
            .differences
            .iter()
            .find(|one| one.step == Step::Mkfs && one.measure == Measure::Time);
        assert_eq!(mkfs.unwrap().differs, Some(true));
        assert_eq!(other.notes, ["xfs/nodiscard/nodiscard is only in a"]);
        let sheet = comparison_sheet(&other);
        assert_eq!(sheet.tables.len(), 1);
        assert!(
            sheet.tables[0]
                .rows
                .iter()
                .any(|row| row[3].starts_with('+')),
            "{sheet:?}"
        );
    }
}
