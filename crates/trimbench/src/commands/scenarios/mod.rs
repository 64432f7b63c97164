//! `trimbench scenarios`.

pub(crate) mod args;
mod keys;

use bench::scenario;

pub(crate) use self::keys::ending_in;

use crate::commands::scenarios::args::{ScenariosArgs, ScenariosCommand};
use crate::console::Stream;
use crate::exit::{Error, Exit};

/// Carries out the command.
pub(crate) fn run(args: &ScenariosArgs) -> Result<Exit, Error> {
    match &args.command {
        None => Stream::Out.print(&list()?),
        Some(ScenariosCommand::Keys { pattern }) => {
            Stream::Out.print(&keys::list(pattern.as_deref())?);
        }
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
