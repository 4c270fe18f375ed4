//! Tests one file with every key: the lowered definition and its compiled form.

use jackline_definition::{Layer, LayerDefinition, combine, decode, encode, load};
use jackline_engine::definition::{
    Advisor, AttemptBudgets, BudgetLimit, CompletionCap, CompletionRequirement, ContextThresholds,
    DeclaredTool, DirtyBits, FeedbackContent, FeedbackProvider, FeedbackTrigger, FileTrigger,
    HealthLimits, IdentitySettings, IoLimits, JournalSettings, LimitPeriod, LoopSettings,
    ModelChoice, ModelKind, ModelOccasion, ModelPrice, ModelProvider, ModelTables, NamedOutput,
    Notifier, Occasion, OpaquePolicy, OutputLimits, Policy, PolicyRule, Prerequisite,
    ProgressSettings, ReadFileLimits, Redact, RepairLimits, RequiredFile, Rule, RuleEffect,
    RuleScope, Rules, RunLimits, SchemaSettings, SchemaText, SequentialDependency, SessionLimits,
    ShellOutputLimits, ShellSettings, ToolDependency, ToolPaths, UnknownTools,
};
use jackline_engine::{ClientId, Definition, Digest, Mode, ToolKind};

/// A definition with every key, except conditions and `extends`.
pub(crate) const FULL: &str = "\
version: 1
name: acme/coder
mode: observe
modes: { all: enforce }
tools:
  read_file: { kind: read, aliases: [Read, view], path: file, offset: /from, limit: count }
  write_file: { kind: write, path: /a/b }
  copy: { paths: { read: [/from, from_all], write: [/to] } }
  run: { kind: exec, command: /args/line }
  make: { commands: [make all, 'npm  run build'] }
  lint: {}
  test:
  deploy: { kind: effect, idempotent: false, roles: [release], output_schema: { type: object } }
sections:
  - name: release
    tools: [lint, test, deploy]
    policies:
      - sequential_dependency:
          deploy: [test, { tool: lint, fresh: true }]
policies:
  - sequential_dependency:
      write_file: [Read]
  - read_before_write: {}
  - read_before_write: { deletes: false }
