//! The live view in a terminal: 80 columns and 24 rows suffice.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};
use record::units::{self as show, names};

use super::lines::clock;
use super::update::{Blocked, DeviceUpdate, Update, Work};
use super::view::{Moment, View};
use crate::Look;
use crate::why::SenderWork;

/// Columns of a row's name in the timeline.
const LABEL: usize = 7;

/// Cells of a bar of time in discards.
const BAR: usize = 10;

const KEYS: &str = "q quit  s sort  / filter  space freeze  up/down  ? help";

const HELP: [&str; 16] = [
    "q        quit",
    "s        sort devices by time in TRIM, reads, writes, name",
    "/        filter devices, programs, mounts; Enter ends, Esc clears",
    "space    freeze and go on",
    "up/down  the device of the timeline",
    "",
    "in TRIM  share of the time with a discard in flight",
    "debt     freed and not yet discarded (btrfs, F2FS)",
    "by TRIM  how much of a wait is discards' fault",
    "",
    "own discards     waits in discards that it sends",
    "behind discards  its device serves discards meanwhile",
    "commit, flush    a commit or flush without discards",
    "hung, frozen     the device, the file system",
    "own I/O, lock    neither of these",
    "writeback        the kernel writes dirty pages",
];

/// Draws the view.
pub fn draw(frame: &mut Frame<'_>, view: &View, look: Look) {
    let area = frame.area();
    let Some(update) = view.update() else {
        frame.render_widget(
            Paragraph::new("watching; the first figures come soon"),
            area,
        );
        return;
    };
    let heights = Heights::of(area.height, view, update);
    // From top to bottom, as far as there is room; the blocked processes have the rest.
    let mut y = area.y;
    let mut rows = |height: u16| {
        let rows = Rect { y, height, ..area }.intersection(area);
        y = y.saturating_add(height);
        rows
    };
    let [title, head] = [1, 2].map(&mut rows);
    let [devices, timeline, senders] =
        [heights.devices, heights.timeline, heights.senders].map(&mut rows);
    let used = devices.height + timeline.height + senders.height;
    let [blocked, foot] = [area.height.saturating_sub(used + 4), 1].map(&mut rows);
    let painter = Painter { view, update, look };
    let mut put = |area: Rect, lines: Vec<Line<'static>>| {
        frame.render_widget(Paragraph::new(lines), area);
    };
    put(title, vec![painter.title()]);
    put(head, painter.head());
    put(devices, painter.devices());
    put(timeline, painter.timeline(area.width.into()));
    put(senders, painter.senders());
    put(blocked, painter.blocked(blocked.height.into()));
    put(foot, vec![painter.foot()]);
    if view.help {
        help(frame, area, look);
    }
}

/// The rows of each part.
struct Heights {
    devices: u16,
    timeline: u16,
    senders: u16,
}

impl Heights {
    fn of(height: u16, view: &View, update: &Update) -> Heights {
        // The title, the head of the devices and the keys.
        let rest = height.saturating_sub(4);
        let wanted = 2 * u16::try_from(view.devices().len()).unwrap_or(u16::MAX / 2);
        let timeline = if rest >= 8 { 4 } else { 0 };
        let found = view.senders().len().max(update.missing.len());
        let senders = 1 + u16::try_from(found.clamp(1, 4)).unwrap_or(4);
        // Blocked processes have the head and three rows at least.
        let devices = wanted.min(rest.saturating_sub(timeline + senders + 4).max(2));
        Heights {
            devices: devices - devices % 2,
            timeline,
            senders,
        }
    }
}

struct Painter<'a> {
    view: &'a View,
    update: &'a Update,
    look: Look,
}

