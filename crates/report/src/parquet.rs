//! Tables as Apache Parquet, for DuckDB, Polars, pandas and Spark.
//!
//! It writes what every reader understands and no more: one row group, a page for each column,
//! plain encoding, no compression (parquet-format 2.10). So it needs no library, which would add
//! dozens of crates. A table of a suite or a sweep has some thousands of rows.

mod thrift;

use thrift::Struct;

/// A column's values; `None` is null.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Text, as UTF-8.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Whole(Vec<Option<i64>>),
    /// Floating-point numbers.
    Number(Vec<Option<f64>>),
    /// True or false.
    Truth(Vec<Option<bool>>),
}

/// A named column.
#[derive(Debug, Clone, PartialEq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// Its values, as many as those of the other columns.
    pub values: Values,
}

const MAGIC: &[u8; 4] = b"PAR1";
/// Numbers of the format: physical types, optional fields, UTF-8, encodings.
const BOOLEAN: i32 = 0;
const INT64: i32 = 2;
const DOUBLE: i32 = 5;
const BYTE_ARRAY: i32 = 6;
const OPTIONAL: i32 = 1;
const UTF8: i32 = 0;
const PLAIN: i32 = 0;
const RLE: i32 = 3;

impl Values {
    fn len(&self) -> usize {
        match self {
            Values::Text(values) => values.len(),
            Values::Whole(values) => values.len(),
            Values::Number(values) => values.len(),
            Values::Truth(values) => values.len(),
        }
    }

    fn physical(&self) -> i32 {
        match self {
            Values::Text(_) => BYTE_ARRAY,
            Values::Whole(_) => INT64,
            Values::Number(_) => DOUBLE,
            Values::Truth(_) => BOOLEAN,
        }
    }

    /// Which values are there, and those in plain encoding.
    fn encoded(&self) -> (Vec<bool>, Vec<u8>) {
        let mut bytes = Vec::new();
        let there = match self {
            Values::Text(values) => {
                for text in values.iter().flatten() {
                    bytes.extend((text.len() as u32).to_le_bytes());
                    bytes.extend(text.as_bytes());
                }
                values.iter().map(Option::is_some).collect()
            }
            Values::Whole(values) => {
                bytes.extend(values.iter().flatten().flat_map(|n| n.to_le_bytes()));
                values.iter().map(Option::is_some).collect()
            }
            Values::Number(values) => {
                bytes.extend(values.iter().flatten().flat_map(|n| n.to_le_bytes()));
                values.iter().map(Option::is_some).collect()
            }
            Values::Truth(values) => {
                bytes = bits(values.iter().flatten().copied());
                values.iter().map(Option::is_some).collect()
            }
        };
        (there, bytes)
    }
}

/// A whole file of these columns.
///
/// # Panics
/// When they aren't all of one length.
pub fn parquet(columns: &[Column]) -> Vec<u8> {
    let rows = columns.first().map_or(0, |column| column.values.len());
    let mut file = MAGIC.to_vec();
    let mut chunks = Vec::new();
    for column in columns {
        assert_eq!(column.values.len(), rows, "{}", column.name);
        let at = file.len();
        file.extend(page(&column.values));
        chunks.push(chunk(column, at, file.len() - at));
    }
    let size = file.len() - MAGIC.len();
    let group = Struct::new()
        .structs(1, chunks)
        .i64(2, size as i64)
        .i64(3, rows as i64);
    let metadata = Struct::new()
        .i32(1, 1)
        .structs(2, schema(columns))
        .i64(3, rows as i64)
        .structs(4, vec![group])
        .text(6, concat!("trimbench version ", env!("CARGO_PKG_VERSION")))
        .end();
    file.extend(&metadata);
    file.extend((metadata.len() as u32).to_le_bytes());
    file.extend(MAGIC);
    file
}

/// The root, then a leaf for each column.
fn schema(columns: &[Column]) -> Vec<Struct> {
    let root = Struct::new().text(4, "schema").i32(5, columns.len() as i32);
    let leaf = |column: &Column| {
        let leaf = Struct::new()
            .i32(1, column.values.physical())
            .i32(3, OPTIONAL)
            .text(4, &column.name);
        match column.values {
            Values::Text(_) => leaf.i32(6, UTF8),
            _ => leaf,
        }
    };
    std::iter::once(root)
        .chain(columns.iter().map(leaf))
        .collect()
}

