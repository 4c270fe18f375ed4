//! `jackline enforce` and `jackline observe`: what holds, and what is on trial.
//!
//! The definition is a person's file. One word of it is changed, or a line
//! added, and only where the result loads and means what was asked for.

use jackline_journal::SessionEntry;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jackline_definition::{EditError, Loaded, Standing, set_mode, words};
use jackline_engine::definition::Rule;
use jackline_engine::{Definition, Mode, nearest};
use jackline_host::state_home;
use jackline_runtime::definitions::{DefinitionError, Effective, find_file};
use jackline_runtime::{inspect, load_source, vouch_for};

use super::check::refuse;
use super::person::may_open;
use crate::args::ModesArgs;
use crate::exit::Exit;
use crate::terminal::{
    ago, bold, definitions, dim, fail, here, paint_added, paint_removed, plain, say, sessions,
    store, warn,
};

/// How much of a line from a file is shown.
const LINE_MAX: usize = 400;

/// How many sessions are looked at for the definition they have.
const SESSIONS_MAX: usize = 20;

/// How many names are listed.
const NAMES_MAX: usize = 5;

pub(crate) fn enforce(args: &ModesArgs) -> Exit {
    run(args, Mode::Enforce)
}

/// What lets the agent do more is for people.
pub(crate) fn observe(args: &ModesArgs) -> Exit {
    match may_open("observe") {
        Ok(()) => run(args, Mode::Observe),
        Err(exit) => exit,
    }
}

fn run(args: &ModesArgs, mode: Mode) -> Exit {
    let Some(named) = args.definition.clone().or_else(|| find_file(&here())) else {
        return fail(Exit::Usage, DefinitionError::NotFound(here()));
    };
    match change(&named, args, mode) {
        Ok(()) => Exit::Fine,
        Err(exit) => exit,
    }
}

fn change(named: &Path, args: &ModesArgs, mode: Mode) -> Result<(), Exit> {
    // What a link leads to is changed, and the link stays.
    let unreadable = |source| fail(Exit::Usage, unreadable(named, source));
    let file = named.canonicalize().map_err(unreadable)?;
    let bytes = fs::read(&file).map_err(unreadable)?;
    let before = load(&bytes, named)?;
    let Ok(source) = String::from_utf8(bytes) else {
        return Err(fail(Exit::Usage, format!("`{}` is not UTF-8", shown(named))));
    };
    for name in &args.names {
        is_known(name, &before.definition).map_err(|text| fail(Exit::Usage, text))?;
    }
    let changed = edited(&source, &args.names, mode)
        .map_err(|error| fail(Exit::No, format!("`{}` was not changed: {error}", shown(named))))?;
    if changed == source {
        say(format!("`{}` says so already", shown(named)));
        say_others(&args.names, &before.definition, mode);
        return Ok(());
    }
    let after = load(changed.as_bytes(), named)?;
    if let Some(other) = other_meaning(&args.names, &after.definition, mode) {
        let text = format!("`{}` was not changed: {other}", shown(named));
        return Err(fail(Exit::No, text));
    }
    say(bold(shown(named)));
    difference(&source, &changed);
    if args.dry_run {
        say("nothing was written");
        return Ok(());
    }
    let trusted = effective(named).is_some_and(|effective| effective.trusted);
    if let Ok(home) = state_home() {
        let name = std::path::absolute(named).ok().filter(|name| *name != file);
        for path in name.iter().chain([&file]) {
            vouch_for(&home, path, changed.as_bytes());
        }
    }
    replace(&file, changed.as_bytes()).map_err(|error| {
        fail(Exit::Usage, format!("can't write `{}`: {error}; nothing was changed", shown(named)))
    })?;
    say_others(&args.names, &after.definition, mode);
    say_what_becomes_of_it(named, &file, trusted);
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> DefinitionError {
    DefinitionError::Unreadable { path: path.to_owned(), source }
}

fn load(source: &[u8], file: &Path) -> Result<Loaded, Exit> {
    load_source(source, file).map_err(|error| match error {
        DefinitionError::Invalid(diagnostics) => refuse(&diagnostics),
        other => fail(Exit::Usage, other),
    })
}

fn edited(source: &str, names: &[String], mode: Mode) -> Result<String, EditError> {
    if names.is_empty() {
        return set_mode(source, None, mode);
    }
    names.iter().try_fold(source.to_owned(), |text, name| set_mode(&text, Some(name), mode))
}

/// The pack that a name stands for.
fn pack(name: &str) -> Option<String> {
    name.strip_prefix("pack/").map(|pack| format!("pack {pack}"))
}

fn is_meant(name: &str, rule: &Rule) -> bool {
    rule.name == name || pack(name).is_some_and(|origin| rule.origin == origin)
}

/// A name has to mean something that is in force.
fn is_known(name: &str, definition: &Definition) -> Result<(), String> {
    if definition.rules.iter().any(|rule| is_meant(name, rule)) {
        return Ok(());
    }
    let packs: Vec<String> = definition
        .rules
        .iter()
        .filter_map(|rule| rule.origin.strip_prefix("pack "))
        .map(|pack| format!("pack/{pack}"))
        .collect();
    let rules = definition.rules.iter().map(|rule| rule.name.as_str());
    let same = packs.iter().find(|pack| pack.strip_prefix("pack/") == Some(name));
    let meant = same.map(String::as_str);
    let meant = meant.or_else(|| nearest(name, rules.chain(packs.iter().map(String::as_str))));
    let hint = meant.map_or_else(
        || match name {
            "loops" => "the loop guard holds where the file says `loops: {}`".to_owned(),
            _ => "`jackline check` lists the rules that are in force".to_owned(),
        },
        |meant| format!("did you mean `{}`?", plain(meant, LINE_MAX)),
    );
    Err(format!("no rule and no pack named `{}` is in force here; {hint}", plain(name, LINE_MAX)))
}

/// What the changed file says instead of what was asked for.
fn other_meaning(names: &[String], definition: &Definition, mode: Mode) -> Option<String> {
    if names.is_empty() && definition.mode != mode {
        return Some(format!("its mode would be {} all the same", words::mode(definition.mode)));
    }
    let stays = |name: &&String| {
        let mut meant = definition.rules.iter().filter(|rule| is_meant(name, rule));
        !meant.any(|rule| rule.mode == mode)
    };
    let name = names.iter().find(stays)?;
    Some(format!("something else decides on the mode of `{}`", plain(name, LINE_MAX)))
}

/// Rules that were meant with others, and have a mode by their own name.
fn say_others(names: &[String], definition: &Definition, mode: Mode) {
    let others: Vec<String> = definition
        .rules
        .iter()
        .filter(|rule| names.is_empty() || names.iter().any(|name| is_meant(name, rule)))
        .filter(|rule| rule.mode != mode)
        .map(|rule| format!("`{}`", plain(&rule.name, LINE_MAX)))
        .collect();
    let (Some(listed), word) = (others.get(..others.len().min(NAMES_MAX)), opposite(mode)) else {
        return;
    };
    let more = others.len() - listed.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !others.is_empty() {
        say(format!("still {word} by name: {}{more}", listed.join(", ")));
    }
}

fn opposite(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "observed",
        Mode::Observe => "enforced",
    }
}

