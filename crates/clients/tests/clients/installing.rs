//! Tests what the installer and the doctor need from a client, with the toy client.

use jackline_clients::hook_line::quote_shell_word;
use jackline_clients::installation::InstallScope;
use jackline_setup::doctor::{CheckStatus, check_installation};

use crate::toy::TOY;

#[test]
fn hooks_are_added_to_settings_and_removed_again() {
    let toy = TOY.installation;
    let others = "call mine\n";
    let hooks = toy.hooks_for(toy.tested_version(), &quote_shell_word("/opt/my tools/jackline"));
    let installed = toy.add_hooks(others, &hooks).unwrap();
    assert_eq!(toy.add_hooks(&installed, &hooks).as_ref(), Ok(&installed));
    let own = toy.own_hooks(&installed);
    assert_eq!(own.len(), hooks.len());
    let programs = own.iter().map(|(_, handler)| toy.program_of(handler).unwrap());
    assert!(programs.into_iter().all(|program| program == "/opt/my tools/jackline"));
    assert_eq!(toy.remove_hooks(&installed, None).as_deref(), Ok(others));
}

#[test]
fn the_doctor_finds_missing_and_disabled_hooks() {
    let toy = TOY.installation;
    let project = tempfile::tempdir().unwrap();
    let file = toy.settings_file(project.path(), InstallScope::Shared).unwrap();
    let hooks = toy.hooks_for(toy.tested_version(), "jackline-not-here");
    let good = toy.add_hooks("", &hooks).unwrap();
    let open = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let files = [file.clone()];
        let lines = check_installation(&TOY, &files, &files, toy.tested_version(), "1.0.0");
        let open = lines.into_iter().filter(|line| line.status == CheckStatus::Open);
        open.map(|line| (line.name, line.detail)).collect::<Vec<_>>()
    };
    let missing = "the program of the guard has this version";
    assert_eq!(open(&good).first().map(|(name, _)| *name), Some(missing));
    let off = open(&format!("{good}off\n"));
    assert!(off.iter().any(|(_, detail)| detail.contains("`off` is true")), "{off:?}");
    let partly = open(good.trim_start_matches("start ").split_once('\n').unwrap().1);
    assert!(partly.iter().any(|(_, detail)| detail.contains("differ: start")), "{partly:?}");
    let none = open("");
    assert!(none.iter().any(|(_, detail)| detail.contains("`jackline init toy`")), "{none:?}");
}
