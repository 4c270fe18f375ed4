//! `jackline backtest`: shows what a definition would have decided about recorded sessions: your
//! own sessions, guarded or not, and recorded runs of others.

mod files;
mod format;
mod play;
mod pool;
mod progress;
mod report;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jackline_analysis::{Backtest, ResultMemo};
use jackline_clients::find_client;
use jackline_engine::{Definition, SessionLocation};
use jackline_host::clock::now;
use jackline_host::environment::home;
use jackline_host::{HostAccess, state_home};
use jackline_runtime::definitions::DefinitionError;
use jackline_runtime::{AdapterTools, Definitions};

use super::{DEFAULT_DEFINITION, check_definition_file, default_definition};
use crate::args::BacktestArgs;
use crate::exit::ExitKind;
use crate::terminal::{current_directory, fail, print_error, print_raw, print_warning, sanitize};
use files::{RecordedFile, SearchLocations, UnreadableFile, find_recordings, readable_clients};
use play::{BacktestContext, BacktestPart, InputBuffers};
use progress::ProgressBar;
use report::BacktestReport;

/// The maximum length of a shown warning.
const WARNING_MAX: usize = 2000;

/// How many unreadable files and lines are named.
const NAMED_MAX: usize = 20;

pub(crate) fn run(args: &BacktestArgs) -> ExitKind {
    // A backtrace does not help the user; the error describes the failure.
    std::panic::set_hook(Box::new(|_| {}));
    backtest(args).unwrap_or_else(|exit| exit)
}

fn backtest(args: &BacktestArgs) -> Result<ExitKind, ExitKind> {
    let began = now().boot_ms;
    let since = args.since.as_deref().map(parse_since).transpose()?;
    let places = search_locations(args)?;
    let mut found = find_recordings(&places, since);
    let intake = InputBuffers::default();
    let mut source = String::new();
    let open = || {
        let (definition, from) = definition(args)?;
        source = from;
        let shown = |path: PathBuf| path.display().to_string();
        let place = SessionLocation {
            home: home().map(shown),
            state_home: state_home().ok().map(shown),
            ..SessionLocation::default()
        };
        Ok(BacktestContext {
            intake: &intake,
            backtest: Backtest::new(&definition, place).with_client_tools(tools_of_client),
            memo: ResultMemo::default(),
            as_json: args.json,
            calls: AtomicU64::new(0),
        })
    };
    let mut report = BacktestReport::default();
    let mut errors = ReadErrors::default();
    let total = found.files.iter().map(|file| file.bytes).sum();
    let mut progress = ProgressBar::new(total, args.json, began);
    let files = std::mem::take(&mut found.files);
    let any = !files.is_empty();
    found.unreadable_files.iter().for_each(|unreadable| errors.unreadable(unreadable));
    let each = |part: BacktestPart| {
        print_raw(&part.json);
        report.merge(part.report);
        part.broken.iter().for_each(|line| errors.lines.push(|| describe_bad_line(line)));
        if let Some((file, error)) = part.unreadable {
            let (path, named) = (file.path.clone(), file.named);
            errors.unreadable(&UnreadableFile { path, error, named });
        }
    };
    pool::run_jobs(&intake, files, open, each, |shop| progress.show(shop))?;
    progress.clear();
    errors.say();
    if report.faults > 0 {
        return Ok(ExitKind::Broken);
    }
    if report.sessions == 0 {
        let text = nothing_found_message(&places, any, found.older, args.since.as_deref());
        return Err(fail(ExitKind::Usage, text));
    }
    if !args.json {
        report.show(&source, now().boot_ms.saturating_sub(began));
    }
    Ok(if errors.is_bad() { ExitKind::Usage } else { ExitKind::Success })
}

/// The files and lines that could not be read.
#[derive(Default)]
struct ReadErrors {
    /// Files that the user named.
    files: FirstMessages,
    /// Lines of files.
    lines: FirstMessages,
    /// Files in named directories. These are warnings only.
    unnamed_files: FirstMessages,
}

/// The first messages of a kind, and the number of the others.
#[derive(Default)]
struct FirstMessages {
    texts: Vec<String>,
    more: u64,
}

impl FirstMessages {
    fn push(&mut self, text: impl FnOnce() -> String) {
        if self.texts.len() < NAMED_MAX {
            self.texts.push(text());
        } else {
            self.more += 1;
        }
    }

    fn say(&self, how: impl Fn(&str)) {
        self.texts.iter().for_each(|text| how(text));
        if self.more > 0 {
            how(&format!("{} more can't be read", self.more));
        }
    }
}

impl ReadErrors {
    fn unreadable(&mut self, unreadable: &UnreadableFile) {
        let few = if unreadable.named { &mut self.files } else { &mut self.unnamed_files };
        few.push(|| {
            let path = sanitize(&unreadable.path.display().to_string(), 200);
            format!("can't read `{path}`: {}", sanitize(&unreadable.error, 200))
        });
    }

    fn is_bad(&self) -> bool {
        !self.files.texts.is_empty() || !self.lines.texts.is_empty()
    }