read_before_write: { deletes: true }
unknown_tools: allow
shell: { opaque: ask }
protected: [.env, ./secrets//, ~/.ssh/, /etc/*.conf]
rules:
  - name: no/push
    tool: exec
    command: [git push, git  remote add]
    deny: Not today.
    instead: git fetch origin
    mode: observe
    examples: { deny: [git push], allow: [git pull, { run: git status, given: { git.dirty: true } }] }
  - { name: copies, tool: copy, ask: Really?, examples: { ask: [{ from: a, to: b }] } }
  - { name: all, warn: Oh., examples: { warn: [{ run: { path: a }, tool: view }] } }
completion:
  all:
    - command: cargo test
    - command: { run: make check, timeout_seconds: 5 }
    - files: [report.md, { path: out//./results.json, min_bytes: 10, json: true, newer_than_start: true }]
    - any: [ files: [{ path: a, non_empty: true }], files: [/abs/b] ]
    - clean: {}
    - docs_updated: {}
completion_cap: { blocks: 4, same: 2 }
limits:
  steps: 100
  wall_seconds: { max: 600 }
  input_tokens: { max: 1000, soft: true }
  output_tokens: { max: 50, per: turn }
  total_tokens: null
  cost_usd: { max: 2.50, soft: true }
  iterations: 100
  tool_calls: { view: 5, deploy: { max: 2, per: turn }, write_file: null }
progress: { max_consecutive_failures: 4, exempt_phases: [plan], steps_per_iteration: 20 }
dirty_bits: { tests: [./test.sh, 'just  ci'], builds: [bin/build], docs: [notes/, '*.rst', ./man/*.1] }
iterations_extension: 10
prices: { my-model: { input: 1, output: 2.5 } }
context: { window: 1000, block: 90, estimate_lines: 400, restarts_max: 1 }
deadline: { warning_threshold_seconds: 60 }
feedback:
  - { deadline: {}, every_n_seconds: 0.5 }
  - { deadline: { warning_threshold_seconds: 5 }, every_n_calls: 2 }
  - { static: Hello., on_file_created: ./AGENTS.md }
  - { static: New., every_n_calls: 9, on_file_created: { path: b, since: session_start } }
feedback_bytes_max: 1000
schema: { repair_max_attempts: 1, repairs_per_run: 9, correction_max_attempts: 4 }
plan: { schema: { type: object } }
outputs: { report: { schema: { type: array, items: { type: integer } } } }
io:
  read_file: { max_lines: 400, max_bytes: 100000, max_line_bytes: 1000 }
  output: { max_bytes: 20000, relative_paths: false }
  shell: { seconds: 60, output_bytes: 16384 }
attempts: { provider: 2, guardrail: 3, execution: 0, outcome: 4, ceiling: 9, pressure_after: 3, pressure_retries: 1, terminal: [no_key] }
health: { window: 10, min_samples: 3, degrade_above_pct: 50, recover_below_pct: 20, pressure_exhausted: 3 }
run: { stops_without_work: 2, failed_checks: 1, undone_iterations: 2, cut_off_answers: 4, model_tries: 5, program_starts: 6, model_waits: 7, advisor_tries: 1 }
models:
  - { provider: openai-chat, model: qwen, url: 'http://127.0.0.1:8080/v1', key_env: LOCAL_KEY, window: 32768, when: [offline, sensitive], budget: 50, timeout_seconds: 90 }
  - { worker: claude, model: opus }
  - { worker: [agent, --headless], when: [overload], budget: 7 }
advisor: { models: [{ provider: anthropic, model: claude-opus-5-5 }], transcript_lines: 200, budget: 3 }
identity: { roles: [developer, release, developer], default_role: intern, workflow: nightly }
notify: { command: tell-me, webhook: 'https://hooks.example.com/x', desktop: true, on: [ask, guard_broken] }
journal: { redact: off, retain_days: 7, retain_bytes: 1000000 }
";

/// The definition that [`FULL`] is lowered to.
fn full() -> Definition {
    let tool = |name: &str, kind, aliases: &[&str], sections: &[u16]| DeclaredTool {
        name: name.to_owned(),
        kind,
        aliases: aliases.iter().map(|alias| (*alias).to_owned()).collect(),
        idempotent: name != "deploy",
        sections: sections.to_vec(),
        ..DeclaredTool::with_name(name)
    };
    let need = |tool: &str, fresh| Prerequisite { tool: tool.to_owned(), fresh };
    let sequential = |tool: &str, needs| {
        let dependency = ToolDependency { tool: tool.to_owned(), needs };
        PolicyRule::SequentialDependency(SequentialDependency::new(vec![dependency]))
    };
    let file = |path: &str, min_bytes| RequiredFile {
        path: path.to_owned(),
        min_bytes,
        json: false,
        newer_than_start: false,
    };
    let command = |number, line: &str, timeout_seconds| CompletionRequirement::Command {
        number,
        line: line.to_owned(),
        timeout_seconds,
        trusted: true,
    };
    let limit = |max, soft, per| Some(BudgetLimit { max, soft, per });
    Definition {
        name: "acme/coder".to_owned(),
        mode: Mode::Observe,
        tools: vec![
            DeclaredTool {
                paths: ToolPaths { read: texts(&["/file"]), write: vec![] },
                offset: Some("/from".to_owned()),
                limit: Some("/count".to_owned()),
                ..tool("read_file", ToolKind::Read, &["Read", "view"], &[])
            },
            DeclaredTool {
                paths: ToolPaths { read: vec![], write: texts(&["/a/b"]) },
                ..tool("write_file", ToolKind::Write, &[], &[])
            },
            DeclaredTool {
                paths: ToolPaths { read: texts(&["/from", "/from_all"]), write: texts(&["/to"]) },
                ..tool("copy", ToolKind::Other, &[], &[])
            },
            DeclaredTool {
                command: Some("/args/line".to_owned()),
                ..tool("run", ToolKind::Exec, &[], &[])
            },
            DeclaredTool {
                commands: texts(&["make all", "npm run build"]),
                ..tool("make", ToolKind::Other, &[], &[])
            },
            tool("lint", ToolKind::Other, &[], &[0]),
            tool("test", ToolKind::Other, &[], &[0]),
            DeclaredTool {
                output_schema: Some(SchemaText(r#"{"type":"object"}"#.to_owned())),
                roles: Some(texts(&["release"])),
                ..tool("deploy", ToolKind::Effect, &[], &[0])
            },
        ],
        policies: vec![
            Policy {
                section: Some(0),
                rule: sequential("deploy", vec![need("test", false), need("lint", true)]),
            },
            Policy {
                section: None,
                rule: sequential("write_file", vec![need("read_file", false)]),
            },
            Policy { section: None, rule: PolicyRule::ReadBeforeWrite { deletes: true } },
            Policy { section: None, rule: PolicyRule::ReadBeforeWrite { deletes: false } },
        ],
        unknown_tools: UnknownTools::Allow,
        shell: ShellSettings { opaque: OpaquePolicy::Ask },
        protected: texts(&[".env", "secrets/", "~/.ssh/", "/etc/*.conf"]),
        rules: Rules::new(rules()),
        completion: Some(CompletionRequirement::All(vec![
            command(0, "cargo test", 600),
            command(1, "make check", 5),
            CompletionRequirement::Files(vec![
                file("report.md", 0),
                RequiredFile { json: true, newer_than_start: true, ..file("out/results.json", 10) },
            ]),
            CompletionRequirement::Any(vec![
                CompletionRequirement::Files(vec![file("a", 1)]),
                CompletionRequirement::Files(vec![file("/abs/b", 0)]),
            ]),
            CompletionRequirement::Clean,
            CompletionRequirement::DocsUpdated,
        ])),
        completion_cap: CompletionCap { blocks: 4, same: 2 },
        limits: SessionLimits {
            steps: limit(100, false, LimitPeriod::Session),
            wall_seconds: limit(600, false, LimitPeriod::Session),
            input_tokens: limit(1000, true, LimitPeriod::Session),
            output_tokens: limit(50, false, LimitPeriod::Turn),
            total_tokens: None,
            cost_usd: limit(2_500_000, true, LimitPeriod::Session),
            iterations: limit(100, false, LimitPeriod::Session),
            iterations_extension: 10,
            tool_calls: vec![
                (
                    "read_file".to_owned(),
                    BudgetLimit { max: 5, soft: false, per: LimitPeriod::Session },
                ),
                ("deploy".to_owned(), BudgetLimit { max: 2, soft: false, per: LimitPeriod::Turn }),
            ],
        },
        loops: LoopSettings::default(),
        progress: Some(ProgressSettings {
            max_consecutive_failures: 4,
            exempt_phases: texts(&["plan"]),
            steps_per_iteration: 20,
        }),
        dirty_bits: DirtyBits {
            tests: texts(&["./test.sh", "just ci"]),
            builds: texts(&["bin/build"]),
            docs: texts(&["notes/**", "**/*.rst", "man/*.1"]),
        },
        context: Some(ContextThresholds {
            window: Some(1000),
            block: 90,
            estimate_lines: 400,
            restarts_max: 1,
            ..ContextThresholds::default()
        }),
        models: models(),
        feedback: feedback(),
        schemas: SchemaSettings {
            attempts: RepairLimits {
                repair_max_attempts: 1,
                repairs_per_run: 9,
                correction_max_attempts: 4,
            },
            plan: Some(SchemaText(r#"{"type":"object"}"#.to_owned())),
            outputs: vec![NamedOutput {
                name: "report".to_owned(),
                schema: SchemaText(r#"{"items":{"type":"integer"},"type":"array"}"#.to_owned()),
            }],
        },
        io: IoLimits {
            read_file: ReadFileLimits { max_lines: 400, max_bytes: 100_000, max_line_bytes: 1000 },
            output: OutputLimits { max_bytes: 20_000, relative_paths: false },
            shell: ShellOutputLimits { seconds: 60, output_bytes: 16_384 },
        },
        attempts: AttemptBudgets {
            provider: 2,
            guardrail: 3,
            execution: 0,
            outcome: 4,
            ceiling: 9,
            pressure_after: 3,
            pressure_retries: 1,
            terminal: texts(&["no_key"]),
        },
        health: HealthLimits {
            window: 10,
            min_samples: 3,
            degrade_above_pct: 50,
            recover_below_pct: 20,
            pressure_exhausted: 3,
        },
        run: RunLimits {
            stops_without_work: 2,
            failed_checks: 1,
            undone_iterations: 2,
            cut_off_answers: 4,
            model_tries: 5,
            program_starts: 6,
            model_waits: 7,
            advisor_tries: 1,
        },
        choices: choices(),
        advisor: Some(advisor()),
        identity: Some(IdentitySettings {
            roles: texts(&["developer", "release"]),
            default_role: "intern".to_owned(),
            workflow: Some("nightly".to_owned()),
        }),
        feedback_bytes_max: 1000,
        notify: vec![Notifier {
            command: Some("tell-me".to_owned()),
            webhook: Some("https://hooks.example.com/x".to_owned()),
            desktop: true,
            on: vec![Occasion::Ask, Occasion::GuardBroken],
            trusted: true,
        }],
        journal: JournalSettings { redact: Redact::Off, retain_days: 7, retain_bytes: 1_000_000 },
    }
}

/// The built-in table with an additional price.
fn models() -> ModelTables {
    let built_in = load(b"context: {}", "f").unwrap_or_default().models;
    let own = ModelPrice {
        model: "my-model".to_owned(),
        input: 1_000_000,
        output: 2_500_000,
        cache_read: 1_000_000,
        cache_creation: 1_000_000,
    };
    ModelTables { prices: built_in.prices.iter().cloned().chain([own]).collect(), ..built_in }
}

#[expect(clippy::unwrap_used, reason = "the name is a valid constant")]
fn choices() -> Vec<ModelChoice> {
    let worker = |kind, model: Option<&str>| ModelChoice {
        kind,
        worker_model: model.map(ToOwned::to_owned),
        when: vec![],
        budget: None,
    };
    let local = ModelKind::Provider {
        provider: ModelProvider::OpenAiChat,
        model: "qwen".to_owned(),
        url: Some("http://127.0.0.1:8080/v1".to_owned()),
        key_env: Some("LOCAL_KEY".to_owned()),
        window: Some(32768),
        timeout_seconds: Some(90),
    };
    vec![
        ModelChoice {
            kind: local,
            worker_model: None,
            when: vec![ModelOccasion::Offline, ModelOccasion::Sensitive],
            budget: Some(50),
        },
        worker(ModelKind::Client(ClientId::parse("claude").unwrap()), Some("opus")),
        ModelChoice {
            when: vec![ModelOccasion::Overload],
            budget: Some(7),
            ..worker(ModelKind::Command(texts(&["agent", "--headless"])), None)
        },
    ]
}

fn advisor() -> Advisor {
    let kind = ModelKind::Provider {
        provider: ModelProvider::Anthropic,
        model: "claude-opus-5-5".to_owned(),
        url: None,
        key_env: None,
        window: None,
        timeout_seconds: None,
    };
    let model = ModelChoice { kind, worker_model: None, when: vec![], budget: None };
    Advisor { models: vec![model], transcript_lines: 200, budget: 3 }
}

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

fn rules() -> Vec<Rule> {
    let rule = |name: &str, scope, effect, message: &str| Rule {
        name: name.to_owned(),
        origin: "file f".to_owned(),
        scope,
        commands: vec![],
        when: None,
        effect,
        mode: Mode::Observe,
        message: message.to_owned(),
        instead: None,
    };
    vec![
        Rule {
            commands: texts(&["git push", "git remote add"]),
            instead: Some("git fetch origin".to_owned()),
            ..rule("no/push", RuleScope::Kind(ToolKind::Exec), RuleEffect::Deny, "Not today.")
        },
        rule("copies", RuleScope::Tool("copy".to_owned()), RuleEffect::Ask, "Really?"),
        Rule { mode: Mode::Enforce, ..rule("all", RuleScope::Any, RuleEffect::Warn, "Oh.") },
    ]
}

fn feedback() -> Vec<FeedbackProvider> {
    let deadline =
        |warning_threshold_seconds| FeedbackContent::Deadline { warning_threshold_seconds };
    let static_text = |text: &str| FeedbackContent::Static { text: text.to_owned() };
    let file = |path: &str, since_start| Some(FileTrigger { path: path.to_owned(), since_start });
    let provider = |speech, every_n_calls, every_n_ms, on_file_created| FeedbackProvider {
        speech,
        trigger: FeedbackTrigger { every_n_calls, every_n_ms, on_file_created },
    };
    vec![
        provider(deadline(60), None, Some(500), None),
        provider(deadline(5), Some(2), None, None),
        provider(static_text("Hello."), None, None, file("AGENTS.md", false)),
        provider(static_text("New."), Some(9), None, file("b", true)),
    ]
}

#[test]
fn every_key_is_lowered() {
    assert_eq!(load(FULL.as_bytes(), "f"), Ok(full()));
}

/// The compiled form is a cache that other builds of the same version read, so its bytes must not
/// change unnoticed. A change of this digest means that the layout changed. Then increase `MAGIC`
/// in `crates/definition/src/compiled.rs`, so that old caches are rebuilt and not misread.
#[test]
fn the_compiled_form_keeps_its_bytes() {
    let bytes = encode(&full(), &Digest::ZERO);
    assert_eq!(decode(bytes.clone(), &Digest::ZERO), Some(full()));
    assert_eq!(
        Digest::of(&bytes).to_string(),
        "42b76fe35c5631f45357a7f3b37d2251dd3f6b1ab05018c917438d3ddbe074be"
    );
}

/// A section that forgets a field would lose it when layers are joined.
#[test]
fn every_field_of_a_definition_survives_the_layers() {
    let loops = LoopSettings { history: 9, ..LoopSettings::default() };
    let definition = Definition { unknown_tools: UnknownTools::Deny, loops, ..full() };
    let fields = |definition: &Definition| serde_json::to_value(definition).unwrap();
    let default = fields(&Definition::default());
    for (name, value) in fields(&definition).as_object().unwrap() {
        assert_ne!(*value, default[name], "`{name}` has its default");
    }
    for layer in [Layer::Managed, Layer::User] {
        let modes = vec![("all".to_owned(), Mode::Enforce)];
        let file = "f".to_owned();
        let layered = LayerDefinition { layer, file, definition: definition.clone(), modes };
        assert_eq!(combine(vec![layered], false).definition, definition);
    }
}
