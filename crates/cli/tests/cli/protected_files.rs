//! Protected files in a real workspace: whatever a call makes of them, they are
//! as they were when the answer is out.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;

use jackline_engine::{Digest, FaultKind};
use jackline_journal::Note;
use serde_json::{Value, json};

use crate::support::World;
use crate::words::{
    all_words, finish, message, prompt, propose, run, started, stop, tell, tell_one, words,
};

const SOURCE: &str = "version: 1\n";
const SETTINGS: &str = r#"{ "hooks": {} }"#;

/// A workspace with a definition and a client's settings, in which a call that
/// nobody can look into has just begun.
struct Workshop {
    world: World,
}

impl Workshop {
    fn open() -> Self {
        let world = World::new(SOURCE);
        fs::create_dir(world.work().join(".claude")).unwrap();
        fs::write(world.work().join(".claude/settings.json"), SETTINGS).unwrap();
        let workshop = Self { world };
        assert_eq!(all_words(&tell(&workshop.world, "s", &[started()])), ["allow"]);
        workshop.begin("c");
        workshop
    }

    fn begin(&self, call: &str) {
        assert_eq!(words(&tell_one(&self.world, "s", run(call, "./build.sh"))), "allow");
    }

    fn path(&self, name: &str) -> PathBuf {
        self.world.work().join(name)
    }

    fn text(&self, name: &str) -> String {
        assert!(fs::symlink_metadata(self.path(name)).unwrap().is_file());
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn mode(&self, name: &str) -> u32 {
        self.path(name).metadata().unwrap().permissions().mode() & 0o7777
    }

    /// What is kept of something.
    fn has_blob(&self, bytes: &[u8]) -> bool {
        self.world.home().join("blobs").join(Digest::of(bytes).to_string()).exists()
    }

    /// Ends the call, which is blamed for what became of a file.
    fn blamed(&self, name: &str) -> Value {
        let verdict = tell_one(&self.world, "s", finish("c"));
        assert_eq!(words(&verdict), "pause changed_during_call");
        assert_eq!(
            message(&verdict),
            format!("`{name}` was changed while a call was under way; it is given back as it was")
        );
        assert_eq!(verdict["violations"][0]["location"], name);
        verdict
    }

    /// What the record of the latest event says about a file.
    fn given_back(&self) -> (String, Option<Digest>) {
        match self.world.records("s").pop().unwrap().notes.as_slice() {
            [Note::GivenBack { path, kept }] => (path.clone(), *kept),
            other => panic!("{other:?}"),
        }
    }

    /// The session waits for a person, goes on with them, and nothing is blamed
    /// twice.
    fn goes_on(&self) {
        let verdicts = tell(&self.world, "s", &[run("d", "ls"), stop()]);
        assert_eq!(verdicts[0]["decision"], "pause");
        assert_eq!(verdicts[1]["completion"]["result"], "unverified");
        let verdicts = tell(&self.world, "s", &[prompt(), run("e", "ls"), finish("e"), stop()]);
        assert_eq!(all_words(&verdicts), ["allow"; 4]);
        self.world.prove("s");
    }
}

#[test]
fn a_changed_definition_comes_back_and_the_change_is_kept() {
    let shop = Workshop::open();
    fs::write(shop.path("jackline.yaml"), "mode: observe\n").unwrap();
    shop.blamed("jackline.yaml");
    assert_eq!(shop.text("jackline.yaml"), SOURCE);
    assert!(shop.has_blob(b"mode: observe\n"));
    let kept = Digest::of(b"mode: observe\n");
    assert_eq!(shop.given_back(), ("jackline.yaml".to_owned(), Some(kept)));
    let log = shop.world.jackline(&["log", "s"]).stdout;
    let note =
        format!("`jackline.yaml` was given back as it was; what was there is kept as blob {kept}");
    assert!(log.contains(&note), "{log}");
    shop.goes_on();
}

#[test]
fn a_clients_settings_come_back_with_their_mode() {
    let shop = Workshop::open();
    let settings = shop.path(".claude/settings.json");
    fs::set_permissions(&settings, Permissions::from_mode(0o640)).unwrap();
    fs::write(&settings, "{}").unwrap();
    shop.blamed(".claude/settings.json");
    assert_eq!(shop.text(".claude/settings.json"), SETTINGS);
    assert_eq!(shop.mode(".claude/settings.json"), 0o640);
    assert!(shop.has_blob(b"{}"));
    shop.goes_on();
}

#[test]
fn both_of_two_changed_files_come_back() {
    let shop = Workshop::open();
    fs::write(shop.path("jackline.yaml"), "mode: observe\n").unwrap();
    fs::remove_dir_all(shop.path(".claude")).unwrap();
    let verdict = tell_one(&shop.world, "s", finish("c"));
    assert_eq!(words(&verdict), "pause changed_during_call changed_during_call");
    assert_eq!(shop.text("jackline.yaml"), SOURCE);
    assert_eq!(shop.text(".claude/settings.json"), SETTINGS);
    shop.goes_on();
}

#[test]
fn a_deleted_definition_comes_back() {
    let shop = Workshop::open();
    fs::remove_file(shop.path("jackline.yaml")).unwrap();
    shop.blamed("jackline.yaml");
    assert_eq!(shop.text("jackline.yaml"), SOURCE);
    assert_eq!(shop.given_back(), ("jackline.yaml".to_owned(), None));
    shop.goes_on();
}

#[test]
fn a_link_in_its_place_is_replaced_and_what_it_leads_to_is_left_alone() {
    let shop = Workshop::open();
    let elsewhere = shop.world.root().join("elsewhere.yaml");
    fs::write(&elsewhere, "mode: observe\n").unwrap();
    fs::remove_file(shop.path("jackline.yaml")).unwrap();
    symlink(&elsewhere, shop.path("jackline.yaml")).unwrap();
    shop.blamed("jackline.yaml");
    assert_eq!(shop.text("jackline.yaml"), SOURCE);
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "mode: observe\n");
    assert!(shop.has_blob(elsewhere.to_str().unwrap().as_bytes()));
    shop.goes_on();
}

