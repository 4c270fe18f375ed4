//! The source of a definition: layers, trust, caches, and the last good definition.

use std::fs;
use std::path::{Path, PathBuf};

use jackline_definition::encode;
use jackline_engine::definition::{BudgetLimit, LimitPeriod, SessionLimits};
use jackline_engine::facts::DefinitionFact;
use jackline_engine::{Decision, Definition, Digest, FaultKind, SessionId, Timestamp};
use jackline_host::{LayerFiles, TrustGrant, TrustStore};
use jackline_journal::{JournalNote, Store as _};
use jackline_runtime::Runtime;
use jackline_runtime::definitions::ResolvedDefinition;

use crate::support::{RuntimeTest, answer, send};

const STEPS_9: &str = "limits: { steps: 9 }\n";

/// A small value in which the layers differ.
fn steps(resolved: &ResolvedDefinition) -> Option<u64> {
    resolved.definition.limits.steps.map(|limit| limit.max)
}

fn at_most(max: u64) -> Definition {
    let steps = Some(BudgetLimit { max, soft: false, per: LimitPeriod::Session });
    Definition {
        limits: SessionLimits { steps, ..SessionLimits::default() },
        ..Definition::default()
    }
}

impl RuntimeTest {
    pub(crate) fn file(&self) -> PathBuf {
        self.workspace().join("jackline.yaml")
    }

    pub(crate) fn write(&self, source: &str) {
        fs::write(self.file(), source).unwrap();
    }

    /// The definition that a new process finds.
    fn resolve(&self) -> ResolvedDefinition {
        self.definitions().resolve(&self.workspace()).unwrap()
    }

    pub(crate) fn trust(&self) {
        let effective = self.definitions().effective(None, &self.workspace()).unwrap();
        let (file, checksum) = effective.repository().unwrap();
        let (file, by) = (file.display().to_string(), "dana".to_owned());
        let grant = TrustGrant { checksum, file, at: Timestamp::from_ms(1), by };
        TrustStore::of(self.state_home()).grant(&grant).unwrap();
    }

    /// The fact about the definition at the latest event.
    fn definition_fact(&self, session: &str) -> Option<DefinitionFact> {
        self.records(session).last().unwrap().facts.definition.clone()
    }

    /// Replaces the contents of a compiled definition, to show whether it is used.
    fn replace_compiled(&self, checksum: &Digest, definition: &Definition) {
        let definitions = self.store.home().join("definitions");
        let source = fs::read_to_string(definitions.join(format!("{checksum}.source"))).unwrap();
        let digest = Digest::parse(source.split_whitespace().last().unwrap()).unwrap();
        let path = definitions.join(format!("{digest}.compiled"));
        assert!(path.exists());
        fs::write(path, encode(definition, &digest)).unwrap();
    }

    fn cached_files(&self, end: &str) -> Vec<PathBuf> {
        let files = crate::support::files(&self.store.home().join("definitions"));
        files.into_iter().filter(|file| file.display().to_string().ends_with(end)).collect()
    }
}

fn real(path: &Path) -> String {
    path.canonicalize().unwrap().display().to_string()
}

const PROMPT: &str = r#"{"event":"prompt_submitted","source":"human","text":"go"}"#;

#[test]
fn one_plain_file_has_the_checksum_of_its_bytes() {
    let world = RuntimeTest::new(STEPS_9);
    assert_eq!(world.resolve().checksum, Digest::of(STEPS_9.as_bytes()));
}

#[test]
fn a_repository_can_only_tighten_a_users_limits() {
    let world = RuntimeTest::new(STEPS_9);
    let alone = world.resolve();
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    let below = world.resolve();
    assert_eq!((steps(&alone), steps(&below)), (Some(9), Some(5)));
    assert_ne!(alone.checksum, below.checksum);
    world.write("limits: { steps: 3 }");
    assert_eq!(steps(&world.resolve()), Some(3));
}

