//! The view in a terminal, or lines where there is none.

use std::io;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::time::Duration;

use diagnose::Look;
use diagnose::watch::screen;
use diagnose::watch::{Key, Update, View, lines};
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::commands::watch::args::WatchArgs;
use crate::console::Stream;
use crate::exit::Error;

/// A request of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    /// Nothing that ends it.
    Nothing,
    /// To end.
    Quit,
    /// To end, as Ctrl-C.
    Interrupt,
}

/// The place that updates are shown in. Dropping it gives the terminal back.
pub(super) enum Shown {
    Screen {
        /// Not dropped: where the terminal has closed, its drop would panic, because it can't show
        /// the cursor there.
        terminal: ManuallyDrop<Box<DefaultTerminal>>,
        view: Box<View>,
        look: Look,
    },
    Lines {
        /// The lines of what lasts, as the last update had them.
        said: Vec<String>,
    },
    Nothing,
}

impl Shown {
    pub(super) fn begin(args: &WatchArgs) -> Result<Shown, Error> {
        let json = args.json.as_deref() == Some(Path::new("-"));
        if args.quiet || json {
            return Ok(Shown::Nothing);
        }
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        if !Stream::Out.is_terminal() || !Stream::input_is_terminal() || dumb {
            return Ok(Shown::Lines { said: Vec::new() });
        }
        let mut shown = Shown::Screen {
            terminal: ManuallyDrop::new(Box::new(ratatui::try_init().map_err(failed)?)),
            view: Box::default(),
            look: Stream::Out.look(),
        };
        shown.draw()?;
        Ok(shown)
    }

    /// Shows an update.
    pub(super) fn show(&mut self, update: Update) -> Result<(), Error> {
        match self {
            Shown::Screen { view, .. } => view.push(update),
            Shown::Lines { said } => Stream::Out.print(&lines::text(&update, said)),
            Shown::Nothing => {}
        }
        self.draw()
    }

    /// Waits for `time`, and handles the keys that are pressed meanwhile.
    pub(super) fn wait(&mut self, time: Duration) -> Result<Request, Error> {
        let Shown::Screen { view, .. } = self else {
            std::thread::sleep(time);
            return Ok(Request::Nothing);
        };
        if !is_there(time)? {
            return Ok(Request::Interrupt);
        }
        match event::poll(Duration::ZERO) {
            Ok(true) => {}
            Ok(false) => return Ok(Request::Nothing),
            // A signal: the caller looks at its flag.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                return Ok(Request::Nothing);
            }
            Err(error) => return Err(failed(error)),
        }
        let Event::Key(pressed) = event::read().map_err(failed)? else {
            // The terminal has another size, most likely.
            return self.draw().map(|()| Request::Nothing);
        };
        if pressed.kind == KeyEventKind::Release {
            return Ok(Request::Nothing);
        }
        if pressed.modifiers.contains(KeyModifiers::CONTROL) {
            return Ok(match pressed.code {
                KeyCode::Char('c' | 'd') => Request::Interrupt,
                _ => Request::Nothing,
            });
        }
        let goes_on = key(pressed.code).is_none_or(|key| view.key(key));
        self.draw()?;
        Ok(if goes_on {
            Request::Nothing
        } else {
            Request::Quit
        })
    }

    fn draw(&mut self) -> Result<(), Error> {
        if let Shown::Screen {
            terminal,
            view,
            look,
        } = self
        {
            let drawn = terminal.draw(|frame| screen::draw(frame, view, *look));
            drawn.map_err(failed)?;
        }
        Ok(())
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Shown::Screen { terminal, .. } = self {
            let _ = terminal.show_cursor();
            let _ = ratatui::try_restore();
        }
    }
}

/// Waits for a key, or for `time`. Returns false where the terminal has closed: crossterm would
/// read its end forever.
fn is_there(time: Duration) -> Result<bool, Error> {
    let input = io::stdin();
    let mut polled = [PollFd::new(&input, PollFlags::IN)];
    let time = Timespec::try_from(time).ok();
    match poll(&mut polled, time.as_ref()) {
        Ok(_) => Ok(!polled[0]
            .revents()
            .intersects(PollFlags::HUP | PollFlags::ERR)),
        // A signal: the caller looks at its flag. A new size of the terminal comes with one, too.
        Err(Errno::INTR) => Ok(true),
        Err(errno) => Err(failed(errno.into())),
    }
}

fn key(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Char(sign) => Key::Char(sign),
        KeyCode::Enter => Key::Enter,
        KeyCode::Esc => Key::Escape,
        KeyCode::Backspace => Key::Backspace,
        KeyCode::Up => Key::Up,
        KeyCode::Down => Key::Down,
        _ => return None,
    })
}

fn failed(source: io::Error) -> Error {
    Error::unwritten(Path::new("the terminal"))(source)
}
