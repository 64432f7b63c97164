//! The results of `--fail-on` as JUnit's XML, which GitLab, Jenkins and actions of GitHub show.

use judge::compare::Comparison;
use judge::compare::condition::{ChangeCondition, Outcome};

use super::words::outcome;
use crate::html::escape::text;

/// Returns a test suite with a test for each condition. A condition that holds is a failure, and one
/// without a result an error.
pub fn junit(comparison: &Comparison, results: &[(ChangeCondition, Outcome)]) -> String {
    let count = |tag| {
        results
            .iter()
            .filter(|(_, one)| element(one) == tag)
            .count()
    };
    let mut names = comparison.groups.iter().map(|group| group.name.as_str());
    let first = names.next().unwrap_or_default();
    let class = text(&format!(
        "{} against {first}",
        names.collect::<Vec<_>>().join(", ")
    ));
    let detail = text(&comparison.summaries.join("\n"));
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n\
         <testsuite name=\"trimbench compare\" tests=\"{}\" failures=\"{}\" errors=\"{}\">\n",
        results.len(),
        count(Some("failure")),
        count(Some("error")),
    );
    for (condition, result) in results {
        let name = text(&condition.to_string());
        xml += &format!("<testcase classname=\"{class}\" name=\"{name}\"");
        xml += &match element(result) {
            Some(tag) => {
                let message = text(&format!(
                    "'{condition}' {}",
                    outcome(comparison, condition, result)
                ));
                format!("><{tag} message=\"{message}\">{detail}</{tag}></testcase>\n")
            }
            None => "/>\n".to_owned(),
        };
    }
    xml + "</testsuite>\n</testsuites>\n"
}

/// The element of a test that did not pass.
fn element(outcome: &Outcome) -> Option<&'static str> {
    match outcome {
        Outcome::Holds { .. } => Some("failure"),
        Outcome::Unknown { .. } => Some("error"),
        Outcome::Fails => None,
    }
}
