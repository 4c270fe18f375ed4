//! `jackline trust`: a person's word for a repository's definition.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use jackline_definition::{Standing, words};
use jackline_engine::Digest;
use jackline_engine::definition::Checker;
use jackline_host::clock::now;
use jackline_host::environment::person;
use jackline_host::{Grant, Trust};
use jackline_runtime::definitions::{DefinitionError, Effective, find_file, load_file};
use serde_json::json;

use super::check::refuse;
use super::person::may_open;
use crate::args::TrustArgs;
use crate::exit::Exit;
use crate::terminal::{
    ago, ask, bold, definitions, dim, fail, here, plain, say, say_json, state_documents, store,
    table,
};

/// How much of a line from a file is shown.
const LINE_MAX: usize = 400;

pub(crate) fn run(args: &TrustArgs) -> Exit {
    let store = match store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let trust = Trust::of(state_documents(&store));
    if args.list {
        return list(&trust, args.json);
    }
    let Some(file) = args.file.clone().or_else(|| find_file(&here())) else {
        return fail(Exit::Usage, DefinitionError::NotFound(here()));
    };
    if args.revoke {
        return revoke(&trust, &file);
    }
    if let Err(exit) = may_open("trust") {
        return exit;
    }
    match definitions(None, &store).effective(Some(&file), &here()) {
        Ok(effective) => grant(&trust, &effective, &file, args.yes),
        Err(DefinitionError::Invalid(diagnostics)) => refuse(&diagnostics),
        Err(error) => fail(Exit::Usage, error),
    }
}

fn list(trust: &Trust, as_json: bool) -> Exit {
    let grants = trust.list();
    if as_json {
        for grant in &grants {
            let current = is_current(grant);
            say_json(json!({
                "file": grant.file, "checksum": grant.checksum, "at": grant.at, "by": grant.by,
                "current": current,
            }));
        }
        return Exit::Fine;
    }
    if grants.is_empty() {
        say("nothing is trusted; `jackline trust` trusts the definition of this workspace");
    }
    let rows: Vec<Vec<String>> = grants
        .iter()
        .map(|grant| {
            let standing = if is_current(grant) { "trusted" } else { "changed since, not trusted" };
            vec![
                plain(&grant.file, LINE_MAX),
                standing.to_owned(),
                dim(format!("{} by {}", ago(grant.at), plain(&grant.by, 40))),
            ]
        })
        .collect();
    table(&rows);
    Exit::Fine
}

/// Whether the file is still what was trusted.
fn is_current(grant: &Grant) -> bool {
    load_file(Path::new(&grant.file)).is_ok_and(|(_, checksum)| checksum == grant.checksum)
}

fn revoke(trust: &Trust, file: &Path) -> Exit {
    // A file that is gone can be trusted no longer, too.
    let path = file.canonicalize().or_else(|_| std::path::absolute(file));
    let path = path.unwrap_or_else(|_| file.to_owned());
    let name = plain(&path.display().to_string(), LINE_MAX);
    match trust.revoke(&path) {
        Ok(true) => say(format!("`{name}` is trusted no longer; that applies to new sessions")),
        Ok(false) => say(format!("`{name}` was not trusted")),
        Err(error) => return fail(Exit::Broken, format!("{error}; {}", error.remedy())),
    }
    Exit::Fine
}

fn grant(trust: &Trust, effective: &Effective, file: &Path, yes: bool) -> Exit {
    let Some((path, checksum)) = effective.repository() else {
        let name = file.display();
        say(format!("`{name}` is no repository's definition, and needs no trust"));
        return Exit::Fine;
    };
    let name = plain(&path.display().to_string(), LINE_MAX);
    if effective.trusted {
        say(format!("`{name}` is trusted already"));
        return Exit::Fine;
    }
    describe(effective, &name, &checksum);
    if !yes && !io::stdin().is_terminal() {
        let text = "nobody can be asked here; look at what it does, then say --yes";
        return fail(Exit::Usage, text);
    }
    if !yes && !ask("Trust it?") {
        say("nothing was changed");
        return Exit::No;
    }
    give(trust, &path, checksum, &name)
}

fn give(trust: &Trust, path: &Path, checksum: Digest, name: &str) -> Exit {
    let Some(file) = path.to_str().map(ToOwned::to_owned) else {
        return fail(Exit::Usage, format!("the path `{name}` is not UTF-8"));
    };
    let grant = Grant { checksum, file, at: now().wall, by: person() };
    match trust.grant(&grant) {
        Ok(()) => {
            say(format!("`{name}` is trusted as it is now; that applies to new sessions"));
            Exit::Fine
        }
        Err(error) => fail(Exit::Broken, format!("{error}; {}", error.remedy())),
    }
}

/// What the file would do that it may not do yet.
fn describe(effective: &Effective, name: &str, checksum: &Digest) {
    say(bold(name));
    say(dim(format!("  checksum {checksum}")));
    let completion = effective.combined.definition.completion.as_ref();
    let told = effective.combined.definition.notify.iter().filter(|told| !told.trusted);
    let commands: Vec<&str> = completion
        .map(waiting)
        .unwrap_or_default()
        .into_iter()
        .chain(told.clone().filter_map(|told| told.command.as_deref()))
        .collect();
    let posts: Vec<String> =
        told.filter_map(|told| told.webhook.as_deref().map(words::host)).collect();
    let loosens: Vec<String> = effective
        .combined
        .decisions
        .iter()
        .filter_map(|line| match &line.standing {
            Standing::Ignored { why, until_trusted: true } => Some(format!("{}: {why}", line.text)),
            _ => None,
        })
        .collect();
    if !commands.is_empty() {
        say("would run on this machine:");
        commands.iter().for_each(|line| say(format!("  `{}`", plain(line, LINE_MAX))));
    }
    if !posts.is_empty() {
        say("would post what happens to:");
        posts.iter().for_each(|host| say(format!("  {}", plain(host, LINE_MAX))));
    }
    if !loosens.is_empty() {
        say("would loosen:");
        loosens.iter().for_each(|line| say(format!("  {}", plain(line, LINE_MAX))));
    }
    if commands.is_empty() && posts.is_empty() && loosens.is_empty() {
        say("would run nothing and loosen nothing: it needs no trust as it is");
    }
}

/// The commands that wait for trust.
fn waiting(checker: &Checker) -> Vec<&str> {
    match checker {
        Checker::Command { line, trusted: false, .. } => vec![line],
        Checker::All(parts) | Checker::Any(parts) => parts.iter().flat_map(waiting).collect(),
        Checker::Command { .. } | Checker::Files(_) | Checker::Custom { .. } | Checker::Clean => {
            Vec::new()
        }
    }
}