/// Even one with the same contents: it could be turned later.
#[test]
fn a_link_to_a_copy_is_replaced_too() {
    let shop = Workshop::open();
    fs::rename(shop.path("jackline.yaml"), shop.path("copy")).unwrap();
    symlink("copy", shop.path("jackline.yaml")).unwrap();
    shop.blamed("jackline.yaml");
    assert_eq!(shop.text("jackline.yaml"), SOURCE);
    shop.goes_on();
}

#[test]
fn a_directory_in_its_place_is_put_aside() {
    let shop = Workshop::open();
    fs::remove_file(shop.path("jackline.yaml")).unwrap();
    fs::create_dir(shop.path("jackline.yaml")).unwrap();
    fs::write(shop.path("jackline.yaml/work"), "of an hour").unwrap();
    shop.blamed("jackline.yaml");
    assert_eq!(shop.text("jackline.yaml"), SOURCE);
    assert_eq!(shop.text("jackline.yaml.replaced-1/work"), "of an hour");
    shop.goes_on();
}

#[test]
fn a_pipe_in_its_place_is_not_waited_for() {
    let shop = Workshop::open();
    fs::remove_file(shop.path("jackline.yaml")).unwrap();
    assert!(Command::new("mkfifo").arg(shop.path("jackline.yaml")).status().unwrap().success());
    shop.blamed("jackline.yaml");
    assert_eq!(shop.text("jackline.yaml"), SOURCE);
    shop.goes_on();
}

#[test]
fn settings_that_a_call_made_are_taken_away_and_kept() {
    let shop = Workshop::open();
    fs::create_dir(shop.path(".gemini")).unwrap();
    fs::write(shop.path(".gemini/settings.json"), "new").unwrap();
    shop.blamed(".gemini/settings.json");
    assert!(!shop.path(".gemini/settings.json").exists());
    assert!(shop.has_blob(b"new"));
    shop.goes_on();
}