/// The page of a column: its header, which values are there, and the values.
fn page(values: &Values) -> Vec<u8> {
    let (there, plain) = values.encoded();
    let levels = levels(&there);
    let mut body = (levels.len() as u32).to_le_bytes().to_vec();
    body.extend(levels);
    body.extend(plain);
    let data = Struct::new()
        .i32(1, there.len() as i32)
        .i32(2, PLAIN)
        .i32(3, RLE)
        .i32(4, RLE);
    let mut page = Struct::new()
        .i32(1, 0)
        .i32(2, body.len() as i32)
        .i32(3, body.len() as i32)
        .structure(5, data)
        .end();
    page.extend(body);
    page
}

/// Definition levels of one bit, as runs: 1 where a value is there.
fn levels(there: &[bool]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for run in there.chunk_by(|a, b| a == b) {
        thrift::varint(&mut bytes, (run.len() as u64) << 1);
        bytes.push(u8::from(run[0]));
    }
    bytes
}

/// One bit for each, from the lowest of a byte on.
fn bits(values: impl Iterator<Item = bool>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (at, value) in values.enumerate() {
        if at % 8 == 0 {
            bytes.push(0);
        }
        if let Some(last) = bytes.last_mut() {
            *last |= u8::from(value) << (at % 8);
        }
    }
    bytes
}

fn chunk(column: &Column, at: usize, bytes: usize) -> Struct {
    let metadata = Struct::new()
        .i32(1, column.values.physical())
        .i32s(2, &[PLAIN, RLE])
        .texts(3, &[&column.name])
        .i32(4, 0)
        .i64(5, column.values.len() as i64)
        .i64(6, bytes as i64)
        .i64(7, bytes as i64)
        .i64(9, at as i64);
    Struct::new().i64(2, at as i64).structure(3, metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_nulls_and_values_alternate() {
        assert_eq!(levels(&[]), [0; 0]);
        assert_eq!(levels(&[true, true, false]), [4, 1, 2, 0]);
        let long = levels(&[true; 100]);
        assert_eq!(long, [0xc8, 0x01, 1]);
    }

    #[test]
    fn truths_are_bits_from_the_lowest_on() {
        assert_eq!(bits([].into_iter()), [0; 0]);
        assert_eq!(bits([true, false, true].into_iter()), [0b101]);
        assert_eq!(bits([true; 9].into_iter()), [0xff, 1]);
    }

    #[test]
    fn a_file_has_its_columns_between_the_magic_words() {
        let columns = [
            Column {
                name: "cell".to_owned(),
                values: Values::Text(vec![Some("ext4".to_owned()), None]),
            },
            Column {
                name: "value".to_owned(),
                values: Values::Number(vec![None, Some(1.5)]),
            },
        ];
        let file = parquet(&columns);
        assert!(file.starts_with(MAGIC) && file.ends_with(MAGIC));
        // The page of `cell`: its header, six bytes of levels, and one text of four bytes.
        let body = [8, 0, 0, 0, 2, 1, 2, 0];
        let body = [&4_u32.to_le_bytes()[..], &body[4..], &[4, 0, 0, 0], b"ext4"].concat();
        assert!(file.windows(body.len()).any(|part| part == body));
        let footer = &file[file.len() - 8..file.len() - 4];
        let length = u32::from_le_bytes(footer.try_into().unwrap()) as usize;
        let metadata = &file[file.len() - 8 - length..file.len() - 8];
        // version 1, then a list of three structures, of which the first is the root.
        assert_eq!(metadata[..4], [0x15, 2, 0x19, 0x3c]);
        for name in ["schema", "cell", "value", "trimbench version"] {
            let found = metadata
                .windows(name.len())
                .any(|part| part == name.as_bytes());
            assert!(found, "{name}");
        }
    }

    #[test]
    #[should_panic(expected = "value")]
    fn columns_of_two_lengths_are_refused() {
        let column = |name: &str, values: Vec<Option<i64>>| Column {
            name: name.to_owned(),
            values: Values::Whole(values),
        };
        parquet(&[column("cell", vec![None]), column("value", vec![])]);
    }
}
