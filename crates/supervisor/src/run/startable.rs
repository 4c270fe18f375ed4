//! Whether an agent program can be started with its task, said before anything is done.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jackline_host::environment::named_variable;
use jackline_host::worker::WorkerProgram;
use jackline_workspace::shell::COMMAND_BYTES_MAX;

use super::{Opening, RunError};
use crate::engines::{EngineKind, EngineSpec};
use crate::worker::quoted;

/// Room for what a program is told besides its task: how far it is, and why a stop was refused.
const BESIDES_BYTES: usize = 16 << 10;

/// Says what is in the way of a program, or of its task; nothing of a model.
pub(super) fn check(engine: &EngineSpec, opening: &Opening, prompt: &str) -> Result<(), RunError> {
    if !engine.is_worker() {
        return Ok(());
    }
    let label = || engine.label.clone();
    let words = engine.command_line().unwrap_or_default();
    let path = || named_variable("PATH");
    let found = match (words.first(), &engine.kind) {
        (Some(program), _) => find(program, &opening.workspace, path().as_deref()),
        (None, EngineKind::Client { client, .. }) => {
            opening.worker(client).and_then(WorkerProgram::find)
        }
        (None, _) => Ok(()),
    };
    found.map_err(|reason| RunError::Program { label: label(), reason })?;
    if words.iter().any(|word| word.contains('\0')) {
        let reason = "its command line holds a NUL byte".to_owned();
        return Err(RunError::Program { label: label(), reason });
    }
    if prompt.contains('\0') {
        let reason = "it holds a NUL byte".to_owned();
        return Err(RunError::Prompt { label: label(), reason });
    }
    let bytes: usize = words.iter().map(|word| quoted(word).len() + 1).sum();
    let most = COMMAND_BYTES_MAX.saturating_sub(BESIDES_BYTES + bytes);
    let long = quoted(prompt).len();
    if long > most {
        let reason = format!(
            "it has {long} bytes, and {most} at most go on a command line with what is told besides; write it to \
             a file of the workspace, and have the prompt name that"
        );
        return Err(RunError::Prompt { label: label(), reason });
    }
    Ok(())
}

/// Looks for a program as the shell does that starts it in the workspace.
fn find(program: &str, workspace: &Path, path: Option<&str>) -> Result<(), String> {
    if program.contains('/') {
        let file = workspace.join(program);
        return match look(&file) {
            Seen::Program => Ok(()),
            Seen::File => Err(format!("`{}` is not executable", file.display())),
            Seen::Directory => Err(format!("`{}` is a directory", file.display())),
            Seen::Nothing => Err(format!(
                "there is no program `{}`; a relative one is looked for in the workspace",
                file.display()
            )),
        };
    }
    // Without one the shell has directories of its own.
    let Some(path) = path else { return Ok(()) };
    let mut seen = path.split(':').map(|directory| workspace.join(directory).join(program));
    if seen.any(|file| look(&file) == Seen::Program) {
        return Ok(());
    }
    Err(format!("there is no program `{program}` in PATH; one of the workspace is `./{program}`"))
}

#[derive(PartialEq, Eq)]
enum Seen {
    Program,
    File,
    Directory,
    Nothing,
}

fn look(file: &Path) -> Seen {
    match file.metadata() {
        Ok(it) if it.is_file() && it.permissions().mode() & 0o111 != 0 => Seen::Program,
        Ok(it) if it.is_dir() => Seen::Directory,
        Ok(_) => Seen::File,
        Err(_) => Seen::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_is_found_in_the_workspace_or_in_path_and_nowhere_else() {
        let place = tempfile::tempdir().unwrap();
        let (work, bin) = (place.path().join("work"), place.path().join("bin"));
        for directory in [&work, &bin] {
            fs::create_dir(directory).unwrap();
        }
        let put = |file: &Path, mode: u32| {
            fs::write(file, "").unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        };
        put(&work.join("own"), 0o755);
        put(&work.join("plain"), 0o644);
        put(&bin.join("there"), 0o755);
        put(&bin.join("dull"), 0o644);
        let path = format!("/nowhere:{}", bin.display());
        let found = |program: &str| find(program, &work, Some(&path));
        for program in ["./own", "there", "../bin/there"] {
            assert_eq!(found(program), Ok(()), "{program}");
        }
        let absolute = bin.join("there").display().to_string();
        assert_eq!(found(&absolute), Ok(()));
        for (program, part) in [
            ("own", "in PATH"),
            ("dull", "in PATH"),
            ("./there", "in the workspace"),
            ("./plain", "is not executable"),
            (".", "in PATH"),
            ("../bin", "is a directory"),
        ] {
            let wrong = found(program).unwrap_err();
            assert!(wrong.contains(part), "{program}: {wrong}");
        }
        assert_eq!(find("any", &work, None), Ok(()), "the shell knows where");
    }
}