/// The lines that differ.
fn difference(before: &str, after: &str) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(same).count();
    for line in old.get(head..old.len() - tail).unwrap_or_default() {
        say(paint_removed(format!("  - {}", plain(line, LINE_MAX))));
    }
    for line in new.get(head..new.len() - tail).unwrap_or_default() {
        say(paint_added(format!("  + {}", plain(line, LINE_MAX))));
    }
}

/// Puts a file in the place of another, as a whole and with its permissions.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let permissions = fs::metadata(file)?.permissions();
    if permissions.readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let unnamed = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unnamed)?;
        new.write_all(bytes)?;
        new.set_permissions(fs::Permissions::from_mode(permissions.mode()))?;
        new.sync_all()?;
        fs::rename(&unnamed, file)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&unnamed);
    }
    written
}

/// What is in force with a file, beside what other layers say.
fn effective(file: &Path) -> Option<Effective> {
    let store = store().ok()?;
    let definitions = definitions(None, &store).only_looking();
    definitions.effective(Some(file), &here()).ok()
}

fn say_what_becomes_of_it(named: &Path, file: &Path, trusted: bool) {
    let effective = effective(named);
    let ignored = effective.iter().flat_map(|found| &found.combined.decisions);
    for line in ignored.filter(|line| line.text.starts_with("`mode")) {
        if let Standing::Ignored { why, .. } = &line.standing {
            warn(format!("{} is ignored here: {}", line.text, plain(why, LINE_MAX)));
        }
    }
    if trusted && effective.is_some_and(|now| !now.trusted) {
        warn("the file was trusted as it was; `jackline trust` trusts it as it is now");
    }
    say("that applies to sessions that start from now on");
    for session in open_sessions(file) {
        let (name, when) = (&session.name, dim(format!("({})", session.when)));
        say(format!("session `{name}` {when} still has the old one: `jackline reload {name}`"));
    }
}

/// A session that is not over.
struct Open {
    name: String,
    /// When it last moved.
    when: String,
}

/// Sessions that have the file and are not over.
fn open_sessions(file: &Path) -> Vec<Open> {
    let Ok((store, sessions)) = sessions() else { return Vec::new() };
    let open = |found: SessionEntry| {
        let session = inspect(&store, &found).ok()?;
        let has_it = session.place().definition.iter().any(|at| Path::new(at) == file);
        let is_open = has_it && session.summary().is_open();
        is_open.then(|| Open {
            name: plain(&found.name, 40),
            when: found.modified.map(ago).unwrap_or_default(),
        })
    };
    let latest = sessions.list().unwrap_or_default().into_iter().take(SESSIONS_MAX);
    latest.filter_map(open).collect()
}

fn shown(file: &Path) -> String {
    let here = here();
    let relative: PathBuf = file.strip_prefix(&here).unwrap_or(file).to_owned();
    plain(&relative.display().to_string(), LINE_MAX)
}
