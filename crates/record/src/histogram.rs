//! Latency histograms: one set of bounds for all, and their text form.
//!
//! The bounds are explicit because a histogram that grows by itself, or one
//! made with defaults, silently clamps long latencies: those of a stall.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer, V2DeflateSerializer};

/// Longest latency that is counted as such: one hour, in nanoseconds.
pub const LONGEST_NS: u64 = 3_600_000_000_000;

/// Significant decimal digits of a latency over a phase.
const DIGITS: u8 = 3;

/// The same over a single second. A fast reader fills a thousand buckets a
/// second; at three digits those were most of a long run's record.
const SECOND_DIGITS: u8 = 2;

/// Why a histogram's text can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HistogramError {
    /// The text isn't base64.
    #[error("a histogram's text is not base64")]
    NotBase64,
    /// The bytes aren't an HdrHistogram in its V2 (deflate) form.
    #[error("a histogram is not in HdrHistogram's V2 form: {0}")]
    NotV2(String),
    /// It holds latencies above one hour.
    #[error("a histogram holds latencies above one hour")]
    TooLong,
}

/// An empty histogram of latencies in nanoseconds, 1 ns to 1 h, three significant digits.
pub fn latency_histogram() -> Histogram<u64> {
    with_digits(DIGITS)
}

/// The same for a single second: two significant digits.
pub fn second_histogram() -> Histogram<u64> {
    with_digits(SECOND_DIGITS)
}

fn with_digits(digits: u8) -> Histogram<u64> {
    match Histogram::new_with_bounds(1, LONGEST_NS, digits) {
        Ok(histogram) => histogram,
        Err(_) => unreachable!("the bounds are constant and valid"),
    }
}

/// A histogram as text: HdrHistogram V2 (deflate), base64.
pub fn encode_histogram(histogram: &Histogram<u64>) -> String {
    let mut bytes = Vec::new();
    match V2DeflateSerializer::new().serialize(histogram, &mut bytes) {
        Ok(_) => STANDARD.encode(bytes),
        // Only a count above 2^63 or a failing sink would do; a Vec doesn't fail.
        Err(_) => String::new(),
    }
}

/// The histogram that a text of [`encode_histogram`] holds, in our own bounds.
///
/// # Errors
/// If the text isn't one, or holds latencies above one hour.
pub fn decode_histogram(text: &str) -> Result<Histogram<u64>, HistogramError> {
    let bytes = STANDARD
        .decode(text)
        .map_err(|_| HistogramError::NotBase64)?;
    let read: Histogram<u64> = Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|e| HistogramError::NotV2(e.to_string()))?;
    let mut histogram = latency_histogram();
    histogram.add(&read).map_err(|_| HistogramError::TooLong)?;
    Ok(histogram)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comes_back() {
        let mut histogram = latency_histogram();
        for ns in [1, 999, 73_000, 1_940_000, LONGEST_NS] {
            histogram.record_n(ns, 7).unwrap();
        }
        let back = decode_histogram(&encode_histogram(&histogram)).unwrap();
        assert_eq!(back, histogram);
        assert_eq!(back.len(), 35);
    }

    #[test]
    fn nonsense_is_refused() {
        assert_eq!(
            decode_histogram("%").unwrap_err(),
            HistogramError::NotBase64
        );
        assert!(matches!(
            decode_histogram("AAAA").unwrap_err(),
            HistogramError::NotV2(_)
        ));
        assert!(matches!(
            decode_histogram("").unwrap_err(),
            HistogramError::NotV2(_)
        ));
        let mut long = Histogram::<u64>::new_with_bounds(1, LONGEST_NS * 100, 3).unwrap();
        long.record(LONGEST_NS * 50).unwrap();
        assert_eq!(
            decode_histogram(&encode_histogram(&long)).unwrap_err(),
            HistogramError::TooLong
        );
    }
}
