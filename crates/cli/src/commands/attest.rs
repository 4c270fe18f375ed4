//! `jackline attest`: signs what a session did, so that others can check it.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use jackline_analysis::Account;
use jackline_evidence::{Commit, Envelope, KeyError, SigningKey, Statement};
use jackline_journal::{FileStore, create_directory, write_private};
use jackline_runtime::commit_of;

use super::{hand_out, select};
use crate::args::AttestArgs;
use crate::exit::Exit;
use crate::terminal::{fail, here, note, open_journal, say, sessions, warn};

/// The file of the private key, in `keys` of the state home.
const PRIVATE: &str = "attest.ed25519";

/// The file of the public key beside it.
pub(super) const PUBLIC: &str = "attest.pub";

pub(crate) fn run(args: &AttestArgs) -> Exit {
    let done = if args.new_key { new_key(args) } else { attest(args) };
    done.map_or_else(|exit| exit, |()| Exit::Fine)
}

/// Where a key is unless somebody says otherwise.
pub(super) fn key_file(store: &FileStore, name: &str) -> PathBuf {
    store.home().join("keys").join(name)
}

/// Reads a key, or says what to do without one.
pub(super) fn read_key<T>(
    file: &Path,
    option: &str,
    parse: impl Fn(&str) -> Result<T, KeyError>,
) -> Result<T, Exit> {
    let unusable = |error: &dyn std::fmt::Display| {
        let text = format!(
            "can't use the key `{}`: {error}; name another with {option}, or make one with `jackline \
             attest --new-key`",
            file.display()
        );
        fail(Exit::Usage, text)
    };
    let text = fs::read_to_string(file).map_err(|error| unusable(&error))?;
    parse(&text).map_err(|error| unusable(&error))
}

fn new_key(args: &AttestArgs) -> Result<(), Exit> {
    let (store, _) = sessions()?;
    let private = match &args.key {
        Some(file) => here().join(file),
        None => key_file(&store, PRIVATE),
    };
    let public = private.with_extension("pub");
    let broken =
        |error: &dyn std::fmt::Display| fail(Exit::Broken, format!("no key was made: {error}"));
    let mut seed = [0; 32];
    let random = File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut seed));
    random.map_err(|error| broken(&error))?;
    let key = SigningKey::from_seed(&seed);
    create_directory(private.parent().unwrap_or(Path::new("/"))).map_err(|error| broken(&error))?;
    // Never over another one: what it has signed could not be checked any more.
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(&private).map_err(
            |error| {
                let text = format!("no key was made: `{}`: {error}", private.display());
                fail(Exit::No, format!("{text}; move the old one away, or name another with --key"))
            },
        )?;
    let written = file.write_all(key.render().as_bytes()).and_then(|()| file.sync_all());
    written.map_err(|error| broken(&error))?;
    write_private(&public, key.public().render().as_bytes()).map_err(|error| broken(&error))?;
    say(format!("private key `{}`", private.display()));
    say(format!("public key  `{}`", public.display()));
    say(format!("key id      {}", key.public().id()));
    Ok(())
}

fn attest(args: &AttestArgs) -> Result<(), Exit> {
    let (store, sessions) = sessions()?;
    let found = select(&sessions, args.session.as_deref())?;
    let file = args.key.clone().unwrap_or_else(|| key_file(&store, PRIVATE));
    let key = read_key(&file, "--key", SigningKey::parse)?;
    let account = open_journal(&found)
        .map_err(Into::into)
        .and_then(|journal| Account::of(&journal))
        .map_err(|error| fail(Exit::No, format!("{}: {error}; {}", found.name, error.remedy())))?;
    let workspace = account.opened.place.workspace.as_deref().map(Path::new);
    let commit = workspace.filter(|it| it.is_dir()).and_then(commit_of);
    let commit = commit.map(|(id, uncommitted)| Commit { id, uncommitted });
    match &commit {
        Some(Commit { uncommitted: false, .. }) => {}
        Some(_) => {
            warn(
                "files of the workspace are not as in its commit, or not in it; the statement says so",
            );
        }
        None => warn("git names no commit of the workspace; the statement is about none"),
    }
    let statement = Statement::new(&account, commit.as_ref());
    let text = Envelope::sign(&statement.render(), &key).render();
    let out = args.out.as_deref();
    if !hand_out(&text, out)? {
        return Ok(());
    }
    let code = statement.predicate().stop_code().unwrap_or("no stop code yet");
    let about = statement.commit().map_or_else(String::new, |commit| format!(", commit {commit}"));
    note(format!(
        "{}: {code}{about}; written to `{}`",
        found.name,
        out.unwrap_or(Path::new("-")).display()
    ));
    Ok(())
}
