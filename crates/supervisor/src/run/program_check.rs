//! Checks before a run whether its agent programs can be started with the task.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use jackline_host::environment::named_variable;
use jackline_host::worker::WorkerProgram;
use jackline_workspace::shell::COMMAND_BYTES_MAX;

use super::{RunError, RunOptions};
use crate::engines::{EngineKind, EngineSpec};
use crate::worker::shell_quoted;

/// Reserved bytes for text besides the task: the state of the work, and why a stop was refused.
const EXTRA_TEXT_BYTES: usize = 16 << 10;

/// Fails if an agent program or its prompt can't be used. Models always pass.
pub(super) fn check_startable(
    engine: &EngineSpec,
    opening: &RunOptions,
    prompt: &str,
) -> Result<(), RunError> {
    if !engine.is_worker() {
        return Ok(());
    }
    let label = || engine.label.clone();
    let words = engine.command_line().unwrap_or_default();
    let path = || named_variable("PATH");
    let found = match (words.first(), &engine.kind) {
        (Some(program), _) => find_program(program, &opening.workspace, path().as_deref()),
        (None, EngineKind::Client { client, .. }) => {
            opening.worker(client).and_then(WorkerProgram::check_installed)
        }
        (None, _) => Ok(()),
    };
    found.map_err(|reason| RunError::Program { label: label(), reason })?;
    if words.iter().any(|word| word.contains('\0')) {
        let reason = "its command line contains a NUL byte".to_owned();
        return Err(RunError::Program { label: label(), reason });
    }
    if prompt.contains('\0') {
        let reason = "it contains a NUL byte".to_owned();
        return Err(RunError::Prompt { label: label(), reason });
    }
    let bytes: usize = words.iter().map(|word| shell_quoted(word).len() + 1).sum();
    let most = COMMAND_BYTES_MAX.saturating_sub(EXTRA_TEXT_BYTES + bytes);
    let long = shell_quoted(prompt).len();
    if long > most {
        let reason = format!(
            "it has {long} bytes, and a command line has room for {most}; write the prompt to a file of the \
             workspace, and use a prompt that names the file"
        );
        return Err(RunError::Prompt { label: label(), reason });
    }
    Ok(())
}

/// Finds a program in the same places as the shell that starts it in the workspace.
fn find_program(program: &str, workspace: &Path, path: Option<&str>) -> Result<(), String> {
    if program.contains('/') {
        let file = workspace.join(program);
        return match classify_file(&file) {
            ProgramFile::Program => Ok(()),
            ProgramFile::File => Err(format!("`{}` is not executable", file.display())),
            ProgramFile::Directory => Err(format!("`{}` is a directory", file.display())),
            ProgramFile::Missing => Err(format!(
                "program `{}` does not exist; a relative path starts at the workspace",
                file.display()
            )),
        };
    }
    // Without `PATH` the shell uses directories of its own.
    let Some(path) = path else { return Ok(()) };
    let mut seen = path.split(':').map(|directory| workspace.join(directory).join(program));
    if seen.any(|file| classify_file(&file) == ProgramFile::Program) {
        return Ok(());
    }
    Err(format!("program `{program}` is not in PATH; a program in the workspace is `./{program}`"))
}

#[derive(PartialEq, Eq)]
enum ProgramFile {
    Program,
    File,
    Directory,
    Missing,
}

fn classify_file(file: &Path) -> ProgramFile {
    match file.metadata() {
        Ok(it) if it.is_file() && it.permissions().mode() & 0o111 != 0 => ProgramFile::Program,
        Ok(it) if it.is_dir() => ProgramFile::Directory,
        Ok(_) => ProgramFile::File,
        Err(_) => ProgramFile::Missing,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_program_is_found_only_in_the_workspace_or_in_path() {
        let dir = tempfile::tempdir().unwrap();
        let (work, bin) = (dir.path().join("work"), dir.path().join("bin"));
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
        let found = |program: &str| find_program(program, &work, Some(&path));
        for program in ["./own", "there", "../bin/there"] {
            assert_eq!(found(program), Ok(()), "{program}");
        }
        let absolute = bin.join("there").display().to_string();
        assert_eq!(found(&absolute), Ok(()));
        for (program, part) in [
            ("own", "in PATH"),
            ("dull", "in PATH"),
            ("./there", "at the workspace"),
            ("./plain", "is not executable"),
            (".", "in PATH"),
            ("../bin", "is a directory"),
        ] {
            let wrong = found(program).unwrap_err();
            assert!(wrong.contains(part), "{program}: {wrong}");
        }
        assert_eq!(find_program("any", &work, None), Ok(()), "the shell has default directories");
    }
}
