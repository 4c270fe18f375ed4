//! Tests that every file of a person can be restored.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use any_settings::any_settings;

#[path = "../../../clients/src/claude/settings/any_settings.rs"]
mod any_settings;

struct TestProject {
    root: TempDir,
}

impl TestProject {
    fn with_settings(text: &[u8]) -> Self {
        let project = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(project.file().parent().unwrap()).unwrap();
        fs::write(project.file(), text).unwrap();
        project
    }

    fn file(&self) -> PathBuf {
        self.root.path().join("work/.claude/settings.local.json")
    }

    fn request(&self) -> InstallRequest {
        InstallRequest {
            clients: vec![&jackline_clients::claude::CLIENT],
            scope: InstallScope::Local,
            role: None,
            directory: self.root.path().join("work"),
            guard_program: PathBuf::from("/opt/jackline"),
            client_program: Some(PathBuf::from("/nowhere/claude")),
            state_home: self.root.path().join("state"),
            remote_servers: RemoteSelection::None,
            can_connect: |_, _| Ok(()),
        }
    }

    /// Installs or removes the guard. Returns the number of changed files.
    fn apply(&self, make_plan: fn(&InstallRequest) -> Result<InstallPlan, InstallError>) -> usize {
        let plan = make_plan(&self.request()).unwrap();
        apply_plan(&plan, &self.request().state_home).unwrap().len()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_settings_are_restored_byte_for_byte(text in any_settings()) {
        let project = TestProject::with_settings(text.as_bytes());
        prop_assume!(plan(&project.request()).is_ok());
        prop_assert_eq!(project.apply(plan), 2);
        let once = fs::read(project.file()).unwrap();
        prop_assert_eq!(project.apply(plan), 0);
        prop_assert_eq!(fs::read(project.file()).unwrap(), once);
        prop_assert_eq!(project.apply(plan_removal), 2);
        prop_assert_eq!(fs::read(project.file()).unwrap(), text.as_bytes());
        prop_assert_eq!(project.apply(plan_removal), 0);
    }
}

#[test]
fn a_file_that_changed_after_the_plan_is_not_written() {
    let project = TestProject::with_settings(b"{}");
    let late = plan(&project.request()).unwrap();
    fs::write(project.file(), "{ \"a\": 1 }").unwrap();
    let result = apply_plan(&late, &project.request().state_home);
    assert!(matches!(result, Err(InstallError::Changed { .. })), "{result:?}");
    assert_eq!(fs::read(project.file()).unwrap(), b"{ \"a\": 1 }");
    assert!(
        !project.root.path().join("work/jackline.yaml").exists(),
        "the other file is not written either"
    );
}

#[test]
fn without_a_valid_backup_only_our_entries_are_removed() {
    for damage in [|path: &Path| fs::remove_file(path), |path: &Path| fs::write(path, "{}")] {
        let project = TestProject::with_settings(b"{ \"a\": 1 }");
        project.apply(plan);
        let backups = fs::read_dir(project.root.path().join("state/backups")).unwrap();
        backups.for_each(|backup| damage(&backup.unwrap().path()).unwrap());
        project.apply(plan_removal);
        let text = fs::read_to_string(project.file()).unwrap();
        assert!(!text.contains("jackline") && text.contains("\"a\": 1"), "{text}");
    }
}

#[test]
fn a_file_with_only_our_hooks_is_removed_even_if_a_client_rewrote_it() {
    let project = TestProject::with_settings(b"");
    fs::remove_dir_all(project.file().parent().unwrap()).unwrap();
    project.apply(plan);
    let text = fs::read_to_string(project.file()).unwrap();
    fs::write(project.file(), text.replace("  ", "\t")).unwrap();
    project.apply(plan_removal);
    assert!(!project.file().parent().unwrap().exists());
}
