//! `trimbench scenarios`.

use bench::scenario::{self, Scenario};

use crate::cli::{ScenariosArgs, ScenariosCommand};
use crate::console::Stream;
use crate::exit::{Error, Exit};

/// Carries out the command.
pub(crate) fn run(args: &ScenariosArgs) -> Result<Exit, Error> {
    match &args.command {
        None => Stream::Out.print(&list()?),
        Some(ScenariosCommand::Show { name }) => {
            Stream::Out.print(scenario::by_name(name)?.text);
        }
    }
    Ok(Exit::Done)
}

fn list() -> Result<String, Error> {
    let width = scenario::all().iter().map(|s| s.name.len()).max();
    let width = width.unwrap_or(0);
    let mut text = String::new();
    for shipped in scenario::all() {
        let about = shipped.scenario()?.general.about.unwrap_or_default();
        text += &format!("{:width$}  {about}\n", shipped.name);
    }
    text += "\nRun one with `trimbench run --scenario NAME [PATH]`. `trimbench scenarios show NAME`\n\
             prints its file, to be copied and changed.\n";
    Ok(text)
}

/// What a run of a scenario says of it before it begins.
pub(crate) fn introduced(name: &str, scenario: &Scenario) -> String {
    let mut text = format!("Scenario {name}");
    if let Some(about) = &scenario.general.about {
        text += &format!(": {about}");
    }
    text += ".\n";
    if let Some(figure) = &scenario.general.look_at {
        text += &format!("Look at: {figure}.\n");
    }
    text
}
