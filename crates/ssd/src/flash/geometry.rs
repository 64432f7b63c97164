//! The size of a drive's flash, and how it makes room.

use std::fmt;
use std::str::FromStr;

use record::units::UnitError;

record::kinds! {
    /// How a block is chosen to be cleaned.
    pub enum Cleaning["way of cleaning"] {
        /// The block with the fewest valid pages.
        Greedy = "greedy",
        /// The block that was written first.
        Fifo = "fifo",
    }
}

/// Pages, erase blocks and spare space.
///
/// As text it is `PAGE PAGES_IN_BLOCK SPARE greedy|fifo`, for example `16k 256 7% greedy`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Geometry {
    /// Bytes in a page, which is programmed at once: a power of two from 512 to 1 MiB.
    pub page_bytes: u64,
    /// Pages in a block, which is erased at once: 2 to 65,536.
    pub pages_in_block: u32,
    /// Flash beyond what the host sees, as a share of it (ρ = α − 1): above 0, at most 4.
    pub spare: f64,
    /// How room is made.
    pub cleaning: Cleaning,
}

/// Why a text is no [`Geometry`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}': {why}; give, for example, 16k 256 7% greedy")]
pub struct GeometryError {
    text: String,
    why: String,
}

impl FromStr for Geometry {
    type Err = GeometryError;

    fn from_str(text: &str) -> Result<Geometry, GeometryError> {
        let bad = |why: &str| GeometryError {
            text: text.to_owned(),
            why: why.to_owned(),
        };
        let wrong = |error: UnitError| bad(&error.to_string());
        let words: Vec<&str> = text.split_whitespace().collect();
        let [page, pages, spare, cleaning] = words[..] else {
            return Err(bad(
                "there are four words: page, pages in a block, spare, cleaning",
            ));
        };
        let geometry = Geometry {
            page_bytes: record::units::parse_size(page).map_err(wrong)?,
            pages_in_block: record::units::parse_whole(pages, 2..=65_536).map_err(wrong)?,
            spare: match spare.strip_suffix('%').map(str::parse::<f64>) {
                Some(Ok(percent)) => percent / 100.0,
                _ => return Err(bad("the spare space is a percentage")),
            },
            cleaning: cleaning.parse().map_err(wrong)?,
        };
        let page = geometry.page_bytes;
        if !page.is_power_of_two() || !(512..=1 << 20).contains(&page) {
            return Err(bad("a page is a power of two from 512 to 1M"));
        }
        if !(geometry.spare > 0.0 && geometry.spare <= 4.0) {
            return Err(bad("the spare space is above 0 % and at most 400 %"));
        }
        Ok(geometry)
    }
}

impl fmt::Display for Geometry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cleaning = self.cleaning.name();
        let page = record::units::bytes_exact(self.page_bytes);
        // Digits that a float's noise would add are cut.
        let spare = (self.spare * 1e10).round() / 1e8;
        write!(f, "{page} {} {spare}% {cleaning}", self.pages_in_block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_geometry_is_read_and_shown() {
        let geometry: Geometry = "16k 256 7% greedy".parse().unwrap();
        assert_eq!(geometry.page_bytes, 16 << 10);
        assert_eq!(geometry.to_string().parse(), Ok(geometry));
        for bad in [
            "",
            "16k 256 7%",
            "15k 256 7% fifo",
            "16k 1 7% fifo",
            "16k 2 0% fifo",
            "16k 2 7 fifo",
            "4k 64 7% lifo",
        ] {
            assert!(bad.parse::<Geometry>().is_err(), "{bad}");
        }
    }
}
