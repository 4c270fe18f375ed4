//! `jackline backtest`: what a definition would have done to what agents did in
//! the past: sessions of one's own, guarded or not, and recorded runs of others.

mod files;
mod format;
mod play;
mod pool;
mod progress;
mod report;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use jackline_analysis::{Backtest, Memo};
use jackline_clients::find_client;
use jackline_definition::FILE_NAME;
use jackline_engine::{Definition, Place};
use jackline_host::clock::now;
use jackline_host::environment::home;
use jackline_host::{HostAccess, state_home};
use jackline_runtime::Definitions;
use jackline_runtime::definitions::DefinitionError;

use crate::args::BacktestArgs;
use crate::exit::Exit;
use crate::terminal::{complain, fail, here, plain, warn};
use files::{File, Places, Unreadable, find, readable_clients};
use play::{Intake, Part, Shop};
use progress::Progress;
use report::Report;

/// What is in force where nobody has written a definition: what `init` would
/// write, enforced.
const DEFAULT: &str = "extends: [coding-agent]";

/// How much of a warning is shown.
const WARNING_MAX: usize = 2000;

/// How many files and lines that can't be read are named.
const NAMED_MAX: usize = 20;

pub(crate) fn run(args: &BacktestArgs) -> Exit {
    // A backtrace is nothing that helps; the error says what broke.
    std::panic::set_hook(Box::new(|_| {}));
    backtest(args).unwrap_or_else(|exit| exit)
}

fn backtest(args: &BacktestArgs) -> Result<Exit, Exit> {
    let began = now().boot_ms;
    let since = args.since.as_deref().map(since).transpose()?;
    let places = places(args)?;
    let mut found = find(&places, since);
    let intake = Intake::default();
    let mut source = String::new();
    let open = || {
        let (definition, from) = definition(args)?;
        source = from;
        let shown = |path: PathBuf| path.display().to_string();
        let place = Place {
            home: home().map(shown),
            state_home: state_home().ok().map(shown),
            ..Place::default()
        };
        Ok(Shop {
            intake: &intake,
            backtest: Backtest::new(&definition, place),
            memo: Memo::default(),
            as_json: args.json,
            calls: AtomicU64::new(0),
        })
    };
    let mut report = Report::default();
    let mut complaints = Complaints::default();
    let total = found.files.iter().map(|file| file.bytes).sum();
    let mut progress = Progress::new(total, args.json, began);
    let files = std::mem::take(&mut found.files);
    let any = !files.is_empty();
    found.unreadable.iter().for_each(|unreadable| complaints.unreadable(unreadable));
    let each = |part: Part| {
        let _ = std::io::stdout().lock().write_all(part.json.as_bytes());
        report.merge(part.report);
        part.broken.iter().for_each(|line| complaints.lines.push(|| broken(line)));
        if let Some((file, error)) = part.unreadable {
            let (path, named) = (file.path.clone(), file.named);
            complaints.unreadable(&Unreadable { path, error, named });
        }
    };
    pool::play(&intake, files, open, each, |shop| progress.show(shop))?;
    progress.clear();
    complaints.say();
    if report.faults > 0 {
        return Ok(Exit::Broken);
    }
    if report.sessions == 0 {
        let text = nothing(&places, any, found.older, args.since.as_deref());
        return Err(fail(Exit::Usage, text));
    }
    if !args.json {
        report.show(&source, now().boot_ms.saturating_sub(began));
    }
    Ok(if complaints.is_bad() { Exit::Usage } else { Exit::Fine })
}

/// What could not be read.
#[derive(Default)]
struct Complaints {
    /// Files that somebody meant.
    files: Few,
    /// Lines of files.
    lines: Few,
    /// What just lay there, and is no bad input.
    passed: Few,
}

/// The first of many.
#[derive(Default)]
struct Few {
    texts: Vec<String>,
    more: u64,
}

impl Few {
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

impl Complaints {
    fn unreadable(&mut self, unreadable: &Unreadable) {
        let few = if unreadable.named { &mut self.files } else { &mut self.passed };
        few.push(|| {
            let path = plain(&unreadable.path.display().to_string(), 200);
            format!("can't read `{path}`: {}", plain(&unreadable.error, 200))
        });
    }

    fn is_bad(&self) -> bool {
        !self.files.texts.is_empty() || !self.lines.texts.is_empty()
    }

    /// A file that is damaged explains why its lines are.
    fn say(&self) {
        self.passed.say(|text| warn(text));
        self.files.say(|text| complain(text));
        self.lines.say(|text| complain(text));
    }
}

/// A line that can't be read.
fn broken((file, number, error): &(Arc<File>, u64, String)) -> String {
    let path = plain(&file.path.display().to_string(), 200);
    format!("{path}:{number}: {}", plain(error, 200))
}

/// Where to look.
fn places(args: &BacktestArgs) -> Result<Places, Exit> {
    if !args.paths.is_empty() {
        return Ok(Places::Named(args.paths.clone()));
    }
    if !args.mine {
        let text = format!(
            "say what to decide again: --mine for your own past sessions of {}, or files of runs, \
             journals and transcripts, directories of them, or the names of sessions (`jackline \
             status --all` lists them)",
            readable_clients()
        );
        return Err(fail(Exit::Usage, text));
    }
    let client = find_client(&args.client);
    let transcripts = client.and_then(|client| Some((client, client.transcripts?)));
    let Some((client, transcripts)) = transcripts else {
        let (client, known) = (plain(&args.client, 40), readable_clients());
        let text =
            format!("no transcripts of `{client}` can be read; --mine reads those of {known}");
        return Err(fail(Exit::Usage, text));
    };
    transcripts.directory().map(|directory| Places::Own(client, directory)).ok_or_else(|| {
        let (title, variables) = (client.title, transcripts.variables());
        let text = format!(
            "can't tell where {title} keeps its transcripts: set {variables}, or name files"
        );
        fail(Exit::Usage, text)
    })
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
    let host = HostAccess::of_machine(state_home().ok().as_deref());
    let definitions = Definitions::new(args.definition.clone(), host).only_looking();
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

/// Says where nothing was found.
fn nothing(places: &Places, any: bool, older: usize, since: Option<&str>) -> String {
    let paths = places.paths().iter().map(|place| format!("`{}`", place.display()));
    let paths = plain(&paths.collect::<Vec<_>>().join(", "), WARNING_MAX);
    match (since, places) {
        (Some(since), _) if older > 0 => format!(
            "nothing in {paths} was written to in the last {since}; {older} are older: leave \
             --since away"
        ),
        (_, Places::Own(client, _)) if !any => format!(
            "no transcripts of {} in {paths}; if they are elsewhere, name the files or their \
             directory",
            client.title
        ),
        (_, Places::Own(client, _)) => format!(
            "nothing in {paths} is a transcript of {}; name the `.jsonl` files that it writes",
            client.title
        ),
        (_, Places::Named(_)) => format!(
            "there is no run to decide again in {paths}; name files of runs, journals, transcripts \
             (`.jsonl`, `.jsonl.gz`), directories of them, or sessions"
        ),
    }
}
