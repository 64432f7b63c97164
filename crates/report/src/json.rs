//! Verdicts and comparisons as JSON, schemas `trimbench.verdict/1` and `trimbench.compare/1`.

use judge::Verdict;
use judge::compare::Comparison;
use record::units::names::harmless_json;

/// A verdict as indented JSON that ends with a line feed. Figures that aren't
/// numbers (a ratio of nothing) become `null`, as the schema has it.
///
/// # Errors
/// None today: a verdict has nothing that JSON can't hold.
pub fn verdict(verdict: &Verdict) -> serde_json::Result<String> {
    Ok(harmless_json(&serde_json::to_string_pretty(verdict)?) + "\n")
}

/// The same of a comparison.
///
/// # Errors
/// None today, as of a verdict.
pub fn comparison(comparison: &Comparison) -> serde_json::Result<String> {
    Ok(harmless_json(&serde_json::to_string_pretty(comparison)?) + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::common::T500;

    #[test]
    fn it_comes_back() {
        let told = T500.verdict();
        let text = verdict(&told).unwrap();
        assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), told);
        assert!(text.ends_with("}\n"));
    }
}
