//! The header of a report: which column is what, in any version and order.
//!
//! | sysstat | columns of `iostat -x` |
//! |---|---|
//! | to 11.5 | `rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util` |
//! | 11.6 to 12.0 | `r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm %util` |
//! | from 12.1 | `r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s … d/s … f/s f_await aqu-sz %util` |
//!
//! Rates of bytes are in sectors, kB, MB or GB (1024s all of them), by option.

/// The figures of `iostat -x` by version, newest first: no two have as many.
const HEADERS: [&str; 6] = [
    "r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz \
     d/s dkB/s drqm/s %drqm d_await dareq-sz f/s f_await aqu-sz %util",
    "r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz \
     d/s dkB/s drqm/s %drqm d_await dareq-sz aqu-sz svctm %util",
    "r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz \
     d/s dkB/s drqm/s %drqm d_await dareq-sz aqu-sz %util",
    "r/s w/s rkB/s wkB/s rrqm/s wrqm/s %rrqm %wrqm r_await w_await aqu-sz rareq-sz wareq-sz svctm %util",
    "rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await r_await w_await svctm %util",
    "rrqm/s wrqm/s r/s w/s rkB/s wkB/s avgrq-sz avgqu-sz await svctm %util",
];

/// Figures that are kept, as places in [`Row`].
pub(super) mod field {
    pub(in super::super) const COUNT: [usize; 3] = [0, 4, 8];
    pub(in super::super) const BYTES: [usize; 3] = [1, 5, 9];
    pub(in super::super) const AWAIT: [usize; 3] = [2, 6, 10];
    pub(in super::super) const SIZE: [usize; 3] = [3, 7, 11];
    pub(in super::super) const QUEUE: usize = 12;
    pub(in super::super) const AWAIT_ALL: usize = 13;
}

/// One device's figures in one report: rates per second, bytes, milliseconds.
pub(super) type Row = [f64; 14];

/// How the rows below a header are to be read.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Columns {
    /// Place in the row of each column that is kept, and its unit in bytes (1 for plain numbers).
    columns: Vec<Option<(usize, f64)>>,
    /// Which column has the device's name: the first, or the last.
    device: usize,
    /// Whether reads are among them: such a header begins a report.
    pub(super) begins_report: bool,
    /// Whether discards are among them.
    pub(super) discards: bool,
    /// Whether they are those of `-s`, which adds reads, writes and discards up.
    pub(super) short: bool,
    /// Whether bytes are in units so large that the decimals are too few.
    coarse: bool,
}

