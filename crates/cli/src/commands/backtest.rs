//! `jackline backtest --mine`: what a definition would have done to the
//! sessions of the past, before anything is installed.

mod files;
mod report;

use std::path::PathBuf;

use jackline_clients::claude::transcript::Transcript;
use jackline_definition::FILE_NAME;
use jackline_engine::{Definition, Place};
use jackline_journal::FileStore;
use jackline_runtime::{
    Backtest, BacktestOutcome, DefinitionError, Definitions, boot_number, claude_home, home, now,
    state_home,
};
use serde::Serialize;

use crate::args::BacktestArgs;
use crate::exit::Exit;
use crate::terminal::{fail, here, plain, say_json, warn};
use files::{Found, find};
use report::{Progress, Report};

/// What is in force where nobody has written a definition: what `init` would
/// write, enforced.
const DEFAULT: &str = "extends: [coding-agent]";

/// How much of a warning is shown.
const WARNING_MAX: usize = 2000;

/// How many files that can't be read are named.
const NAMED_MAX: usize = 5;

pub(crate) fn run(args: &BacktestArgs) -> Exit {
    // A backtrace is nothing that helps; the error says what broke.
    std::panic::set_hook(Box::new(|_| {}));
    backtest(args).unwrap_or_else(|exit| exit)
}

fn backtest(args: &BacktestArgs) -> Result<Exit, Exit> {
    let began = now().boot_ms;
    let since = args.since.as_deref().map(since).transpose()?;
    let places = places(args)?;
    let found = find(&places, since);
    let (definition, source) = definition(args)?;
    let shown = |path: PathBuf| path.display().to_string();
    let place = Place {
        home: home().map(shown),
        state_home: state_home().ok().map(shown),
        ..Place::default()
    };
    let backtest = Backtest::new(&definition, place);
    let mut report = Report::new(source);
    let mut progress = Progress::new(&found, args.json);
    let mut unreadable = found.unreadable.clone();
    for file in &found.files {
        if let Err(error) = one(&backtest, file, args.json, &mut report, &mut progress) {
            unreadable.push((file.path.clone(), error));
        }
    }
    progress.clear();
    name(&unreadable);
    if report.sessions == 0 {
        return Err(fail(Exit::Usage, nothing(&places, &found, args.since.as_deref())));
    }
    if !args.json {
        report.show(now().boot_ms.saturating_sub(began));
    }
    Ok(if report.faults > 0 { Exit::Broken } else { Exit::Fine })
}

/// Decides on one transcript.
fn one(
    backtest: &Backtest,
    file: &files::File,
    as_json: bool,
    report: &mut Report,
    progress: &mut Progress,
) -> Result<(), String> {
    let mut transcript = Transcript::open(&file.path).map_err(|error| error.to_string())?;
    let mut run = backtest.start();
    let mut id = None;
    let mut error = None;
    while let Some(event) = transcript.next() {
        progress.at(file, transcript.bytes());
        let event = match event {
            Ok(event) => event,
            Err(broken) => {
                error = Some(format!("{broken}; what comes before was decided"));
                break;
            }
        };
        let session = id.get_or_insert_with(|| event.session.to_string());
        match run.event(event) {
            Ok(step) => report.step(session, &step),
            Err(fault) => {
                report.faults += 1;
                error = Some(format!("{fault}; report this"));
                break;
            }
        }
    }
    report.passed(transcript.passed());
    if let Some(id) = id {
        let outcome = run.finish();
        if as_json {
            say_json(line(&id, file, &outcome));
        }
        report.run(file, &outcome);
    }
    progress.done(file);
    error.map_or(Ok(()), Err)
}

/// A run for programs.
#[derive(Serialize)]
struct Line<'a> {
    id: String,
    #[serde(flatten)]
    outcome: &'a BacktestOutcome,
}

/// The transcript of a sub-agent is a run of its own.
fn line(session: &str, file: &files::File, outcome: &BacktestOutcome) -> String {
    let id = match file.agent() {
        Some(agent) => format!("{session}/{agent}"),
        None => session.to_owned(),
    };
    serde_json::to_string(&Line { id, outcome }).unwrap_or_default()
}

