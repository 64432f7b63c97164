use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::watch::tests::{device, stall};
use crate::watch::view::Key;
use crate::why::Missing;

const LOOK: Look = Look {
    width: 80,
    unicode: true,
    colour: false,
};

/// The view as text of so many columns and rows.
fn drawn(view: &View, width: u16, height: u16, look: Look) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, view, look)).unwrap();
    let buffer = terminal.backend().buffer();
    let row = |y| {
        (0..width)
            .map(|x| buffer[(x, y)].symbol())
            .collect::<String>()
    };
    (0..height).map(|y| row(y).trim_end().to_owned()).collect()
}

/// Ten calm seconds, then twenty of a stall.
fn watched() -> View {
    let mut view = View::default();
    for at in 0..30 {
        let mut update = stall(f64::from(at));
        if at < 10 {
            update.devices = vec![device("loop8", 900, 40, 0.0), device("vda", 1234, 56, 0.0)];
            (update.senders, update.blocked) = (Vec::new(), Vec::new());
        }
        view.push(update);
    }
    view
}

#[test]
fn a_stall_is_readable_at_80_by_24() {
    let rows = drawn(&watched(), 80, 24, LOOK);
    let text = rows.join("\n");
    let expected = "\
trimbench watch  12:03:36  each 1.0 s  waiting for I/O: some 43 %, all 40 %
DEVICE     reads/s  bytes/s    mean write/s  bytes/s    mean  flush    mean  fly
            TRIM/s  bytes/s    mean   mean size  in TRIM           debt
loop8           12 48.0 KiB  500 µs      11 44.0 KiB 84.0 ms    2.0  116 ms    3
                23  5.8 MiB 42.0 ms     256 KiB  ██████████ 98 %   1.0 GiB
vda          1,234  4.8 MiB  500 µs      56  224 KiB 84.0 ms     14 84.0 ms    3
                 0      0 B       -           -  ░░░░░░░░░░ 0.0 %
loop8, the last 30.0 s: in TRIM; reads to 900/s; writes to 40/s
in TRIM                                                     ████████████████████
reads                                             ██████████▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁
writes                                            ██████████▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃▃
WHO SENDS DISCARDS     device    each s  bytes/s    mean in drive  why
rm (14923)             loop8         23  5.8 MiB 42.5 ms     98 %  ext4 commit
WHO WAITS                for  by TRIM  call        by what         where
dd (14925)            0.97 s   0.95 s  write       behind discards /mnt/lab";
    let shown: Vec<&str> = text.lines().take(15).collect();
    assert_eq!(shown.join("\n"), expected, "\n{text}");
    assert!(rows[23].starts_with(KEYS), "{text}");
    assert!(rows.iter().all(|row| row.chars().count() <= 80));
}

#[test]
fn ascii_terminals_get_ascii_alone() {
    let look = Look {
        width: 80,
        unicode: false,
        colour: false,
    };
    let text = drawn(&watched(), 80, 24, look).join("\n");
    let odd: String = text.chars().filter(|sign| !sign.is_ascii()).collect();
    // The micro sign of a latency is the one exception, and Latin-1 has it.
    assert!(odd.chars().all(|sign| sign == 'µ'), "{odd}");
    assert!(text.contains("##########"), "{text}");
}

#[test]
fn what_is_missing_is_shown_where_the_senders_would_be() {
    let mut view = View::default();
    let mut update = stall(1.0);
    update.senders.clear();
    update.missing = vec![Missing {
        what: "who sends discards".to_owned(),
        why: "tracefs is not mounted; run it as root".to_owned(),
    }];
    view.push(update);
    let text = drawn(&view, 80, 24, LOOK).join("\n");
    assert!(
        text.contains("not seen: who sends discards: tracefs"),
        "{text}"
    );
}

#[test]
fn many_devices_and_processes_leave_room_for_each_other() {
    let mut view = View::default();
    let mut update = stall(1.0);
    update.devices = (0..20)
        .map(|at| device(&format!("nvme{at}n1"), at, at, 0.5))
        .collect();
    update.blocked = (0..40)
        .map(|pid| Blocked {
            pid,
            ..update.blocked[0].clone()
        })
        .collect();
    view.push(update);
    let rows = drawn(&view, 80, 24, LOOK);
    let text = rows.join("\n");
    assert!(
        text.contains("WHO WAITS") && text.contains("more processes"),
        "{text}"
    );
    assert!(text.contains("WHO SENDS DISCARDS"), "{text}");
    let devices = rows.iter().filter(|row| row.starts_with("nvme")).count();
    assert!(devices >= 3, "{text}");
}

#[test]
fn help_frost_and_filter_are_shown() {
    let mut view = watched();
    view.key(Key::Char(' '));
    view.key(Key::Char('?'));
    let text = drawn(&view, 80, 24, LOOK).join("\n");
    for part in [
        "FROZEN",
        "any key closes this",
        "behind discards  its device serves",
    ] {
        assert!(text.contains(part), "{part:?} missing in\n{text}");
    }
    view.key(Key::Char('x'));
    for sign in "/vda".chars() {
        view.key(Key::Char(sign));
    }
    let rows = drawn(&view, 80, 24, LOOK);
    assert!(rows[23].starts_with("filter: vda_"), "{}", rows.join("\n"));
    assert!(!rows.join("\n").contains("loop8,"), "{}", rows.join("\n"));
}

#[test]
fn no_size_of_a_terminal_panics() {
    let view = watched();
    for width in [1, 2, 7, 20, 79, 81, 200] {
        for height in [1, 2, 3, 5, 8, 12, 60] {
            drawn(&view, width, height, LOOK);
            drawn(&View::default(), width, height, LOOK);
        }
    }
}