#[test]
fn the_managed_layer_takes_precedence() {
    let world = RuntimeTest::new(STEPS_9);
    fs::write(world.user_file(), "limits: { steps: 7 }").unwrap();
    let managed = world.workspace().join("managed.yaml");
    fs::write(&managed, "limits: { steps: 5 }").unwrap();
    let layers = || LayerFiles { managed: Some(managed.clone()), user: Some(world.user_file()) };
    let resolve = || world.definitions_under(None, layers()).resolve(&world.workspace());
    assert_eq!(steps(&resolve().unwrap()), Some(5));
    // A missing managed file must not go unnoticed.
    let other = world.workspace().join("gone.yaml");
    let layers = LayerFiles { managed: Some(other), user: None };
    let lost = world.definitions_under(None, layers).resolve(&world.workspace()).unwrap();
    assert!(lost.broken.unwrap().contains("can't read the definition"));
}

#[test]
fn a_users_definition_applies_without_a_repository_file() {
    let world = RuntimeTest::new("");
    fs::remove_file(world.file()).unwrap();
    let error = world.definitions().resolve(&world.workspace()).unwrap_err();
    assert!(error.to_string().starts_with("no `jackline.yaml` in "), "{error}");
    fs::write(world.user_file(), STEPS_9).unwrap();
    let resolved = world.resolve();
    assert_eq!(steps(&resolved), Some(9));
    assert_eq!(resolved.files, [world.user_file().canonicalize().unwrap()]);
    // Its commands may run, so its checksum differs from a repository's file with the same bytes.
    assert_ne!(resolved.checksum, Digest::of(STEPS_9.as_bytes()));
}

#[test]
fn the_same_file_is_one_layer() {
    let world = RuntimeTest::new(STEPS_9);
    let layers = LayerFiles { managed: None, user: Some(world.file()) };
    let resolved = world.definitions_under(None, layers).resolve(&world.workspace()).unwrap();
    assert_eq!(resolved.files, [world.file().canonicalize().unwrap()]);
}

#[test]
fn a_trusted_file_may_loosen_until_it_is_changed() {
    let world = RuntimeTest::new(STEPS_9);
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    let before = world.resolve();
    world.trust();
    let trusted = world.resolve();
    assert_eq!(steps(&trusted), Some(9));
    assert_ne!(before.checksum, trusted.checksum);
    world.write("limits: { steps: 90 }\n");
    assert_eq!(steps(&world.resolve()), Some(5), "a changed file needs new trust");
    world.write(STEPS_9);
    assert_eq!(steps(&world.resolve()), Some(9));
    let trust = TrustStore::of(world.state_home());
    let file = world.file().canonicalize().unwrap();
    assert!(trust.revoke(&file).unwrap());
    assert!(!trust.revoke(&file).unwrap(), "the grant is gone after the first revoke");
    assert_eq!(world.resolve().checksum, before.checksum);
}

#[test]
fn trust_covers_one_file_and_the_files_it_extends() {
    let world = RuntimeTest::new(&format!("extends: [./base.yaml]\n{STEPS_9}"));
    let base = world.workspace().join("base.yaml");
    fs::write(&base, "name: acme/base\n").unwrap();
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    world.trust();
    assert_eq!(steps(&world.resolve()), Some(9));
    fs::write(&base, "name: acme/other\n").unwrap();
    assert_eq!(steps(&world.resolve()), Some(5), "an extended file was changed");
    fs::write(&base, "name: acme/base\n").unwrap();
    assert_eq!(steps(&world.resolve()), Some(9));
    // A copy in another directory is another file.
    let elsewhere = world.workspace().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::copy(world.file(), elsewhere.join("jackline.yaml")).unwrap();
    fs::copy(&base, elsewhere.join("base.yaml")).unwrap();
    assert_eq!(steps(&world.definitions().resolve(&elsewhere).unwrap()), Some(5));
}

#[test]
fn an_unreadable_grant_grants_nothing() {
    let world = RuntimeTest::new(STEPS_9);
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    world.trust();
    let path = world.store.home().join("trust");
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().count(), 1);
    world.trust();
    assert_eq!(fs::read_to_string(&path).unwrap(), text, "trusting again changes nothing");
    fs::write(&path, format!("nonsense\n{}", text.replace("checksum", "checksome"))).unwrap();
    assert_eq!(steps(&world.resolve()), Some(5));
}

