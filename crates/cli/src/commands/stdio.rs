//! `jackline stdio`: reads events from standard input and answers each with a verdict.

use std::io::{self, BufRead, BufReader, Write as _};

use jackline_engine::event::Control;
use jackline_engine::wire::parse_line;
use jackline_engine::{Event, EventKind, FaultKind, SessionId, Timestamp};
use jackline_host::clock::now;
use jackline_host::{NotAPerson, check_person};
use jackline_runtime::surfaces::STDIO;
use jackline_runtime::{AnswerKind, Runtime, RuntimeAnswer};

use super::check_definition_file;
use crate::args::StdioArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    current_directory, fail, machine_definitions, note_output, open_store, print_warning, sanitize,
};

/// The maximum length of an input line.
const LINE_BYTES_MAX: usize = 64 << 20;

/// The maximum length of a shown warning.
const WARNING_MAX: usize = 2000;

pub(crate) fn run(args: &StdioArgs) -> ExitKind {
    // The model must not read a backtrace; the answer describes the failure.
    std::panic::set_hook(Box::new(|_| {}));
    match open_runtime(args) {
        Ok((mut runtime, session)) => serve(&mut runtime, session),
        Err(exit) => exit,
    }
}

fn open_runtime(args: &StdioArgs) -> Result<(Runtime, SessionId), ExitKind> {
    let deadline = args
        .deadline
        .as_deref()
        .map(Timestamp::parse)
        .transpose()
        .map_err(|error| fail(ExitKind::Usage, format!("--deadline: {error}")))?;
    let session = args
        .session
        .clone()
        .unwrap_or_else(|| format!("stdio-{}-{}", now().wall.as_ms(), std::process::id()));
    let session = SessionId::parse(session)
        .map_err(|error| fail(ExitKind::Usage, format!("--session {error}")))?;
    let store = open_store()?;
    check_definition_file(args.definition.as_deref())
        .map_err(|text| fail(ExitKind::Usage, text))?;
    let definitions = machine_definitions(args.definition.clone(), &store);
    let mut runtime = Runtime::new(store, definitions, current_directory())
        .with_held_sessions()
        .with_deadline(deadline)
        .with_surface(&STDIO)
        .with_result_pages();
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
    }
    Ok((runtime, session))
}

fn serve(runtime: &mut Runtime, mut session: SessionId) -> ExitKind {
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut exit = ExitKind::Success;
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        let read = match read_line(&mut input, &mut line) {
            Ok(read) => read,
            Err(error) => {
                return fail(ExitKind::Broken, format!("can't read standard input: {error}"));
            }
        };
        number += 1;
        let answer = match read {
            InputLine::End => return exit,
            InputLine::TooLong(bytes) => {
                exit = exit.max(ExitKind::Usage);
                let reason = format!("it has {bytes} bytes; the limit is {LINE_BYTES_MAX}");
                runtime.refuse_line(number, FaultKind::TooLong, &reason, None)
            }
            InputLine::Line if line.iter().all(u8::is_ascii_whitespace) => continue,
            InputLine::Line => match parse_line(&line, Some(&session)) {
                Ok(event) => {
                    session.clone_from(&event.session);
                    let answer = match doubt_about_person(&event) {
                        Some(doubt) => runtime.refuse_opening(number, &event, &doubt),
                        None => runtime.answer_safely(event),
                    };
                    answer
                        .warnings
                        .iter()
                        .for_each(|text| print_warning(sanitize(text, WARNING_MAX)));
                    exit = exit.max(match answer.outcome {
                        AnswerKind::Decided | AnswerKind::GuardOff => ExitKind::Success,
                        AnswerKind::Refused => ExitKind::Usage,
                        AnswerKind::Broken => ExitKind::Broken,
                    });
                    answer
                }
                Err(error) => {
                    exit = exit.max(ExitKind::Usage);
                    runtime.refuse(number, &error, None)
                }
            },
        };
        if let Err(error) = write_answer(&answer) {
            // If the client has closed the pipe, no error can be reported.
            note_output(Err(error));
            return exit;
        }
        runtime.finish(answer.deferred);
    }
}

/// Why a control that only a person may send is refused, if it is.
fn doubt_about_person(event: &Event) -> Option<NotAPerson> {
    match &event.kind {
        EventKind::Control(Control { action, .. }) if !action.only_restricts() => {
            check_person().err()
        }
        _ => None,
    }
}

fn write_answer(answer: &RuntimeAnswer) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(answer.json.as_bytes())?;
    output.write_all(b"\n")?;
    output.flush()
}

enum InputLine {
    Line,
    TooLong(usize),
    End,
}

/// Reads one line. The contents of a line over the limit are skipped.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<InputLine> {
    line.clear();
    let mut bytes = 0;
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        if available.is_empty() {
            return Ok(match bytes {
                0 => InputLine::End,
                _ if bytes > LINE_BYTES_MAX => InputLine::TooLong(bytes),
                _ => InputLine::Line,
            });
        }
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = available.get(..end.unwrap_or(available.len())).unwrap_or(available);
        bytes += part.len();
        if bytes <= LINE_BYTES_MAX {
            line.extend_from_slice(part);
        } else {
            line.clear();
        }
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() {
            return Ok(if bytes > LINE_BYTES_MAX {
                InputLine::TooLong(bytes)
            } else {
                InputLine::Line
            });
        }
    }
}
