//! What the installer and the doctor need from a client, asked of the toy.

use jackline_clients::hook_line::shell_word;
use jackline_clients::installation::Scope;
use jackline_setup::doctor::{Standing, inspect};

use crate::toy::TOY;

#[test]
fn hooks_come_into_settings_and_out_again() {
    let toy = TOY.installation;
    let others = "call mine\n";
    let hooks = toy.hooks_for(toy.tried_version(), &shell_word("/opt/my tools/jackline"));
    let installed = toy.add(others, &hooks).unwrap();
    assert_eq!(toy.add(&installed, &hooks).as_ref(), Ok(&installed));
    let own = toy.own_hooks(&installed);
    assert_eq!(own.len(), hooks.len());
    let programs = own.iter().map(|(_, handler)| toy.program_of(handler).unwrap());
    assert!(programs.into_iter().all(|program| program == "/opt/my tools/jackline"));
    assert_eq!(toy.remove(&installed, None).as_deref(), Ok(others));
}

#[test]
fn the_doctor_finds_what_is_missing_and_what_is_switched_off() {
    let toy = TOY.installation;
    let project = tempfile::tempdir().unwrap();
    let file = toy.settings_file(project.path(), Scope::Project).unwrap();
    let hooks = toy.hooks_for(toy.tried_version(), "jackline-not-here");
    let good = toy.add("", &hooks).unwrap();
    let open = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let files = [file.clone()];
        let lines = inspect(&TOY, &files, &files, toy.tried_version(), "1.0.0");
        let open = lines.into_iter().filter(|line| line.standing == Standing::Open);
        open.map(|line| (line.name, line.detail)).collect::<Vec<_>>()
    };
    let missing = "its program is there, in this version";
    assert_eq!(open(&good).first().map(|(name, _)| *name), Some(missing));
    let off = open(&format!("{good}off\n"));
    assert!(off.iter().any(|(_, detail)| detail.contains("`off` is true")), "{off:?}");
    let partly = open(good.trim_start_matches("start ").split_once('\n').unwrap().1);
    assert!(partly.iter().any(|(_, detail)| detail.contains("differ: start")), "{partly:?}");
    let none = open("");
    assert!(none.iter().any(|(_, detail)| detail.contains("`jackline init toy`")), "{none:?}");
}