#[test]
fn a_file_that_a_person_passes_is_trusted() {
    let world = RuntimeTest::new("");
    fs::write(world.user_file(), "limits: { steps: 5, wall_seconds: 7 }").unwrap();
    let named = world.workspace().join("named.yaml");
    fs::write(&named, STEPS_9).unwrap();
    let layers = LayerFiles { managed: None, user: Some(world.user_file()) };
    let definitions = world.definitions_under(Some(named), layers);
    let resolved = definitions.resolve(&world.workspace()).unwrap();
    assert_eq!(steps(&resolved), Some(9));
    assert_eq!(
        resolved.definition.limits.wall_seconds.unwrap().max,
        7,
        "the user's layer still applies"
    );
}

#[test]
fn a_compiled_definition_is_not_parsed_again() {
    let world = RuntimeTest::new(&format!("extends: [./base.yaml]\n{STEPS_9}"));
    let base = world.workspace().join("base.yaml");
    fs::write(&base, "name: acme/base\n").unwrap();
    fs::write(world.user_file(), "limits: { wall_seconds: 5 }").unwrap();
    let first = world.resolve();
    world.replace_compiled(&first.checksum, &at_most(1));
    assert_eq!(steps(&world.resolve()), Some(1), "the compiled form is used");

    // A change of an extended file counts, even if the file itself is unchanged.
    fs::write(&base, "name: acme/other\n").unwrap();
    let second = world.resolve();
    assert_eq!(steps(&second), Some(9));
    assert_ne!(first.checksum, second.checksum);
    assert_eq!(
        second.files,
        [&world.file(), &base, &world.user_file()].map(|file| file.canonicalize().unwrap())
    );
}

#[test]
fn a_missing_or_invalid_file_list_is_created_again() {
    let world = RuntimeTest::new(&format!("extends: [./base.yaml]\n{STEPS_9}"));
    fs::write(world.workspace().join("base.yaml"), "name: acme/base\n").unwrap();
    let first = world.resolve();
    let lists = world.cached_files(".files");
    assert_eq!(lists.len(), 1);
    let good = fs::read(&lists[0]).unwrap();
    let cut = good[..good.len() - 3].to_vec();
    let shorter = b"JLFILES1\x001\0".to_vec();
    for odd in [Vec::new(), b"?".to_vec(), cut, shorter, b"JLFILES1\x000\0x\0".to_vec()] {
        fs::write(&lists[0], &odd).unwrap();
        assert_eq!(world.resolve().checksum, first.checksum, "{odd:?}");
        assert_eq!(fs::read(&lists[0]).unwrap(), good, "{odd:?}");
    }
    fs::remove_file(&lists[0]).unwrap();
    assert_eq!(world.resolve().checksum, first.checksum);
    assert_eq!(world.cached_files(".files").len(), 1);
}

