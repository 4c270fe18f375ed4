//! `jackline enforce` and `jackline observe`: change which rules are enforced.
//!
//! The definition is written by a person, so these commands change only one word or add one line,
//! and only if the changed file loads and has the requested mode.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use jackline_definition::yaml_file_reader::FILE_BYTES_MAX;
use jackline_definition::{DemandStatus, EditError, LoadedDefinition, set_mode, words};
use jackline_engine::definition::Rule;
use jackline_engine::{Definition, Mode, nearest_name};
use jackline_host::{read_regular, state_home};
use jackline_runtime::definitions::{DefinitionError, EffectiveDefinition};
use jackline_runtime::{load_source, vouch_for};

use super::check::print_diagnostics;
use super::open_sessions::print_open_sessions;
use super::person::require_person;
use super::{find_definition, is_user_definition};
use crate::args::ModesArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, current_directory, fail, machine_definitions, open_store, paint_added, paint_removed,
    print_line, print_warning, sanitize,
};

/// The maximum length of a shown line from a file.
const LINE_MAX: usize = 400;

/// How many names are listed.
const NAMES_MAX: usize = 5;

pub(crate) fn enforce(args: &ModesArgs) -> ExitKind {
    run(args, Mode::Enforce)
}

/// Only a person may run it, because it lets more calls run.
pub(crate) fn observe(args: &ModesArgs) -> ExitKind {
    match require_person("observe") {
        Ok(()) => run(args, Mode::Observe),
        Err(exit) => exit,
    }
}

fn run(args: &ModesArgs, mode: Mode) -> ExitKind {
    let Some(named) = args.definition.clone().or_else(find_definition) else {
        return fail(ExitKind::Usage, DefinitionError::NotFound(current_directory()));
    };
    match change_mode(&named, args, mode) {
        Ok(()) => ExitKind::Success,
        Err(exit) => exit,
    }
}

fn change_mode(named: &Path, args: &ModesArgs, mode: Mode) -> Result<(), ExitKind> {
    // If the file is a symbolic link, its target is changed and the link stays.
    let unreadable = |source| fail(ExitKind::Usage, unreadable(named, source));
    let file = named.canonicalize().map_err(unreadable)?;
    let bytes = read_regular(&file, FILE_BYTES_MAX).map_err(unreadable)?;
    let before = load(&bytes, named)?;
    let Ok(source) = String::from_utf8(bytes) else {
        return Err(fail(ExitKind::Usage, format!("`{}` is not UTF-8", display_path(named))));
    };
    for name in &args.names {
        check_name_in_force(name, &before.definition)
            .map_err(|text| fail(ExitKind::Usage, text))?;
    }
    let changed = edit_source(&source, &args.names, mode).map_err(|error| {
        fail(ExitKind::No, format!("`{}` was not changed: {error}", display_path(named)))
    })?;
    if changed == source {
        print_line(format!("`{}` already has this mode", display_path(named)));
        print_exceptions(&args.names, &before.definition, mode);
        return Ok(());
    }
    let after = load(changed.as_bytes(), named)?;
    if let Some(problem) = unexpected_result(&args.names, &after.definition, mode) {
        let text = format!("`{}` was not changed: {problem}", display_path(named));
        return Err(fail(ExitKind::No, text));
    }
    print_line(bold(display_path(named)));
    print_difference(&source, &changed);
    if args.dry_run {
        print_line("nothing was written");
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
        fail(
            ExitKind::Usage,
            format!("can't write `{}`: {error}; nothing was changed", display_path(named)),
        )
    })?;
    print_exceptions(&args.names, &after.definition, mode);
    print_effects(named, &file, trusted);
    Ok(())
}

fn unreadable(path: &Path, source: io::Error) -> DefinitionError {
    DefinitionError::Unreadable { path: path.to_owned(), source }
}

fn load(source: &[u8], file: &Path) -> Result<LoadedDefinition, ExitKind> {
    load_source(source, file).map_err(|error| match error {
        DefinitionError::Invalid(diagnostics) => print_diagnostics(&diagnostics),
        other => fail(ExitKind::Usage, other),
    })
}

fn edit_source(source: &str, names: &[String], mode: Mode) -> Result<String, EditError> {
    if names.is_empty() {
        return set_mode(source, None, mode);
    }
    names.iter().try_fold(source.to_owned(), |text, name| set_mode(&text, Some(name), mode))
}

/// The origin of the rules in a pack with this name.
fn pack(name: &str) -> Option<String> {
    name.strip_prefix("pack/").map(|pack| format!("pack {pack}"))
}

fn matches_name(name: &str, rule: &Rule) -> bool {
    rule.name == name || pack(name).is_some_and(|origin| rule.origin == origin)
}