impl Painter<'_> {
    fn title(&self) -> Line<'static> {
        let update = self.update;
        let pressure = update.pressure.map_or(String::new(), |pressure| {
            format!(
                "  waiting for I/O: some {}, all {}",
                show::percent(pressure.some),
                show::percent(pressure.full)
            )
        });
        let lost = match update.lost_events {
            0 => String::new(),
            count => format!("  {} lost", show::counted(count, "event")),
        };
        let text = format!(
            "{}  each {}{pressure}{lost}",
            clock(update.unix_s),
            show::seconds(update.seconds),
        );
        let name = match self.view.frozen.is_some() {
            true => self.span("FROZEN at ".to_owned(), Tone::Alarm),
            false => self.span("trimbench watch  ".to_owned(), Tone::Strong),
        };
        Line::from(vec![name, Span::raw(text)])
    }

    fn head(&self) -> Vec<Line<'static>> {
        let first = format!(
            "{:<10} {:>7} {:>8} {:>7} {:>7} {:>8} {:>7} {:>6} {:>7} {:>4}",
            "DEVICE",
            "reads/s",
            "bytes/s",
            "mean",
            "write/s",
            "bytes/s",
            "mean",
            "flush",
            "mean",
            "fly"
        );
        let second = format!(
            "{:<10} {:>7} {:>8} {:>7} {:>11}  {:<17} {}",
            "", "TRIM/s", "bytes/s", "mean", "mean size", "in TRIM", "debt"
        );
        vec![
            Line::from(self.span(first, Tone::Head)),
            Line::from(self.span(second, Tone::Head)),
        ]
    }

    fn devices(&self) -> Vec<Line<'static>> {
        let selected = self.view.selected();
        let devices = self.view.devices();
        devices
            .into_iter()
            .flat_map(|device| self.device(device, Some(device.device.as_str()) == selected))
            .collect()
    }

    fn device(&self, device: &DeviceUpdate, selected: bool) -> [Line<'static>; 2] {
        let name = cut(&device.device, 10);
        let tone = if selected { Tone::Strong } else { Tone::Plain };
        let uses = match device.counts {
            true => format!(
                " {} {} {:>6} {:>7} {:>4}",
                work(&device.reads),
                work(&device.writes),
                short(device.flushes.per_s),
                show::mean_ms(device.flushes.mean_ms),
                device.in_flight
            ),
            false => "  its counters are switched off (queue/iostats is 0)".to_owned(),
        };
        let size = device
            .discards
            .mean_bytes()
            .map_or("-".to_owned(), show::bytes);
        let debt = self.update.debt(&device.device);
        let trims = format!("{:<10} {} {:>11}  ", "", work(&device.discards), size);
        let share = format!(
            "{} {:<6} {}",
            self.bar(device.discarding),
            show::percent(device.discarding),
            debt.unwrap_or_default()
        );
        let alarm = if device.discarding >= 0.5 {
            Tone::Alarm
        } else {
            Tone::Plain
        };
        [
            Line::from(vec![
                self.span(format!("{name:<10}"), tone),
                Span::raw(uses),
            ]),
            Line::from(vec![Span::raw(trims), self.span(share, alarm)]),
        ]
    }

    fn bar(&self, share: f64) -> String {
        let full = (share.clamp(0.0, 1.0) * BAR as f64).round() as usize;
        let (on, off) = if self.look.unicode {
            ("█", "░")
        } else {
            ("#", ".")
        };
        on.repeat(full) + &off.repeat(BAR - full)
    }

    /// Three rows of the selected device's past, the newest on the right.
    fn timeline(&self, width: usize) -> Vec<Line<'static>> {
        let cells = width.saturating_sub(LABEL);
        let (moments, seconds) = self.view.timeline(cells);
        let most = |of: fn(&Moment) -> f64| moments.iter().map(of).fold(0.0, f64::max);
        let reads = most(|one| one.reads_per_s);
        let writes = most(|one| one.writes_per_s);
        let head = format!(
            "{}, the last {}: in TRIM; reads to {}; writes to {}",
            self.view.selected().unwrap_or("-"),
            show::seconds(seconds),
            show::rate(reads),
            show::rate(writes),
        );
        let row = |label: &str, of: &dyn Fn(&Moment) -> f64, tone: Tone| {
            let marks: String = moments.iter().map(|one| self.level(of(one))).collect();
            let marks = format!("{marks:>cells$}");
            Line::from(vec![
                Span::raw(format!("{label:<LABEL$}")),
                self.span(marks, tone),
            ])
        };
        vec![
            Line::from(self.span(head, Tone::Head)),
            row("in TRIM", &|one| one.discarding, Tone::Alarm),
            row(
                "reads",
                &|one| one.reads_per_s / reads.max(1e-9),
                Tone::Good,
            ),
            row(
                "writes",
                &|one| one.writes_per_s / writes.max(1e-9),
                Tone::Good,
            ),
        ]
    }

    /// A share of 1 as one character; anything above 0 shows.
    fn level(&self, share: f64) -> char {
        const UNICODE: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        const ASCII: [char; 9] = [' ', '.', '.', ':', '-', '=', '+', '*', '#'];
        let levels = if self.look.unicode { UNICODE } else { ASCII };
        let level = (share.clamp(0.0, 1.0) * 8.0).ceil();
        levels[level as usize]
    }

    fn senders(&self) -> Vec<Line<'static>> {
        let head = format!(
            "{:<22} {:<8} {:>7} {:>8} {:>7} {:>8}  {}",
            "WHO SENDS DISCARDS", "device", "each s", "bytes/s", "mean", "in drive", "why"
        );
        let mut lines = vec![Line::from(self.span(head, Tone::Head))];
        let seconds = self.view.recent_s().max(1e-9);
        let all = self.view.senders();
        lines.extend(all.iter().map(|one| Line::from(sender(one, seconds))));
        if all.is_empty() {
            let missing = self.update.missing.iter();
            let lacks = missing.map(|lack| format!("  {}", lack.words()));
            lines.extend(lacks.map(|lack| Line::from(self.span(lack, Tone::Dim))));
        }
        if lines.len() == 1 {
            lines.push(Line::from(self.span("  none".to_owned(), Tone::Dim)));
        }
        lines
    }

    fn blocked(&self, height: usize) -> Vec<Line<'static>> {
        let head = format!(
            "{:<20} {:>7} {:>8}  {:<11} {:<15} {}",
            "WHO WAITS", "for", "by TRIM", "call", "by what", "where"
        );
        let mut lines = vec![Line::from(self.span(head, Tone::Head))];
        let all = self.view.blocked();
        let room = height.saturating_sub(1);
        // The last row counts those that have none.
        let shown = if all.len() > room {
            room.saturating_sub(1)
        } else {
            all.len()
        };
        for one in &all[..shown] {
            let tone = if one.discards_s > 0.0 {
                Tone::Alarm
            } else {
                Tone::Plain
            };
            lines.push(Line::from(self.span(blocked(one), tone)));
        }
        if all.len() > shown {
            let more = show::counted((all.len() - shown) as u64, "more process");
            let more = more.replace("processs", "processes");
            lines.push(Line::from(self.span(format!("  {more}"), Tone::Dim)));
        }
        if all.is_empty() {
            lines.push(Line::from(self.span("  none".to_owned(), Tone::Dim)));
        }
        lines
    }

    fn foot(&self) -> Line<'static> {
        let text = match (self.view.typing, &*self.view.filter) {
            (true, filter) => format!("filter: {filter}_   Enter keeps it, Esc clears it"),
            (false, "") => format!("{KEYS}  (by {})", self.view.sort.words()),
            (false, filter) => format!("filter: {filter}   Esc clears it  ? help"),
        };
        Line::from(self.span(text, Tone::Dim))
    }

    fn span(&self, text: String, tone: Tone) -> Span<'static> {
        Span::styled(text, tone.style(self.look))
    }
}

