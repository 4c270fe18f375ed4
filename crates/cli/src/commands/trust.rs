//! `jackline trust`: a person trusts a repository's definition.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use jackline_engine::Digest;
use jackline_host::{TrustGrant, TrustStore};
use jackline_runtime::definitions::{DefinitionError, EffectiveDefinition, find_file, load_file};
use serde_json::json;

use super::check::print_diagnostics;
use super::person::require_person;
use super::trust_demands::{TrustDemands, give_trust};
use crate::args::TrustArgs;
use crate::exit::ExitKind;
use crate::terminal::{
    bold, confirm, current_directory, dim, fail, format_age, machine_definitions, open_store,
    print_json_line, print_line, print_table, sanitize, state_documents,
};

/// The maximum length of a shown line from a file.
const LINE_MAX: usize = 400;

pub(crate) fn run(args: &TrustArgs) -> ExitKind {
    let store = match open_store() {
        Ok(store) => store,
        Err(exit) => return exit,
    };
    let trust = TrustStore::of(state_documents(&store));
    if args.list {
        return list(&trust, args.json);
    }
    let Some(file) = args.file.clone().or_else(|| find_file(&current_directory())) else {
        return fail(ExitKind::Usage, DefinitionError::NotFound(current_directory()));
    };
    if args.revoke {
        return revoke(&trust, &file);
    }
    if let Err(exit) = require_person("trust") {
        return exit;
    }
    match machine_definitions(None, &store).effective(Some(&file), &current_directory()) {
        Ok(effective) => grant(&trust, &effective, &file, args.yes),
        Err(DefinitionError::Invalid(diagnostics)) => print_diagnostics(&diagnostics),
        Err(error) => fail(ExitKind::Usage, error),
    }
}

fn list(trust: &TrustStore, as_json: bool) -> ExitKind {
    let grants = trust.list();
    if as_json {
        for grant in &grants {
            let current = is_current(grant);
            print_json_line(json!({
                "file": grant.file, "checksum": grant.checksum, "at": grant.at, "by": grant.by,
                "current": current,
            }));
        }
        return ExitKind::Success;
    }
    if grants.is_empty() {
        print_line(
            "no definition is trusted; `jackline trust` trusts the definition of this workspace",
        );
    }
    let rows: Vec<Vec<String>> = grants
        .iter()
        .map(|grant| {
            let state = if is_current(grant) { "trusted" } else { "changed since, not trusted" };
            vec![
                sanitize(&grant.file, LINE_MAX),
                state.to_owned(),
                dim(format!("{} by {}", format_age(grant.at), sanitize(&grant.by, 40))),
            ]
        })
        .collect();
    print_table(&rows);
    ExitKind::Success
}

/// Whether the file is unchanged since it was trusted.
fn is_current(grant: &TrustGrant) -> bool {
    load_file(Path::new(&grant.file)).is_ok_and(|(_, checksum)| checksum == grant.checksum)
}

fn revoke(trust: &TrustStore, file: &Path) -> ExitKind {
    // Trust in a missing file can be revoked, too.
    let path = file.canonicalize().or_else(|_| std::path::absolute(file));
    let path = path.unwrap_or_else(|_| file.to_owned());
    let name = sanitize(&path.display().to_string(), LINE_MAX);
    match trust.revoke(&path) {
        Ok(true) => {
            print_line(format!("`{name}` is no longer trusted; this applies to new sessions"));
        }
        Ok(false) => print_line(format!("`{name}` was not trusted")),
        Err(error) => return fail(ExitKind::Broken, format!("{error}; {}", error.remedy())),
    }
    ExitKind::Success
}

fn grant(trust: &TrustStore, effective: &EffectiveDefinition, file: &Path, yes: bool) -> ExitKind {
    let Some((path, checksum)) = effective.repository() else {
        let name = file.display();
        print_line(format!("`{name}` is not the definition of a repository, so it needs no trust"));
        return ExitKind::Success;
    };
    let name = sanitize(&path.display().to_string(), LINE_MAX);
    if effective.trusted {
        print_line(format!("`{name}` is already trusted"));
        return ExitKind::Success;
    }
    describe(effective, &name, &checksum);
    if !yes && !io::stdin().is_terminal() {
        let text = "no terminal to confirm in; check the list above, then pass --yes";
        return fail(ExitKind::Usage, text);
    }
    if !yes && !confirm("Trust it?") {
        print_line("nothing was changed");
        return ExitKind::No;
    }
    give_trust(trust, &path, checksum, &name)
}

/// Prints what trust would allow the file to do.
fn describe(effective: &EffectiveDefinition, name: &str, checksum: &Digest) {
    print_line(bold(name));
    print_line(dim(format!("  checksum {checksum}")));
    TrustDemands::of(effective).print();
}