/// The kinds of lines in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Read<'a> {
    /// A device's row; its figures were set.
    Row(&'a [u8]),
    /// Begins like a device's row, but isn't whole.
    Damaged(&'a [u8]),
    /// Nothing of the kind.
    Other,
}

impl Columns {
    /// Reads a header; `None` if the line is none.
    pub(super) fn of_header(line: &[u8]) -> Option<Columns> {
        let text = std::str::from_utf8(line).ok()?;
        let tokens: Vec<&str> = text.split_ascii_whitespace().collect();
        let is_device = |token: &&str| token.trim_end_matches(':') == "Device";
        let at = tokens.iter().position(is_device)?;
        // `Device Model: …` is another tool's.
        let is_column =
            |token: &&str| token.ends_with("/s") || *token == "tps" || known(token).is_some();
        tokens.iter().copied().find(is_column)?;
        // Last with --pretty; else words before it are none of iostat's (`Time`).
        let last = at > 0 && at + 1 == tokens.len();
        if last && tokens[0].contains(|c: char| c.is_ascii_digit()) {
            return None;
        }
        let begin = if last { 0 } else { at };
        let columns: Vec<_> = tokens[begin..].iter().copied().map(known).collect();
        let kept = || columns.iter().flatten();
        let unit = |place: usize| kept().find(|kept| kept.0 == place).map(|kept| kept.1);
        let bytes = field::BYTES.into_iter().filter_map(unit);
        let reads = unit(field::COUNT[0]).is_some();
        Some(Columns {
            device: at - begin,
            begins_report: reads,
            discards: unit(field::COUNT[2]).is_some(),
            short: !reads && unit(field::AWAIT_ALL).is_some(),
            coarse: bytes.fold(0.0, f64::max) > 1024.0,
            columns,
        })
    }

    /// The columns of a row without a header, by their number; `None` if no version prints so many.
    pub(super) fn of_row(line: &[u8]) -> Option<Columns> {
        let name = tokens(line).next()?;
        let figures = tokens(line).skip(1);
        let count = figures.clone().count();
        let header = HEADERS.iter().find(|h| h.split(' ').count() == count)?;
        let columns = Columns::of_header(format!("Device {header}").as_bytes())?;
        let named =
            name[0].is_ascii_alphabetic() && figures.into_iter().all(|f| number(f).is_some());
        // The unit isn't known (-k, -m), but that of sizes is.
        named.then_some(Columns {
            coarse: true,
            ..columns
        })
    }

    /// Whether they are those of `iostat -x`, or a part of them.
    pub(super) fn extended(&self) -> bool {
        self.columns.iter().any(Option::is_some)
    }

    /// Whether a row is of a group of devices (`-g`). Its name has a blank before it, and stands
    /// where rows begin (after so many blanks) or after the last figure.
    pub(super) fn is_group(&self, row: &[u8], indent: usize) -> bool {
        if self.device == 0 {
            return indent_of(row) > indent;
        }
        let name = row.trim_ascii_end().iter().rposition(is_blank);
        name.is_some_and(|at| at > 0 && is_blank(&row[at - 1]))
    }

    /// Reads a row into `row`. The name is the first token (the last with `--pretty`).
    pub(super) fn read<'a>(&self, line: &'a [u8], row: &mut Row) -> Read<'a> {
        let mut name = None;
        let mut tokens = tokens(line);
        for (i, column) in self.columns.iter().enumerate() {
            let token = tokens.next();
            if i == self.device {
                name = token;
            }
            let figure = match (token, column) {
                (Some(token), Some((place, unit))) => figure(token, *unit).map(|f| (*place, f)),
                (Some(_), None) => continue,
                (None, _) => None,
            };
            let Some((place, figure)) = figure else {
                return name.map_or(Read::Other, Read::Damaged);
            };
            row[place] = figure;
        }
        if self.coarse {
            sharpen(row);
        }
        match (name, tokens.next()) {
            (Some(name), None) => Read::Row(name),
            (Some(name), Some(_)) => Read::Damaged(name),
            (None, _) => Read::Other,
        }
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

/// How many blanks a line begins with.
pub(super) fn indent_of(line: &[u8]) -> usize {
    line.iter().take_while(|byte| is_blank(byte)).count()
}

fn tokens(line: &[u8]) -> impl Iterator<Item = &[u8]> + Clone {
    line.split(is_blank).filter(|token| !token.is_empty())
}

/// A number as iostat prints it, with what `--human` appends to it.
///
/// The decimal mark is a point or a comma, as the locale has it.
fn number(token: &[u8]) -> Option<(f64, Option<u8>)> {
    let (digits, suffix) = match token {
        [
            digits @ ..,
            suffix @ (b'B' | b'k' | b'M' | b'G' | b'T' | b'%'),
        ] => (digits, Some(*suffix)),
        digits => (digits, None),
    };
    let mut text = [0; 24];
    let text = text.get_mut(..digits.len())?;
    text.copy_from_slice(digits);
    if let Some(comma) = text.iter_mut().find(|byte| **byte == b',') {
        *comma = b'.';
    }
    let plain = text.first()?.is_ascii_digit()
        && text
            .iter()
            .all(|byte| byte.is_ascii_digit() || *byte == b'.');
    let value = std::str::from_utf8(text).ok().filter(|_| plain)?;
    Some((value.parse().ok()?, suffix))
}

/// A figure in plain numbers or bytes: a number of this unit, or of the one that it has itself.
pub(super) fn figure(token: &[u8], unit: f64) -> Option<f64> {
    let (value, suffix) = number(token)?;
    let power = suffix.and_then(|suffix| b"BkMGT".iter().position(|known| *known == suffix));
    let own = power.map(|power| 1024_f64.powi(power as i32));
    Some(value * own.filter(|_| unit > 1.0).unwrap_or(unit))
}

/// A rate in MB/s has two decimals; the mean size, in kB, has as many.
pub(super) fn sharpen(row: &mut Row) {
    for kind in 0..3 {
        let by_size = row[field::COUNT[kind]] * row[field::SIZE[kind]];
        if by_size > 0.0 {
            row[field::BYTES[kind]] = by_size;
        }
    }
}

/// Place and unit in bytes of a column; older JSON leaves out `/s`.
pub(super) fn known(token: &str) -> Option<(usize, f64)> {
    let token = token.strip_suffix("/s").unwrap_or(token);
    let kind = ["r", "w", "d"].iter().position(|k| token.starts_with(k));
    if let Some(kind) = kind {
        match &token[1..] {
            "" => return Some((field::COUNT[kind], 1.0)),
            "_await" => return Some((field::AWAIT[kind], 1.0)),
            "areq-sz" => return Some((field::SIZE[kind], 1024.0)),
            "sec" => return Some((field::BYTES[kind], 512.0)),
            "kB" => return Some((field::BYTES[kind], 1024.0)),
            "MB" => return Some((field::BYTES[kind], 1024.0 * 1024.0)),
            "GB" => return Some((field::BYTES[kind], 1024.0 * 1024.0 * 1024.0)),
            _ => {}
        }
    }
    match token {
        "aqu-sz" | "avgqu-sz" => Some((field::QUEUE, 1.0)),
        "await" => Some((field::AWAIT_ALL, 1.0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(header: &str, line: &str) -> (Row, Vec<u8>) {
        let columns = Columns::of_header(header.as_bytes()).unwrap();
        let mut row = [0.0; 14];
        match columns.read(line.as_bytes(), &mut row) {
            Read::Row(name) => (row, name.to_vec()),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn columns_of_sysstat_10() {
        let (row, name) = read(
            "Device:         rrqm/s   wrqm/s     r/s     w/s    rsec/s    wsec/s avgrq-sz avgqu-sz   await  svctm  %util",
            "sda               0,00     1,00  200,00   10,00   1600,00     80,00     8,00     0,50    2,50   0,10  50,00",
        );
        assert_eq!(name, b"sda");
        assert_eq!(row[field::COUNT[0]], 200.0);
        assert_eq!(row[field::BYTES[0]], 1600.0 * 512.0);
        assert_eq!(row[field::QUEUE], 0.5);
        assert_eq!(row[field::AWAIT_ALL], 2.5);
    }

    #[test]
    fn megabytes_are_sharpened_by_sizes() {
        let (row, _) = read(
            "Device  d/s dMB/s d_await dareq-sz r/s",
            "sda 1.00 0.00 2.00 4.00 0.00",
        );
        assert_eq!(row[field::BYTES[2]], 4096.0);
    }

    #[test]
    fn a_pretty_part_has_its_device_last() {
        let header = "     d/s     dkB/s   drqm/s  %drqm d_await dareq-sz Device";
        let columns = Columns::of_header(header.as_bytes()).unwrap();
        assert!(!columns.begins_report && columns.discards);
        let (row, name) = read(
            header,
            "    1.20     25.2k     0.08   5.96%   14.24    20.9k sdq",
        );
        assert_eq!(name, b"sdq");
        assert_eq!(row[field::BYTES[2]], 25.2 * 1024.0);
    }

    #[test]
    fn rows_that_arent_whole_are_told_from_other_lines() {
        let columns = Columns::of_header(b"Device r/s w/s").unwrap();
        let mut row = [0.0; 14];
        assert_eq!(columns.read(b"sda 1.0", &mut row), Read::Damaged(b"sda"));
        assert_eq!(columns.read(b"sda 1.0 x", &mut row), Read::Damaged(b"sda"));
        assert_eq!(
            columns.read(b"sda 1.0 2.0 3.0", &mut row),
            Read::Damaged(b"sda")
        );
        assert_eq!(columns.read(b"", &mut row), Read::Other);
        assert_eq!(Columns::of_header(b"Linux 6.5"), None);
        let basic = Columns::of_header(b"Device tps kB_read/s kB_wrtn/s").unwrap();
        assert!(!basic.extended());
    }

    #[test]
    fn numbers_as_locales_and_options_have_them() {
        let value = |text: &str| number(text.as_bytes());
        assert_eq!(value("67975.00"), Some((67975.0, None)));
        assert_eq!(value("67975,25"), Some((67975.25, None)));
        assert_eq!(value("8"), Some((8.0, None)));
        assert_eq!(value("1.5M"), Some((1.5, Some(b'M'))));
        assert_eq!(value("99.1%"), Some((99.1, Some(b'%'))));
        for none in [
            "",
            "sda",
            "1.2.3",
            "-1.0",
            "1e5",
            "nan",
            "05:02:34",
            ".5",
            "1M2",
            "9".repeat(30).as_str(),
        ] {
            assert_eq!(value(none), None, "{none}");
        }
    }
}