#[test]
fn the_last_good_definition_stays_in_force_with_a_warning() {
    let world = RuntimeTest::new("limits: { steps: 1 }\n");
    let mut runtime = world.runtime();
    let first = answer(&mut runtime, r#"{"session":"a","event":"session_started"}"#);
    assert_eq!(first.warnings, Vec::<String>::new());

    world.write("limitz: {}\nmode: obsrve\n");
    let mut runtime = world.runtime();
    let broken = answer(&mut runtime, r#"{"session":"b","event":"session_started"}"#);
    assert_eq!(broken.verdict.decision, Decision::Allow);
    let reason = format!(
        "{}:1:1: unknown key `limitz` in the definition; did you mean `limits`? (and 1 more problem)",
        world.file().canonicalize().unwrap().display()
    );
    let warning = format!(
        "the definition does not load, and the last good one ({}) stays in force in session `b`: \
         {reason}; fix the definition (`jackline check` shows the errors)",
        Digest::of(b"limits: { steps: 1 }\n")
    );
    assert_eq!(broken.warnings, [warning.as_str()]);
    let again = answer(&mut runtime, r#"{"session":"b","event":"session_started"}"#);
    assert_eq!(again.warnings, Vec::<String>::new(), "one warning per session");
    let note = JournalNote::Fault { kind: FaultKind::Definition, reason: warning };
    assert_eq!(world.records("b")[0].notes, [note]);

    send(&mut runtime, r#"{"session":"b","event":"prompt_submitted","text":"go"}"#);
    assert_eq!(world.definition_fact("b"), Some(DefinitionFact::Broken { reason }));
    let call = r#"{"session":"b","event":"tool_proposed","call":"c","tool":"t","args":{}}"#;
    assert_eq!(send(&mut runtime, call)["decision"], "allow");
    assert_eq!(send(&mut runtime, call)["decision"], "stop", "its limit is one step");
    world.prove("b");

    // After the fix, the file is in force again.
    world.write(STEPS_9);
    assert_eq!((world.resolve().broken, steps(&world.resolve())), (None, Some(9)));
}

#[test]
fn without_a_last_good_definition_nothing_runs() {
    let world = RuntimeTest::new("limitz: {}\n");
    let mut runtime = world.runtime();
    let verdict = send(&mut runtime, r#"{"event":"session_started"}"#);
    assert_eq!(
        (&verdict["decision"], &verdict["error"]["kind"]),
        (&"deny".into(), &"definition".into())
    );
    // The last good definition of another workspace does not count.
    let other = world.workspace().join("other");
    fs::create_dir(&other).unwrap();
    fs::write(other.join("jackline.yaml"), STEPS_9).unwrap();
    world.definitions().resolve(&other).unwrap();
    assert!(world.definitions().resolve(&world.workspace()).is_err());
    // Nor does one whose compiled form is missing.
    world.write(STEPS_9);
    world.resolve();
    world.write("limitz: {}\n");
    assert_eq!(steps(&world.resolve()), Some(9));
    world.cached_files(".compiled").iter().for_each(|file| fs::remove_file(file).unwrap());
    assert!(world.definitions().resolve(&world.workspace()).is_err());
}

#[test]
fn any_broken_layer_keeps_the_whole_last_good_definition() {
    let world = RuntimeTest::new(&format!("extends: [./base.yaml]\n{STEPS_9}"));
    let base = world.workspace().join("base.yaml");
    fs::write(&base, "name: acme/base\n").unwrap();
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    let good = world.resolve();
    let broken = |what: &str| {
        let resolved = world.resolve();
        assert_eq!((resolved.checksum, steps(&resolved)), (good.checksum, Some(5)), "{what}");
        assert_eq!(resolved.files.len(), 3, "{what}");
        let instead = world.definitions().fallback_checksum(None, &world.workspace());
        assert_eq!(instead, Some(good.checksum));
        resolved.broken.unwrap()
    };
    fs::write(world.user_file(), "mode: obsrve").unwrap();
    assert!(broken("user").contains("user.yaml:1:7: `mode` can't be `obsrve`"));
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    fs::remove_file(&base).unwrap();
    let reason = broken("base");
    assert!(reason.contains("base.yaml`: No such file"), "{reason}");
    fs::write(&base, "name: acme/base\n").unwrap();
    assert_eq!(world.resolve().broken, None);
}

#[test]
fn a_last_good_definition_ends_with_its_trust() {
    let world = RuntimeTest::new(STEPS_9);
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    world.trust();
    assert_eq!(steps(&world.resolve()), Some(9));
    world.write("limitz: {}\n");
    assert_eq!(steps(&world.resolve()), Some(9));
    TrustStore::of(world.state_home()).revoke(&world.file().canonicalize().unwrap()).unwrap();
    assert!(world.definitions().resolve(&world.workspace()).is_err());
}

#[test]
fn a_passed_file_is_not_the_last_good_of_a_found_one() {
    let world = RuntimeTest::new(STEPS_9);
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    let layers = LayerFiles { managed: None, user: Some(world.user_file()) };
    let named = world.definitions_under(Some(world.file()), layers);
    assert_eq!(steps(&named.resolve(&world.workspace()).unwrap()), Some(9));
    world.write("limitz: {}\n");
    assert!(world.definitions().resolve(&world.workspace()).is_err());
    assert_eq!(steps(&named.resolve(&world.workspace()).unwrap()), Some(9));
}

#[test]
fn a_session_whose_file_was_passed_is_not_changed_for_a_program_that_finds_the_file() {
    let world = RuntimeTest::new(STEPS_9);
    let source = fs::read_to_string(world.file()).unwrap();
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    let layers = LayerFiles { managed: None, user: Some(world.user_file()) };
    let definitions = world.definitions_under(Some(world.file()), layers);
    let mut named = Runtime::new(world.store.clone(), definitions, world.workspace());
    send(&mut named, r#"{"event":"session_started"}"#);
    // A hook of the same session finds the file in the workspace.
    let mut hook = world.runtime();
    send(&mut hook, PROMPT);
    assert_eq!(world.definition_fact("s"), Some(DefinitionFact::Same));
    world.write(&format!("{source}# changed\n"));
    send(&mut hook, PROMPT);
    assert!(matches!(world.definition_fact("s"), Some(DefinitionFact::Changed { .. })));
}

#[test]
fn an_open_session_notices_changes_of_its_files() {
    let world = RuntimeTest::new(&format!("extends: [./base.yaml]\n{STEPS_9}"));
    let source = fs::read_to_string(world.file()).unwrap();
    let base = world.workspace().join("base.yaml");
    fs::write(&base, "name: acme/base\n").unwrap();
    let mut runtime = world.runtime();
    send(&mut runtime, r#"{"event":"session_started"}"#);
    let mut fact = || {
        send(&mut runtime, PROMPT);
        world.definition_fact("s").unwrap()
    };
    assert_eq!(fact(), DefinitionFact::Same);
    let broken = |fact: DefinitionFact, part: &str| match fact {
        DefinitionFact::Broken { reason } => assert!(reason.contains(part), "{reason}"),
        other => panic!("{other:?}"),
    };
    world.write("limitz: {}\n");
    broken(fact(), "unknown key `limitz`");
    broken(fact(), "unknown key `limitz`");
    world.write(&source);
    assert_eq!(fact(), DefinitionFact::Same);
    fs::write(&base, "nam: acme/base\n").unwrap();
    broken(fact(), "unknown key `nam`");
    // The extended file is valid again, and the file itself is unchanged.
    fs::write(&base, "name: acme/other\n").unwrap();
    assert!(matches!(fact(), DefinitionFact::Changed { .. }));
    fs::write(&base, "name: acme/base\n").unwrap();
    assert_eq!(fact(), DefinitionFact::Same);
    // A layer above is part of the definition, too.
    fs::write(world.user_file(), "limits: { steps: 5 }").unwrap();
    assert!(matches!(fact(), DefinitionFact::Changed { .. }));
    fs::remove_file(world.user_file()).unwrap();
    assert_eq!(fact(), DefinitionFact::Same);
    fs::remove_file(world.file()).unwrap();
    assert_eq!(fact(), DefinitionFact::Missing);
    world.prove("s");
}

#[test]
fn a_session_records_its_location() {
    let world = RuntimeTest::new(&format!("extends: [./base.yaml]\n{STEPS_9}"));
    let base = world.workspace().join("base.yaml");
    fs::write(&base, "").unwrap();
    fs::write(world.user_file(), "").unwrap();
    send(&mut world.runtime(), r#"{"event":"session_started"}"#);
    let entry = world.store.entry(&SessionId::parse("s").unwrap()).unwrap().unwrap();
    let place = entry.opening().unwrap().place.clone();
    assert_eq!(place.workspace, Some(real(&world.workspace())));
    assert_eq!(place.state_home, Some(real(world.store.home())));
    assert_eq!(place.definition, [&world.file(), &base, &world.user_file()].map(|f| real(f)));
}
