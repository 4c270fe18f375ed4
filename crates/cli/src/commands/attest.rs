//! `jackline attest`: signs a statement about a session, so that others can check it.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jackline_analysis::JournalAccount;
use jackline_evidence::{DsseEnvelope, KeyError, SigningKey, Statement, WorkspaceCommit};
use jackline_host::read_regular;
use jackline_journal::{FileStore, create_directory, write_private};
use jackline_runtime::commit_of;

use super::{hand_out, select};
use crate::args::AttestArgs;
use crate::exit::ExitKind;
use crate::status_label::stop_code_label;
use crate::terminal::{
    current_directory, fail, load_sessions, open_journal, print_line, print_note, print_warning,
};

/// The name of the private key file, in `keys` of the state home.
const PRIVATE_KEY_FILE: &str = "attest.ed25519";

/// The maximum size of a key file.
const KEY_BYTES_MAX: u64 = 64 << 10;

/// The name of the public key file in the same directory.
pub(super) const PUBLIC_KEY_FILE: &str = "attest.pub";

pub(crate) fn run(args: &AttestArgs) -> ExitKind {
    let result = if args.new_key { create_key(args) } else { attest(args) };
    result.map_or_else(|exit| exit, |()| ExitKind::Success)
}

/// The default path of a key file.
pub(super) fn key_file(store: &FileStore, name: &str) -> PathBuf {
    store.home().join("keys").join(name)
}

/// Reads a key. The error tells how to create one.
pub(super) fn read_key<T>(
    file: &Path,
    option: &str,
    parse: impl Fn(&str) -> Result<T, KeyError>,
) -> Result<T, ExitKind> {
    let unusable = |error: &dyn std::fmt::Display| {
        let text = format!(
            "can't use the key `{}`: {error}; choose another key with {option}, or create one with \
             `jackline attest --new-key`",
            file.display()
        );
        fail(ExitKind::Usage, text)
    };
    let bytes = read_regular(file, KEY_BYTES_MAX).map_err(|error| unusable(&error))?;
    let text = String::from_utf8(bytes).map_err(|error| unusable(&error))?;
    parse(&text).map_err(|error| unusable(&error))
}

fn create_key(args: &AttestArgs) -> Result<(), ExitKind> {
    let (store, _) = load_sessions()?;
    let private = match &args.key {
        Some(file) => current_directory().join(file),
        None => key_file(&store, PRIVATE_KEY_FILE),
    };
    let public = private.with_extension("pub");
    let broken = |error: &dyn std::fmt::Display| {
        fail(ExitKind::Broken, format!("can't create a key: {error}"))
    };
    let mut seed = [0; 32];
    let random = File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut seed));
    random.map_err(|error| broken(&error))?;
    let key = SigningKey::from_seed(&seed);
    create_directory(private.parent().unwrap_or(Path::new("/"))).map_err(|error| broken(&error))?;
    // An existing key is never overwritten: its signatures could no longer be checked.
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&private).map_err(
            |error| {
                let text = format!("can't create the key `{}`: {error}", private.display());
                fail(
                    ExitKind::No,
                    format!("{text}; move the old key away, or choose another path with --key"),
                )
            },
        )?;
    let written = file.write_all(key.render().as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|error| broken(&error))?;
    write_private(&public, key.public().render().as_bytes()).map_err(|error| broken(&error))?;
    print_line(format!("private key `{}`", private.display()));
    print_line(format!("public key  `{}`", public.display()));
    print_line(format!("key id      {}", key.public().id()));
    Ok(())
}

fn attest(args: &AttestArgs) -> Result<(), ExitKind> {
    let (store, sessions) = load_sessions()?;
    let entry = select(&sessions, args.session.as_deref())?;
    let file = args.key.clone().unwrap_or_else(|| key_file(&store, PRIVATE_KEY_FILE));
    let key = read_key(&file, "--key", SigningKey::parse)?;
    let account = open_journal(&entry)
        .map_err(Into::into)
        .and_then(|journal| JournalAccount::from_journal(&journal))
        .map_err(|error| {
            fail(ExitKind::No, format!("{}: {error}; {}", entry.name, error.remedy()))
        })?;
    let workspace = account.opening.place.workspace.as_deref().map(Path::new);
    let commit = workspace.filter(|it| it.is_dir()).and_then(commit_of);
    let commit = commit.map(|(id, uncommitted)| WorkspaceCommit { id, uncommitted });
    match &commit {
        Some(WorkspaceCommit { uncommitted: false, .. }) => {}
        Some(_) => {
            print_warning(
                "the workspace has uncommitted changes or files; the statement records this",
            );
        }
        None => {
            print_warning("git reports no commit for the workspace; the statement contains none");
        }
    }
    let statement = Statement::new(&account, commit.as_ref());
    let text = DsseEnvelope::sign(&statement.render(), &key).render();
    let out = args.out.as_deref();
    if !hand_out(&text, out)? {
        return Ok(());
    }
    let stop = statement.predicate().stop_code();
    let status = stop.map_or_else(|| "not finished yet".to_owned(), stop_code_label);
    let about = statement.commit().map_or_else(String::new, |commit| format!(", commit {commit}"));
    print_note(format!(
        "{}: {status}{about}; written to `{}`",
        entry.name,
        out.unwrap_or(Path::new("-")).display()
    ));
    Ok(())
}