fn help(frame: &mut Frame<'_>, area: Rect, look: Look) {
    let width = 70.min(area.width);
    let height = (HELP.len() as u16 + 2).min(area.height);
    let [_, middle, _] = Layout::horizontal([
        Constraint::Fill(1),
        Constraint::Length(width),
        Constraint::Fill(1),
    ])
    .areas(area);
    let [_, middle, _] = Layout::vertical([
        Constraint::Fill(1),
        Constraint::Length(height),
        Constraint::Fill(1),
    ])
    .areas(middle);
    let lines: Vec<Line<'static>> = HELP.iter().map(|line| Line::from(*line)).collect();
    let block = match look.unicode {
        true => Block::bordered(),
        false => Block::new(),
    };
    let block = block.title(" keys and words; any key closes this ");
    frame.render_widget(Clear, middle);
    frame.render_widget(Paragraph::new(lines).block(block), middle);
}

/// The part that a text plays.
#[derive(Debug, Clone, Copy)]
enum Tone {
    Plain,
    Head,
    Strong,
    Dim,
    Good,
    Alarm,
}

impl Tone {
    fn style(self, look: Look) -> Style {
        let plain = Style::new();
        match self {
            Tone::Plain => plain,
            Tone::Head => plain.add_modifier(Modifier::REVERSED),
            Tone::Strong => plain.add_modifier(Modifier::BOLD),
            Tone::Dim => plain.add_modifier(Modifier::DIM),
            Tone::Good if look.colour => plain.fg(Color::Green),
            Tone::Alarm if look.colour => plain.fg(Color::Red),
            Tone::Good => plain,
            Tone::Alarm => plain.add_modifier(Modifier::BOLD),
        }
    }
}