/// Checks that a name refers to a rule or a pack in force.
fn check_name_in_force(name: &str, definition: &Definition) -> Result<(), String> {
    if definition.rules.iter().any(|rule| matches_name(name, rule)) {
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
    let similar = same.map(String::as_str);
    let similar =
        similar.or_else(|| nearest_name(name, rules.chain(packs.iter().map(String::as_str))));
    let hint = similar.map_or_else(
        || match name {
            "loops" => "to enforce the loop guard, add `loops: {}` to the file".to_owned(),
            _ => "`jackline check --details` lists the rules in force".to_owned(),
        },
        |similar| format!("did you mean `{}`?", sanitize(similar, LINE_MAX)),
    );
    Err(format!(
        "no rule or pack with the name `{}` is in force here; {hint}",
        sanitize(name, LINE_MAX)
    ))
}

/// The reason why the changed file would not have the requested mode; `None` if it would.
fn unexpected_result(names: &[String], definition: &Definition, mode: Mode) -> Option<String> {
    if names.is_empty() && definition.mode != mode {
        return Some(format!("its mode would still be {}", words::mode(definition.mode)));
    }
    let is_unchanged = |name: &&String| {
        let mut matching = definition.rules.iter().filter(|rule| matches_name(name, rule));
        !matching.any(|rule| rule.mode == mode)
    };
    let name = names.iter().find(is_unchanged)?;
    Some(format!("another setting or layer decides the mode of `{}`", sanitize(name, LINE_MAX)))
}

/// Prints the matching rules that keep another mode, because they have a mode by name.
fn print_exceptions(names: &[String], definition: &Definition, mode: Mode) {
    let others: Vec<String> = definition
        .rules
        .iter()
        .filter(|rule| names.is_empty() || names.iter().any(|name| matches_name(name, rule)))
        .filter(|rule| rule.mode != mode)
        .map(|rule| format!("`{}`", sanitize(&rule.name, LINE_MAX)))
        .collect();
    let (Some(listed), word) = (others.get(..others.len().min(NAMES_MAX)), opposite(mode)) else {
        return;
    };
    let more = others.len() - listed.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    if !others.is_empty() {
        print_line(format!("still {word}, by name: {}{more}", listed.join(", ")));
    }
}

fn opposite(mode: Mode) -> &'static str {
    match mode {
        Mode::Enforce => "observed",
        Mode::Observe => "enforced",
    }
}

/// Prints the lines that differ.
fn print_difference(before: &str, after: &str) {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = |(a, b): &(&&str, &&str)| a == b;
    let head = old.iter().zip(&new).take_while(same).count();
    let tail_max = old.len().min(new.len()) - head;
    let tail = old.iter().rev().zip(new.iter().rev()).take(tail_max).take_while(same).count();
    for line in old.get(head..old.len() - tail).unwrap_or_default() {
        print_line(paint_removed(format!("  - {}", sanitize(line, LINE_MAX))));
    }
    for line in new.get(head..new.len() - tail).unwrap_or_default() {
        print_line(paint_added(format!("  + {}", sanitize(line, LINE_MAX))));
    }
}

/// Replaces a file atomically and keeps its permissions.
fn replace(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let permissions = fs::metadata(file)?.permissions();
    if permissions.readonly() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
    }
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let temporary = file.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = (|| {
        let mut new =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
        new.write_all(bytes)?;
        new.set_permissions(fs::Permissions::from_mode(permissions.mode()))?;
        new.sync_all()?;
        fs::rename(&temporary, file)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// The combination of a file with the other layers.
fn effective(file: &Path) -> Option<EffectiveDefinition> {
    let store = open_store().ok()?;
    let definitions = machine_definitions(None, &store).read_only();
    definitions.effective(Some(file), &current_directory()).ok()
}

fn print_effects(named: &Path, file: &Path, trusted: bool) {
    let effective = effective(named);
    let ignored = effective.iter().flat_map(|entry| &entry.combined.decisions);
    for line in ignored.filter(|line| line.text.starts_with("`mode")) {
        if let DemandStatus::Ignored { why, .. } = &line.status {
            print_warning(format!("{} is ignored here: {}", line.text, sanitize(why, LINE_MAX)));
        }
    }
    if trusted && effective.is_some_and(|now| !now.trusted) {
        print_warning(
            "the change ended the trust in this file; run `jackline trust` to trust it again",
        );
    }
    if is_user_definition(named) {
        print_line("this is your own definition, which applies to all your projects");
    }
    print_line(
        "this applies to new sessions; a session that you continue changes with `jackline reload`",
    );
    print_open_sessions(file);
}

fn display_path(file: &Path) -> String {
    let here = current_directory();
    let relative: PathBuf = file.strip_prefix(&here).unwrap_or(file).to_owned();
    sanitize(&relative.display().to_string(), LINE_MAX)
}
