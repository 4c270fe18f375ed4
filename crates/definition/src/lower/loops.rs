//! How repetition is found and answered.

use jackline_engine::definition::{Graded, LOOPS_WINDOW_MAX, Loops, Poll, Profile};
use jackline_engine::{Kind, Mode};

use super::MODES;
use super::tools::pointer;
use crate::keys::{self, Keys};
use crate::reader::Reader;
use crate::yaml::Node;

/// The loop guard as a file wants it. Who says how loops are answered wants them
/// answered, so that its mode is the file's unless it has one of its own.
pub(crate) fn lower(node: &Node, mode: Mode, reader: &mut Reader<'_>) -> Loops {
    let mut loops = Loops { mode, ..Loops::default() };
    for (key, node) in reader.fields(node, &keys::LOOPS) {
        match key {
            "mode" => loops.mode = reader.word(node, "`loops.mode`", &MODES).unwrap_or(mode),
            "profile" => {
                let words = [("strict", Profile::Strict), ("graded", Profile::Graded)];
                let profile = reader.word(node, "`loops.profile`", &words);
                loops.profile = profile.unwrap_or(loops.profile);
            }
            "history" => {
                if let Some(history) = ranged(node, "`loops.history`", (8, 64), reader) {
                    loops.history = history;
                }
            }
            "strict" => strict(node, &mut loops, reader),
            "graded" => graded(node, &mut loops.graded, reader),
            "cycle" => {
                let Loops { cycle, .. } = &mut loops;
                let slots = [
                    ("period_max", (2, 8), &mut cycle.period_max),
                    ("repeats", (2, 16), &mut cycle.repeats),
                ];
                numbers(node, &keys::LOOPS_CYCLE, "cycle", slots, reader);
            }
            "errors" => errors(node, &mut loops, reader),
            "volatile" => {
                let items = reader.list(node, "`loops.volatile`");
                let each = |item| pointer(item, "a pointer", reader);
                loops.volatile = items.iter().filter_map(each).collect();
            }
            _ => {
                let items = reader.list(node, "`loops.transparent`");
                let each = |item| reader.word(item, "a kind", Kind::ALL);
                loops.transparent = items.iter().filter_map(each).collect();
            }
        }
    }
    loops
}

fn strict(node: &Node, loops: &mut Loops, reader: &mut Reader<'_>) {
    let strict = &mut loops.strict;
    let slots = [
        ("window", (2, LOOPS_WINDOW_MAX), &mut strict.window),
        ("threshold", (2, LOOPS_WINDOW_MAX), &mut strict.threshold),
        ("override_retries", (1, 100), &mut strict.override_retries),
    ];
    numbers(node, &keys::LOOPS_STRICT, "strict", slots, reader);
    if strict.threshold > strict.window {
        let message = format!(
            "`loops.strict` looks for {} among {} calls, which there never are",
            strict.threshold, strict.window
        );
        reader.complain_hint(node.at, message, "`window` is at least `threshold`");
    }
}

fn graded(node: &Node, graded: &mut Graded, reader: &mut Reader<'_>) {
    let slots = [
        ("soft", (2, u16::MAX), &mut graded.soft),
        ("hard", (2, u16::MAX), &mut graded.hard),
        ("infinite", (2, u16::MAX), &mut graded.infinite),
    ];
    numbers(node, &keys::LOOPS_GRADED, "graded", slots, reader);
    let Graded { soft, hard, infinite } = *graded;
    if !(soft < hard && hard < infinite) {
        let message =
            format!("`loops.graded` does not rise: soft {soft}, hard {hard}, infinite {infinite}");
        reader.complain_hint(node.at, message, "each is more than the one before");
    }
}

fn errors(node: &Node, loops: &mut Loops, reader: &mut Reader<'_>) {
    let errors = &mut loops.errors;
    let slots =
        [("soft", (2, u16::MAX), &mut errors.soft), ("hard", (2, u16::MAX), &mut errors.hard)];
    numbers(node, &keys::LOOPS_ERRORS, "errors", slots, reader);
    if errors.soft >= errors.hard {
        let message =
            format!("`loops.errors` does not rise: soft {}, hard {}", errors.soft, errors.hard);
        reader.complain_hint(node.at, message, "`hard` is more than `soft`");
    }
}

/// Reads numbers by name into their places.
fn numbers<const N: usize>(
    node: &Node,
    keys: &Keys,
    of: &str,
    mut slots: [(&str, (u16, u16), &mut u16); N],
    reader: &mut Reader<'_>,
) {
    for (key, node) in reader.fields(node, keys) {
        let what = format!("`loops.{of}.{key}`");
        for (_, range, slot) in slots.iter_mut().filter(|(name, ..)| *name == key) {
            if let Some(number) = ranged(node, &what, *range, reader) {
                **slot = number;
            }
        }
    }
}

fn ranged(node: &Node, what: &str, (from, to): (u16, u16), reader: &mut Reader<'_>) -> Option<u16> {
    let number: i64 = reader.count(node, what)?;
    let fits = u16::try_from(number).ok().filter(|number| (from..=to).contains(number));
    if fits.is_none() {
        let hint = format!("whole numbers from {from} to {to} are accepted");
        reader.complain_hint(node.at, format!("{what} can't be {number}"), hint);
    }
    fits
}

/// How long a tool may be asked whether something has happened.
pub(super) fn poll(node: &Node, reader: &mut Reader<'_>) -> Poll {
    let mut poll = Poll { until_changed: true, max_calls: 60, within_seconds: 1800 };
    for (key, node) in reader.fields(node, &keys::POLL) {
        let what = format!("`poll.{key}`");
        if key == "until_changed" {
            poll.until_changed = reader.flag(node, &what).unwrap_or(poll.until_changed);
            continue;
        }
        let Some(number) = reader.count::<u32>(node, &what) else { continue };
        if number == 0 {
            reader.complain(node.at, format!("{what} can't be 0"));
        } else if key == "max_calls" {
            poll.max_calls = number;
        } else {
            poll.within_seconds = number;
        }
    }
    poll
}