/// Rate, bytes per second and mean wait, in 24 columns.
fn work(work: &Work) -> String {
    format!(
        "{:>7} {:>8} {:>7}",
        short(work.per_s),
        show::bytes(work.bytes_per_s as u64),
        show::mean_ms(work.mean_ms)
    )
}

/// A rate without its unit, in 7 columns at most: `1,234`, `65.3k`, `1.2M`.
fn short(per_s: f64) -> String {
    match per_s {
        rate if rate >= 1e6 => format!("{:.1}M", rate / 1e6),
        rate if rate >= 1e5 => format!("{:.0}k", rate / 1e3),
        rate if rate >= 10.0 => show::count(rate.round() as u64),
        rate if rate > 0.0 => format!("{rate:.1}"),
        _ => "0".to_owned(),
    }
}

fn sender(one: &SenderWork, seconds: f64) -> String {
    let program = match &one.deletion {
        Some(deletion) => format!("{} ({})", deletion.program, deletion.pid),
        None => one.pid.map_or(one.program.clone(), |pid| {
            format!("{} ({pid})", one.program)
        }),
    };
    let mean = show::mean_ms(one.mean_ms);
    let deleted = one.deleted.as_ref();
    let deleted = deleted.map_or(String::new(), |all| format!(", cleaner {}", all.words()));
    format!(
        "{:<22} {:<8} {:>7} {:>8} {:>7} {:>8}  {}{deleted}",
        cut(&program, 22),
        cut(&one.device, 8),
        short(one.discards as f64 / seconds),
        show::bytes((one.bytes as f64 / seconds) as u64),
        mean,
        show::percent((one.in_drive_s / seconds).min(1.0)),
        one.reason.word()
    )
}

fn blocked(one: &Blocked) -> String {
    let program = format!("{} ({})", one.program, one.pid);
    let by_trim = match one.discards_s {
        seconds if seconds > 0.0 => show::seconds(seconds),
        _ => "-".to_owned(),
    };
    let place = one.at.as_deref().map(names::shown);
    let suspects = Some(one.suspects.join("? ")).filter(|all| !all.is_empty());
    let place = place.or_else(|| suspects.map(|all| format!("{all}?")));
    let mut place = place.or_else(|| one.function.clone()).unwrap_or_default();
    if let Some(deleted) = &one.deleted {
        place += &format!(", {}", deleted.words());
    }
    format!(
        "{:<20} {:>7} {:>8}  {:<11} {:<15} {}",
        cut(&program, 20),
        show::seconds(one.seconds),
        by_trim,
        cut(one.call.unwrap_or("-"), 11),
        one.word(),
        place
    )
}

/// A name in so many columns at most; the end tells which of several it is, so it stays.
fn cut(name: &str, width: usize) -> String {
    let name = names::harmless(name).replace('\n', " ");
    let count = name.chars().count();
    if count <= width {
        return name;
    }
    let tail: String = name.chars().skip(count + 1 - width).collect();
    format!("~{tail}")
}

#[cfg(test)]
mod tests;
