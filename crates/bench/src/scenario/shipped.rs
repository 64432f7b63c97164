//! The scenarios that are shipped, as the build script found them.

use record::units::typed::nearest;

use super::{Scenario, ScenarioError};

/// A scenario that is part of the program.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/shipped_scenarios.rs"));

impl Shipped {
    /// The scenario in its file.
    ///
    /// # Errors
    /// If it isn't a scenario, which a test rules out.
    pub fn scenario(&self) -> Result<Scenario, ScenarioError> {
        self.text.parse()
    }
}

/// All of them, by name.
pub fn all() -> &'static [Shipped] {
    SHIPPED
}

/// The one of this name.
///
/// # Errors
/// If there is none.
pub fn by_name(name: &str) -> Result<&'static Shipped, ScenarioError> {
    let found = all().iter().find(|shipped| shipped.name == name);
    found.ok_or_else(|| ScenarioError::Unknown {
        name: name.to_owned(),
        nearest: nearest(name, all().iter().map(|shipped| shipped.name)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_a_scenario_that_says_what_it_stands_for() {
        assert!(all().len() >= 14, "{}", all().len());
        for shipped in all() {
            let name = shipped.name;
            let scenario = shipped.scenario().unwrap_or_else(|e| panic!("{name}: {e}"));
            assert!(scenario.general.about.is_some(), "{name}: no about");
            assert!(scenario.general.look_at.is_some(), "{name}: no look-at");
            assert!(scenario.general.fio.is_none(), "{name}: fio may be missing");
            let comment: Vec<&str> = shipped
                .text
                .lines()
                .take_while(|line| line.starts_with('#'))
                .collect();
            assert!(
                comment.len() >= 3,
                "{name}: a comment first: the case, what is done, the figure"
            );
            assert!(
                comment.iter().any(|line| line.starts_with("# Look at ")),
                "{name}: the comment doesn't say what to look at"
            );
            // Each is over within two minutes or so on a disk that writes 300 MB/s.
            let longest = scenario.phases.settle.expect(name);
            assert!(longest.as_secs() <= 60, "{name}: settles for too long");
            let about = scenario.general.about.unwrap();
            assert!(about.len() <= 76, "{name}: about is longer than a line");
        }
    }

    #[test]
    fn they_are_in_order_and_the_default_is_among_them() {
        assert!(all().is_sorted_by_key(|shipped| shipped.name));
        by_name("big-delete").unwrap();
    }
}