#[test]
fn a_change_shows_at_whatever_comes_next() {
    for next in [run("d", "ls"), stop(), prompt(), started()] {
        let shop = Workshop::open();
        fs::write(shop.path("jackline.yaml"), "mode: observe\n").unwrap();
        let verdict = tell_one(&shop.world, "s", next);
        assert!(words(&verdict).contains("changed_during_call"), "{verdict}");
        assert_eq!(shop.text("jackline.yaml"), SOURCE);
        shop.world.prove("s");
    }
}

#[test]
fn a_person_may_change_what_they_like_between_calls() {
    let shop = Workshop::open();
    tell_one(&shop.world, "s", finish("c"));
    let change = |text: &str| fs::write(shop.path(".claude/settings.json"), text).unwrap();
    change("{ \"theirs\": 1 }");
    fs::write(shop.path("jackline.yaml"), "limits: { steps: 9 }\n").unwrap();
    assert_eq!(all_words(&tell(&shop.world, "s", &[prompt()])), ["allow"]);
    // From now on it is theirs that is given back.
    shop.begin("d");
    change("{}");
    let verdict = tell_one(&shop.world, "s", finish("d"));
    assert_eq!(words(&verdict), "pause changed_during_call");
    assert_eq!(shop.text(".claude/settings.json"), "{ \"theirs\": 1 }");
    assert_eq!(shop.text("jackline.yaml"), "limits: { steps: 9 }\n");
    shop.goes_on();
}

#[test]
fn a_change_while_the_agent_only_reads_is_a_persons() {
    let world = World::new(SOURCE);
    let read = json!({"file_path": "jackline.yaml"});
    tell(&world, "s", &[started(), propose("r", "Read", &read)]);
    fs::write(world.work().join("jackline.yaml"), "limits: { steps: 9 }\n").unwrap();
    assert_eq!(words(&tell_one(&world, "s", finish("r"))), "allow");
    assert_eq!(
        fs::read_to_string(world.work().join("jackline.yaml")).unwrap(),
        "limits: { steps: 9 }\n"
    );
    world.prove("s");
}

/// Nothing is written through a directory that became a link, and the record
/// says that the file is not as it was.
#[test]
fn what_cannot_be_given_back_is_written_down() {
    let shop = Workshop::open();
    let moved = shop.world.root().join("moved");
    fs::rename(shop.path(".claude"), &moved).unwrap();
    symlink(&moved, shop.path(".claude")).unwrap();
    fs::write(moved.join("settings.json"), "{}").unwrap();
    shop.blamed(".claude/settings.json");
    assert_eq!(fs::read_to_string(moved.join("settings.json")).unwrap(), "{}");
    match shop.world.records("s").pop().unwrap().notes.as_slice() {
        [Note::Fault { kind, reason }] => {
            assert_eq!(*kind, FaultKind::Protected);
            let link = shop.path(".claude").display().to_string();
            assert_eq!(
                reason,
                &format!(
                    "can't give `.claude/settings.json` back: `{link}` is a link now, and leads \
                     elsewhere"
                )
            );
        }
        other => panic!("{other:?}"),
    }
    shop.world.prove("s");
}

/// The real thing: a program that looks harmless.
#[test]
fn a_script_that_ran_in_between_changed_nothing() {
    let shop = Workshop::open();
    let script = "sed -i s/1/2/ jackline.yaml; rm -r .claude; ln -s /tmp .cursor; \
                  mkdir -p .gemini; echo {} > .gemini/settings.json";
    let status = shop.world.command("sh").args(["-c", script]).status().unwrap();
    assert!(status.success());
    let verdict = tell_one(&shop.world, "s", finish("c"));
    assert_eq!(verdict["violations"].as_array().unwrap().len(), 3, "{verdict}");
    assert_eq!(shop.text("jackline.yaml"), SOURCE);
    assert_eq!(shop.text(".claude/settings.json"), SETTINGS);
    assert!(!shop.path(".gemini/settings.json").exists());
    shop.goes_on();
}
