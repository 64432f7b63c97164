//! A figure's values in one unit, so that they can be compared at a glance.

use super::figure::Unit;

/// Units of time in microseconds, from the longest.
const TIMES: [(f64, &str); 3] = [(1e6, "s"), (1e3, "ms"), (1.0, "µs")];
/// Units of bytes per second.
const RATES: [(f64, &str); 5] = [
    (1e12, "TB/s"),
    (1e9, "GB/s"),
    (1e6, "MB/s"),
    (1e3, "kB/s"),
    (1.0, "B/s"),
];

impl Unit {
    /// Values as text with their unit: all in that which suits the largest of them,
    /// e.g. `0.51 ms` and `12.3 ms`. `–` stands for what isn't known.
    pub fn show(self, values: &[Option<f64>]) -> Vec<String> {
        let known = values.iter().flatten().filter(|value| value.is_finite());
        let most = known.map(|value| value.abs()).fold(0.0, f64::max);
        let show = |value: f64| match self {
            Unit::OpsPerSecond => record::units::rate(value),
            Unit::Share => record::units::percent(value),
            Unit::Count => record::units::count(value.round().max(0.0) as u64),
            Unit::Seconds if most == 0.0 => "0 s".to_owned(),
            Unit::Seconds => scaled(value * 1e6, most * 1e6, &TIMES),
            Unit::Microseconds => scaled(value, most, &TIMES),
            Unit::BytesPerSecond => scaled(value, most, &RATES),
            Unit::Bytes => scaled(
                value,
                most,
                &[
                    (record::units::TIB as f64, "TiB"),
                    (record::units::GIB as f64, "GiB"),
                    (record::units::MIB as f64, "MiB"),
                    (record::units::KIB as f64, "KiB"),
                    (1.0, "B"),
                ],
            ),
        };
        let known = |value: &Option<f64>| value.filter(|v| v.is_finite()).map(show);
        let values = values.iter();
        values
            .map(|value| known(value).unwrap_or_else(|| "–".to_owned()))
            .collect()
    }
}

/// Returns `value` in the largest of these units that leaves `most` at 1 or more, or in one of its own
/// if it is less than a hundredth there. Seconds are used from a tenth of a second on.
fn scaled(value: f64, most: f64, sizes: &[(f64, &str)]) -> String {
    let reach = |&&(size, unit): &&(f64, &str)| match unit {
        "s" => most >= 0.0995 * size,
        _ => most >= 0.9995 * size,
    };
    let (size, unit) = sizes
        .iter()
        .find(reach)
        .or(sizes.last())
        .copied()
        .unwrap_or((1.0, ""));
    if value != 0.0 && value.abs() < size / 100.0 && value.abs() < most {
        return scaled(value, value.abs(), sizes);
    }
    let value = value / size;
    let digits = match value.abs() {
        0.0 => 0,
        v if v >= 99.95 => 0,
        v if v >= 0.995 => 1,
        v if v >= 0.0995 => 2,
        _ => 3,
    };
    format!("{value:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_has_one_unit() {
        let shown = |unit: Unit, values: [f64; 2]| unit.show(&values.map(Some)).join(" | ");
        assert_eq!(
            shown(Unit::Microseconds, [506.0, 12_345.0]),
            "0.51 ms | 12.3 ms"
        );
        assert_eq!(shown(Unit::Seconds, [0.0, 0.0]), "0 s | 0 s");
        assert_eq!(shown(Unit::Seconds, [0.0, 16.9]), "0 s | 16.9 s");
        assert_eq!(shown(Unit::Seconds, [0.0812, 124.0]), "0.081 s | 124 s");
        assert_eq!(
            shown(Unit::BytesPerSecond, [9e8, 4.2e9]),
            "0.90 GB/s | 4.2 GB/s"
        );
        assert_eq!(
            shown(Unit::Bytes, [0.0, 4_294_967_296.0]),
            "0 GiB | 4.0 GiB"
        );
        assert_eq!(Unit::Share.show(&[None, Some(0.43)]), ["–", "43 %"]);
        assert_eq!(Unit::Seconds.show(&[Some(f64::NAN)]), ["–"]);
    }
}