    /// Files come first: a damaged file explains its damaged lines.
    fn say(&self) {
        self.unnamed_files.say(|text| print_warning(text));
        self.files.say(|text| print_error(text));
        self.lines.say(|text| print_error(text));
    }
}

/// The message about a line that can't be read.
fn describe_bad_line((file, number, error): &(Arc<RecordedFile>, u64, String)) -> String {
    let path = sanitize(&file.path.display().to_string(), 200);
    format!("{path}:{number}: {}", sanitize(error, 200))
}

/// The locations to search for recordings.
fn search_locations(args: &BacktestArgs) -> Result<SearchLocations, ExitKind> {
    if !args.paths.is_empty() {
        return Ok(SearchLocations::Named(args.paths.clone()));
    }
    if !args.mine {
        let text = format!(
            "nothing to decide on; pass --mine for your own past sessions of {}, or name files of \
             runs, journals or transcripts, directories of them, or sessions (`jackline status \
             --all` lists them)",
            readable_clients()
        );
        return Err(fail(ExitKind::Usage, text));
    }
    let client = find_client(&args.client);
    let transcripts = client.and_then(|client| Some((client, client.transcripts?)));
    let Some((client, transcripts)) = transcripts else {
        let (client, known) = (sanitize(&args.client, 40), readable_clients());
        let text =
            format!("no transcripts of `{client}` can be read; --mine reads those of {known}");
        return Err(fail(ExitKind::Usage, text));
    };
    transcripts.directory().map(|directory| SearchLocations::Own(client, directory)).ok_or_else(
        || {
            let (title, variables) = (client.title, transcripts.variables());
            let text =
                format!("can't find the transcripts of {title}: set {variables}, or name files");
            fail(ExitKind::Usage, text)
        },
    )
}

/// The named definition, else the one of this workspace, else the default; and its display name.
fn definition(args: &BacktestArgs) -> Result<(Definition, String), ExitKind> {
    check_definition_file(args.definition.as_deref())
        .map_err(|text| fail(ExitKind::Usage, text))?;
    // Before an installation, the state home need not exist.
    let host = HostAccess::of_machine(state_home().ok().as_deref());
    let definitions = Definitions::new(args.definition.clone(), host).read_only();
    match definitions.resolve(&current_directory()) {
        Ok(resolved) => {
            if let Some(reason) = &resolved.broken {
                let warning = format!(
                    "the definition does not load, so the last valid one is used: {reason}; fix \
                     it (`jackline check`)"
                );
                print_warning(sanitize(&warning, WARNING_MAX));
            }
            let file = resolved.files.first().map(|file| format!("`{}`", file.display()));
            let source = file.unwrap_or_else(|| format!("`{}`", resolved.definition.name));
            Ok(((*resolved.definition).clone(), source))
        }
        Err(DefinitionError::NotFound(_)) if args.definition.is_none() => {
            Ok((default_definition()?, format!("{DEFAULT_DEFINITION}, the default")))
        }
        Err(error) => {
            let text =
                format!("{}; fix it (`jackline check`)", sanitize(&error.brief(), WARNING_MAX));
            Err(fail(ExitKind::Usage, text))
        }
    }
}

/// Parses a duration such as `30d` into milliseconds.
fn parse_since(text: &str) -> Result<u64, ExitKind> {
    const UNITS: [(char, u64); 4] = [('m', 60), ('h', 3600), ('d', 86_400), ('w', 604_800)];
    let parsed = UNITS.iter().find_map(|(unit, seconds)| {
        let count: u64 = text.strip_suffix(*unit)?.parse().ok()?;
        count.checked_mul(seconds * 1000)
    });
    parsed.ok_or_else(|| {
        let text =
            format!("--since takes a time such as 12h, 30d or 8w, not `{}`", sanitize(text, 40));
        fail(ExitKind::Usage, text)
    })
}

/// The error if nothing was found, with the searched locations.
fn nothing_found_message(
    places: &SearchLocations,
    any: bool,
    older: usize,
    since: Option<&str>,
) -> String {
    let paths = places.paths().iter().map(|place| format!("`{}`", place.display()));
    let paths = sanitize(&paths.collect::<Vec<_>>().join(", "), WARNING_MAX);
    match (since, places) {
        (Some(since), _) if older > 0 => format!(
            "nothing in {paths} was modified in the last {since}; {older} files are older: omit \
             --since"
        ),
        (_, SearchLocations::Own(client, _)) if !any => format!(
            "no transcripts of {} in {paths}; if they are elsewhere, name the files or their \
             directory",
            client.title
        ),
        (_, SearchLocations::Own(client, _)) => {
            format!("found no transcript of {} in {paths}; name its `.jsonl` files", client.title)
        }
        (_, SearchLocations::Named(_)) => format!(
            "found no run to decide on in {paths}; name files of runs, journals or transcripts \
             (`.jsonl`, `.jsonl.gz`), directories of them, or sessions"
        ),
    }
}

/// The tools of a client by its id. Another client has tools that are not known here.
fn tools_of_client(client: &str) -> AdapterTools {
    find_client(client).map(|client| client.dialect.tools().known()).unwrap_or_default()
}
