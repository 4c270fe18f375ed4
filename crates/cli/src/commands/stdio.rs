//! `jackline stdio`: events in, verdicts out.

use std::io::{self, BufRead, BufReader, Write as _};

use jackline_engine::event::Control;
use jackline_engine::wire::parse_line;
use jackline_engine::{Event, EventKind, FaultKind, SessionId, Timestamp};
use jackline_host::clock::now;
use jackline_host::{Agent, agent_above};
use jackline_runtime::{Answer, Outcome, Runtime};

use crate::args::StdioArgs;
use crate::exit::Exit;
use crate::terminal::{definitions, fail, here, plain, store, warn};

/// The longest line that is read.
const LINE_BYTES_MAX: usize = 64 << 20;

/// How much of a warning is shown: one line, however long the files are.
const WARNING_MAX: usize = 2000;

pub(crate) fn run(args: &StdioArgs) -> Exit {
    // A backtrace is nothing that a model should read; the answer says what broke.
    std::panic::set_hook(Box::new(|_| {}));
    match start(args) {
        Ok((mut runtime, session)) => serve(&mut runtime, session),
        Err(exit) => exit,
    }
}

fn start(args: &StdioArgs) -> Result<(Runtime, SessionId), Exit> {
    let deadline = args
        .deadline
        .as_deref()
        .map(Timestamp::parse)
        .transpose()
        .map_err(|error| fail(Exit::Usage, format!("--deadline: {error}")))?;
    let session = args
        .session
        .clone()
        .unwrap_or_else(|| format!("stdio-{}-{}", now().wall.as_ms(), std::process::id()));
    let session = SessionId::parse(session)
        .map_err(|error| fail(Exit::Usage, format!("--session {error}")))?;
    let store = store()?;
    if let Some(file) = &args.definition
        && !file.is_file()
    {
        let text = format!("no definition `{}`; check the path after -d", file.display());
        return Err(fail(Exit::Usage, text));
    }
    let definitions = definitions(args.definition.clone(), &store);
    let mut runtime = Runtime::new(store, definitions, here()).with_deadline(deadline);
    if let Ok(jackline) = std::env::current_exe() {
        runtime = runtime.with_verifier(jackline.clone()).with_notifier(jackline);
    }
    Ok((runtime, session))
}

fn serve(runtime: &mut Runtime, mut session: SessionId) -> Exit {
    let mut input = BufReader::with_capacity(64 * 1024, io::stdin().lock());
    let mut exit = Exit::Fine;
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        let read = match read_line(&mut input, &mut line) {
            Ok(read) => read,
            Err(error) => return fail(Exit::Broken, format!("can't read standard input: {error}")),
        };
        number += 1;
        let answer = match read {
            Read::End => return exit,
            Read::TooLong(bytes) => {
                exit = exit.max(Exit::Usage);
                let reason = format!("it has {bytes} bytes; at most {LINE_BYTES_MAX} are read");
                runtime.refuse_line(number, FaultKind::TooLong, &reason, None)
            }
            Read::Line if line.iter().all(u8::is_ascii_whitespace) => continue,
            Read::Line => match parse_line(&line, Some(&session)) {
                Ok(event) => {
                    session.clone_from(&event.session);
                    let answer = match agent_behind(&event) {
                        Some(agent) => runtime.refuse_agent(number, &event, &agent),
                        None => runtime.answer_safely(event),
                    };
                    answer.warnings.iter().for_each(|text| warn(plain(text, WARNING_MAX)));
                    exit = exit.max(match answer.outcome {
                        Outcome::Decided | Outcome::Passed => Exit::Fine,
                        Outcome::Refused => Exit::Usage,
                        Outcome::Broken => Exit::Broken,
                    });
                    answer
                }
                Err(error) => {
                    exit = exit.max(Exit::Usage);
                    runtime.refuse(number, &error, None)
                }
            },
        };
        if write_answer(&answer).is_err() {
            // The client is gone, and with it everybody who could be told.
            return exit;
        }
        runtime.finish(answer.deferred);
    }
}

/// The agent that gives itself a person's word, if one does.
fn agent_behind(event: &Event) -> Option<Agent> {
    match &event.kind {
        EventKind::Control(Control { action, .. }) if !action.closes() => agent_above(),
        _ => None,
    }
}

fn write_answer(answer: &Answer) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(answer.json.as_bytes())?;
    output.write_all(b"\n")?;
    output.flush()
}

enum Read {
    Line,
    TooLong(usize),
    End,
}

/// Reads a line of bounded length; the rest of a longer one is passed over.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Read> {
    line.clear();
    let mut bytes = 0;
    loop {
        let available = match input.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            available => available?,
        };
        if available.is_empty() {
            return Ok(match bytes {
                0 => Read::End,
                _ if bytes > LINE_BYTES_MAX => Read::TooLong(bytes),
                _ => Read::Line,
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
            return Ok(if bytes > LINE_BYTES_MAX { Read::TooLong(bytes) } else { Read::Line });
        }
    }
}