/// Where the transcripts are.
fn places(args: &BacktestArgs) -> Result<Vec<PathBuf>, Exit> {
    if !args.paths.is_empty() {
        return Ok(args.paths.clone());
    }
    match claude_home() {
        Some(home) => Ok(vec![home.join("projects")]),
        None => {
            let text = "nothing says where Claude Code keeps its transcripts: set \
                        CLAUDE_CONFIG_DIR or HOME, or name files";
            Err(fail(Exit::Usage, text))
        }
    }
}

/// The definition that is named, or the one that is here, or the default, and
/// what to call it.
fn definition(args: &BacktestArgs) -> Result<(Definition, String), Exit> {
    if let Some(file) = &args.definition
        && !file.is_file()
    {
        let text = format!("no definition `{}`; check the path after -d", file.display());
        return Err(fail(Exit::Usage, text));
    }
    // Before anything is installed there need not be a state home.
    let store = state_home().ok().map(|home| FileStore::new(home, boot_number()));
    let definitions = Definitions::new(args.definition.clone(), store.as_ref()).only_looking();
    match definitions.resolve(&here()) {
        Ok(resolved) => {
            if let Some(reason) = &resolved.broken {
                let warning = format!(
                    "the definition does not load, and the last good one is used: {reason}; mend \
                     it (`jackline check`)"
                );
                warn(plain(&warning, WARNING_MAX));
            }
            let file = resolved.files.first().map(|file| format!("`{}`", file.display()));
            let source = file.unwrap_or_else(|| format!("`{}`", resolved.definition.name));
            Ok(((*resolved.definition).clone(), source))
        }
        Err(DefinitionError::NotFound(_)) if args.definition.is_none() => {
            let loaded = jackline_definition::load(DEFAULT.as_bytes(), FILE_NAME);
            let definition = loaded.map_err(|error| fail(Exit::Broken, error))?;
            Ok((definition, "the preset `coding-agent`, the default".to_owned()))
        }
        Err(error) => {
            let text =
                format!("{}; mend it (`jackline check`)", plain(&error.brief(), WARNING_MAX));
            Err(fail(Exit::Usage, text))
        }
    }
}

/// Milliseconds in a text such as `30d`.
fn since(text: &str) -> Result<u64, Exit> {
    const UNITS: [(char, u64); 4] = [('m', 60), ('h', 3600), ('d', 86_400), ('w', 604_800)];
    let parsed = UNITS.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        count.checked_mul(seconds * 1000)
    });
    parsed.ok_or_else(|| {
        let text =
            format!("--since takes a time such as 12h, 30d or 8w, not `{}`", plain(text, 40));
        fail(Exit::Usage, text)
    })
}

fn name(unreadable: &[(PathBuf, String)]) {
    for (path, error) in unreadable.iter().take(NAMED_MAX) {
        warn(format!(
            "can't read `{}`: {}",
            plain(&path.display().to_string(), 200),
            plain(error, 200)
        ));
    }
    if let Some(more) = unreadable.len().checked_sub(NAMED_MAX).filter(|more| *more > 0) {
        warn(format!("{more} more can't be read"));
    }
}

/// Says where nothing was found.
fn nothing(places: &[PathBuf], found: &Found, since: Option<&str>) -> String {
    let places: Vec<String> = places.iter().map(|place| format!("`{}`", place.display())).collect();
    let places = plain(&places.join(", "), WARNING_MAX);
    match (since, found.older) {
        (Some(since), older) if older > 0 => format!(
            "no transcript in {places} was written to in the last {since}; {older} are older: \
             leave --since away"
        ),
        _ if found.files.is_empty() => format!(
            "no transcripts of Claude Code in {places}; if they are elsewhere, name the files or \
             their directory"
        ),
        _ => format!(
            "nothing in {places} is a transcript of Claude Code; name the `.jsonl` files that it \
             writes below `projects/`"
        ),
    }
}
