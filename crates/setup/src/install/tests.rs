//! Whatever people's files look like, they get them back.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use any_settings::any_settings;

#[path = "../../../clients/src/claude/settings/any_settings.rs"]
mod any_settings;

struct Place {
    root: TempDir,
}

impl Place {
    fn with(text: &[u8]) -> Self {
        let place = Self { root: tempfile::tempdir().unwrap() };
        fs::create_dir_all(place.file().parent().unwrap()).unwrap();
        fs::write(place.file(), text).unwrap();
        place
    }

    fn file(&self) -> PathBuf {
        self.root.path().join("work/.claude/settings.local.json")
    }

    fn wish(&self) -> Wish {
        Wish {
            clients: vec![&jackline_clients::claude::CLIENT],
            scope: Scope::Local,
            here: self.root.path().join("work"),
            jackline: PathBuf::from("/opt/jackline"),
            client_program: Some(PathBuf::from("/nowhere/claude")),
            state_home: self.root.path().join("state"),
            remote: Remote::None,
            reaches: |_, _| Ok(()),
        }
    }

    /// Installs, or takes out; how many files changed.
    fn run(&self, work_out: fn(&Wish) -> Result<Plan, InstallError>) -> usize {
        let plan = work_out(&self.wish()).unwrap();
        carry_out(&plan, &self.wish().state_home).unwrap().len()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_settings_come_back_byte_for_byte(text in any_settings()) {
        let place = Place::with(text.as_bytes());
        prop_assume!(plan(&place.wish()).is_ok());
        prop_assert_eq!(place.run(plan), 2);
        let once = fs::read(place.file()).unwrap();
        prop_assert_eq!(place.run(plan), 0);
        prop_assert_eq!(fs::read(place.file()).unwrap(), once);
        prop_assert_eq!(place.run(plan_removal), 2);
        prop_assert_eq!(fs::read(place.file()).unwrap(), text.as_bytes());
        prop_assert_eq!(place.run(plan_removal), 0);
    }
}

#[test]
fn a_file_that_changed_after_the_plan_is_not_written() {
    let place = Place::with(b"{}");
    let late = plan(&place.wish()).unwrap();
    fs::write(place.file(), "{ \"a\": 1 }").unwrap();
    let refused = carry_out(&late, &place.wish().state_home);
    assert!(matches!(refused, Err(InstallError::Changed { .. })), "{refused:?}");
    assert_eq!(fs::read(place.file()).unwrap(), b"{ \"a\": 1 }");
    assert!(!place.root.path().join("work/jackline.yaml").exists(), "not even the other file");
}

#[test]
fn a_backup_that_was_tampered_with_or_lost_leaves_the_file_to_its_text() {
    for spoil in [|path: &Path| fs::remove_file(path), |path: &Path| fs::write(path, "{}")] {
        let place = Place::with(b"{ \"a\": 1 }");
        place.run(plan);
        let backups = fs::read_dir(place.root.path().join("state/backups")).unwrap();
        backups.for_each(|backup| spoil(&backup.unwrap().path()).unwrap());
        place.run(plan_removal);
        let text = fs::read_to_string(place.file()).unwrap();
        assert!(!text.contains("jackline") && text.contains("\"a\": 1"), "{text}");
    }
}

#[test]
fn what_we_made_alone_goes_even_if_a_client_wrote_it_anew() {
    let place = Place::with(b"");
    fs::remove_dir_all(place.file().parent().unwrap()).unwrap();
    place.run(plan);
    let text = fs::read_to_string(place.file()).unwrap();
    fs::write(place.file(), text.replace("  ", "\t")).unwrap();
    place.run(plan_removal);
    assert!(!place.file().parent().unwrap().exists());
}
