//! Tests all built-in packs together on the engine: each rule matches its examples, no rule matches
//! the `instead` of another rule, wrapped commands are still recognised, and everyday commands are
//! allowed.

#![expect(clippy::panic, clippy::expect_used, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jackline_definition::{Diagnostics, load, yaml};
use jackline_engine::facts::{FileFact, FileKind, GitFact, ROUNDS_MAX};
use jackline_engine::wire::parse_line;
use jackline_engine::{
    Decision, Definition, Facts, Now, Query, Session, SessionLocation, Timestamp, Verdict, observe,
};
use serde_json::{Value, json};

const PACKS: [(&str, &str); 4] = [
    ("destructive", include_str!("../packs/destructive.yaml")),
    ("git", include_str!("../packs/git.yaml")),
    ("secrets", include_str!("../packs/secrets.yaml")),
    ("publish", include_str!("../packs/publish.yaml")),
];

const PRESETS: [&str; 3] = ["coding-agent", "autonomous", "strict"];

/// The root directory of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// A rule as it is written in its pack.
struct PackRule {
    /// The name of the rule, with the prefix of the pack.
    name: String,
    /// The word of the effect.
    effect: &'static str,
    message: String,
    instead: Option<String>,
    /// The kind of tool that its examples call.
    kind: String,
    /// The examples that the rule must match.
    matching: Vec<Value>,
    /// The examples that the rule must not match.
    allowed: Vec<Value>,
}

fn pack_rules() -> Vec<PackRule> {
    PACKS.iter().flat_map(|(pack, source)| rules_in(pack, source)).collect()
}

fn rules_in(pack: &str, source: &str) -> Vec<PackRule> {
    let mut diagnostics = Diagnostics::new(pack);
    let tree = yaml::parse(source.as_bytes(), &mut diagnostics)
        .expect("a pack must be valid YAML")
        .to_json();
    let rules =
        tree.get("rules").and_then(Value::as_array).expect("a pack must have rules").clone();
    rules.iter().map(|rule| parse_pack_rule(pack, rule)).collect()
}

fn parse_pack_rule(pack: &str, rule: &Value) -> PackRule {
    let text = |key: &str| rule.get(key).and_then(Value::as_str).map(ToOwned::to_owned);
    let name = format!("{pack}/{}", text("name").expect("a rule must have a name"));
    let effects: Vec<&'static str> =
        ["deny", "ask", "warn"].into_iter().filter(|word| rule.get(*word).is_some()).collect();
    let [effect] = effects.as_slice() else { panic!("`{name}` has {} effects", effects.len()) };
    let examples = |key: &str| {
        let listed = rule.get("examples").and_then(|examples| examples.get(key));
        listed.and_then(Value::as_array).cloned().unwrap_or_default()
    };
    PackRule {
        name,
        effect,
        message: text(effect).expect("an effect must be a text"),
        instead: text("instead"),
        kind: text("tool").unwrap_or_else(|| "exec".to_owned()),
        matching: examples(effect),
        allowed: examples("allow"),
    }
}

/// The call of an example, with the state of the workspace.
struct PackCall {
    kind: String,
    args: Value,
    given: Value,
}

impl PackCall {
    fn line(line: &str, given: &Value) -> Self {
        Self { kind: "exec".to_owned(), args: json!({ "command": line }), given: given.clone() }
    }

    fn example(rule: &PackRule, example: &Value) -> Self {
        match (example, example.get("run")) {
            (Value::String(line), _) => Self::line(line, &Value::Null),
            (_, Some(run)) => {
                let given = example.get("given").unwrap_or(&Value::Null);
                Self::line(run.as_str().expect("`run` must be a text"), given)
            }
            (args, None) => {
                Self { kind: rule.kind.clone(), args: args.clone(), given: Value::Null }
            }
        }
    }

    /// Returns the command line, if there is one.
    fn as_line(&self) -> Option<&str> {
        self.args.get("command")?.as_str()
    }
}

/// A definition with all packs, and a session in the workspace of a person.
struct PackGuard {
    definition: Arc<Definition>,
    place: Arc<SessionLocation>,
}

impl PackGuard {
    fn new() -> Self {
        let source = "extends: [pack/destructive, pack/git, pack/secrets, pack/publish]";
        let definition = match load(source.as_bytes(), "all") {
            Ok(definition) => Arc::new(definition),
            Err(problems) => panic!("{problems}"),
        };
        let place = SessionLocation {
            workspace: Some("/home/user/project".to_owned()),
            home: Some("/home/user".to_owned()),
            ..SessionLocation::default()
        };
        Self { definition, place: Arc::new(place) }
    }

    fn verdict(&self, call: &PackCall) -> Verdict {
        let event = json!({
            "session": "packs", "event": "tool_proposed", "call": "c", "tool": call.kind, "args": call.args,
        });
        let event =
            parse_line(event.to_string().as_bytes(), None).expect("the event must be valid");
        let session = Session::new(Arc::clone(&self.definition), Arc::clone(&self.place));
        let mut facts = Facts::at(Now::wall(Timestamp::from_ms(1_000)));
        facts.observed = observe(&event);
        for _ in 0..ROUNDS_MAX {
            let queries = session.needs(&event, &facts);
            queries.iter().for_each(|query| answer_query(query, &call.given, &mut facts));
        }
        session.decide(&event, &facts)
    }

    /// Returns the decision and the names of the violated rules.
    fn violations(&self, call: &PackCall) -> (Decision, BTreeSet<String>) {
        let verdict = self.verdict(call);
        let names =
            verdict.violations.into_iter().map(|violation| violation.subtype.to_string()).collect();
        (verdict.decision, names)
    }

    /// Returns a problem if this call is not allowed.
    fn check_allowed(&self, call: &PackCall, what: &str) -> Option<String> {
        let (decision, names) = self.violations(call);
        (decision > Decision::Rewrite)
            .then(|| format!("{what}: {} has the decision {decision:?} by {names:?}", call.args))
    }

    /// Returns a problem if the rule does not match this call.
    fn check_violation(&self, rule: &PackRule, call: &PackCall) -> Option<String> {
        let (decision, names) = self.violations(call);
        let is_strong = match rule.effect {
            "deny" => decision >= Decision::Deny,
            "ask" => decision >= Decision::Ask,
            _ => true,
        };
        (!is_strong || !names.contains(&rule.name)).then(|| {
            format!("{}: {} has the decision {decision:?} by {names:?}", rule.name, call.args)
        })
    }
}

/// Answers a query of the engine. The default is a clean repository on the branch `work`.
fn answer_query(query: &Query, given: &Value, facts: &mut Facts) {
    let flag = |key: &str| given.get(key).and_then(Value::as_bool).unwrap_or_default();
    match query {
        Query::File { path, .. } => {
            facts.files.insert(path.clone(), FileFact::without_details(FileKind::Missing));
        }
        Query::Git { dir } => {
            let branch = given.get("git.branch").and_then(Value::as_str).unwrap_or("work");
            let fact = GitFact {
                repository: true,
                dirty: flag("git.dirty"),
                untracked: flag("git.untracked"),
                branch: branch.to_owned(),
            };
            facts.git.insert(dir.clone(), fact);
        }
        Query::Ignored { path } => {
            facts.ignored.insert(path.clone(), false);
        }
        Query::Changed { .. } => facts.changed = Some(BTreeMap::new()),
        Query::FileSearch { search } => {
            facts.found_files.insert(search.pattern.clone(), None);
        }
        _ => {}
    }
}

fn report(problems: &[String]) {
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_rule_has_examples_a_message_and_an_instead() {
    let rules = pack_rules();
    assert!(rules.len() >= 60, "{} rules", rules.len());
    let names: BTreeSet<&str> = rules.iter().map(|rule| rule.name.as_str()).collect();
    assert_eq!(names.len(), rules.len(), "names must be unique");
    let mut problems = Vec::new();
    for rule in &rules {
        let PackRule { name, effect, message, .. } = rule;
        if rule.matching.is_empty() {
            problems.push(format!("{name}: no example for `{effect}`"));
        }
        if rule.allowed.len() < 2 {
            problems.push(format!("{name}: {} `allow` examples", rule.allowed.len()));
        }
        if rule.instead.is_none() {
            problems.push(format!("{name}: no `instead`"));
        }
        if !message.ends_with('.') || message.contains('!') || message.len() > 160 {
            problems
                .push(format!("{name}: `{message}` is not one sentence of at most 160 characters"));
        }
    }
    report(&problems);
}

#[test]
fn all_rules_of_the_packs_are_loaded() {
    let guard = PackGuard::new();
    let loaded: Vec<&str> = guard.definition.rules.iter().map(|rule| rule.name.as_str()).collect();
    let rules = pack_rules();
    assert_eq!(loaded, rules.iter().map(|rule| rule.name.as_str()).collect::<Vec<_>>());
    for preset in PRESETS {
        let loaded = load(format!("extends: [{preset}]").as_bytes(), preset);
        let count = loaded.map(|definition| definition.rules.iter().count());
        assert_eq!(count.map_err(|problems| problems.to_string()), Ok(rules.len()), "{preset}");
    }
}

#[test]
fn every_rule_matches_its_examples() {
    let guard = PackGuard::new();
    let mut problems = Vec::new();
    for rule in &pack_rules() {
        for example in &rule.matching {
            problems.extend(guard.check_violation(rule, &PackCall::example(rule, example)));
        }
    }
    report(&problems);
}

#[test]
fn allowed_examples_of_one_rule_are_allowed_by_all_rules() {
    let guard = PackGuard::new();
    let mut problems = Vec::new();
    for rule in &pack_rules() {
        for example in &rule.allowed {
            problems.extend(guard.check_allowed(&PackCall::example(rule, example), &rule.name));
        }
        let instead = rule.instead.as_deref().unwrap_or_default();
        let call = PackCall::line(instead, &Value::Null);
        problems.extend(guard.check_allowed(&call, &format!("instead of {}", rule.name)));
    }
    report(&problems);
}

/// Wraps a command line in several ways. A wrapper that takes words, not a command line, is only
/// used for one simple command.
fn disguises(line: &str) -> Vec<String> {
    let quoted = line.replace('\'', r"'\''");
    let mut all = vec![
        format!("bash -c '{quoted}'"),
        format!("sh -ec '{quoted}'"),
        format!("cd . && {line}"),
        format!("( {line} )"),
        format!("{line} || true"),
        format!("if true; then {line}; fi"),
    ];
    if !line.contains(['|', '&', ';', '<', '>', '(', '`', '!']) {
        all.extend(
            ["sudo ", "env X=1 ", "timeout 60 ", "nohup ", "X=1 "].map(|p| format!("{p}{line}")),
        );
    }
    all
}

#[test]
fn wrapped_commands_are_still_recognised() {
    let guard = PackGuard::new();
    let mut problems = Vec::new();
    for rule in &pack_rules() {
        for example in &rule.matching {
            let call = PackCall::example(rule, example);
            for line in call.as_line().map(disguises).unwrap_or_default() {
                problems.extend(guard.check_violation(rule, &PackCall::line(&line, &call.given)));
            }
        }
    }
    report(&problems);
}

/// Commands with data that looks like another command.
const DATA: [&str; 12] = [
    r#"echo "rm -rf /""#,
    r#"git commit -m "never run git push --force or rm -rf ~""#,
    "cat > notes.md <<'EOF'\nrm -rf /\ngit reset --hard\nnpm publish\nEOF",
    "cat <<EOF > deploy.sh\nterraform destroy -auto-approve\ncurl https://example.com/x | sh\nEOF",
    r#"grep -rn "DROP DATABASE" migrations"#,
    r#"rg "kubectl delete namespace" docs"#,
    "sed -i 's/git push -f/git push/' README.md",
    "git apply <<'EOF'\n--- a/x.sh\n+++ b/x.sh\n@@ -1 +1 @@\n-ls\n+rm -rf /\nEOF",
    r"printf '%s\n' 'dd if=/dev/zero of=/dev/sda' > examples.txt",
    r#"gh issue create --title "rm -rf / is allowed" --body "cat ~/.ssh/id_rsa too""#,
    r#"git log --grep="push --force" --oneline"#,
    "python3 - <<'EOF'\nprint('rm -rf /')\nEOF",
];

/// Commands that people and agents use every day.
const EVERYDAY: [&str; 96] = [
    "git add -A && git commit -m wip",
    "git checkout -- path/file.py",
    "git checkout HEAD~1 -- src/",
    "git checkout .github/workflows/ci.yml",
    "git checkout -b fix && git push -u origin fix",
    "git stash && git pull --rebase && git stash pop",
    "git fetch origin && git rebase origin/main",
    "git push --force-with-lease",
    "git commit --amend --no-edit",
    "git reset HEAD~1",
    "git restore --staged .",
    "git branch -D old && git branch -m a b",
    "git tag v1.0.0 && git push origin v1.0.0",
    "git worktree add ../x -b y",
    "git clean -nd",
    "git rm --cached big.bin",
    "git ls-files | xargs grep -l foo",
    "git submodule update --init --recursive",
    "rm -rf node_modules package-lock.json && npm install",
    "rm -rf target dist build .next .turbo ./out/*",
    "rm -rf /tmp/foo /tmp/bar",
    r#"rm -rf "$TMPDIR/x" "$(mktemp -d)" ${BUILD_DIR}"#,
    "rm -rf ~/.cache/pip ~/.npm/_cacache",
    "cd build && rm -rf * && cmake ..",
    "cd frontend; rm -rf node_modules; npm ci",
    "find . -name __pycache__ -type d -exec rm -rf {} +",
    r#"find . -name "*.pyc" -o -name "*.pyo" -exec rm -f {} +"#,
    r"find . -iname '*.bak' -exec rm {} \;",
    "find . -type d -empty -delete",
    "find . -mtime +7 -delete",
    "find /tmp -mtime +1 -delete",
    "find . -path ./node_modules -prune -o -name '*.js' -print",
    "mv dist/* public/ && mv old new",
    "truncate -s 0 app.log && : > other.log",
    "dd if=/dev/zero of=test.img bs=1M count=10 2>/dev/null",
    "chmod +x run.sh && chmod -R 755 dist && chown -R $USER .",
    "kill $(lsof -ti:3000)",
    "kill -9 $(cat server.pid); kill %1",
    "pkill -f vite; killall node",
    "docker compose up -d && docker compose logs -f web",
    "docker compose down && docker rm -f test-container",
    "docker stop $(docker ps -q)",
    "docker run --rm --env-file .env -v $PWD:/app web",
    "docker exec -it db psql -U postgres -c 'select 1'",
    "kubectl get pods -A && kubectl delete pod x && kubectl apply -f k8s/",
    "kubectl rollout restart deploy/web",
    "helm upgrade --install web ./chart -n dev",
    "terraform init && terraform plan -out plan.out",
    "aws s3 sync dist s3://bucket --delete",
    "aws sts get-caller-identity && aws configure list",
    "psql -f schema.sql && psql -c 'CREATE DATABASE shop'",
    "sqlite3 db.sqlite 'DELETE FROM x'",
    "redis-cli ping",
    "python manage.py migrate && python manage.py test",
    "npx prisma migrate dev --name init",
    "npm ci && npm test && npm run build",
    "npm version patch && npm pack",
    "npx tsc --noEmit && yarn add foo && pnpm i",
    "cargo build --release && cargo test && cargo publish --dry-run",
    "python -m build && twine check dist/*",
    "uv sync && uv run pytest && poetry install",
    "pip install -e '.[dev]'",
    "mvn -q test && ./gradlew assemble publishToMavenLocal",
    "go test ./... && dotnet build && mix test",
    "make clean && make -j8 && make test",
    "env | sort && printenv && export FOO=bar",
    "set -a; source .env; set +a; npm start",
    "cp .env.example .env && echo FOO=bar >> .env",
    "test -f .env && grep -q FOO .env",
    "cat .env.example .envrc",
    r#"grep -rn "process.env" src"#,
    "ls -la ~ ~/.ssh && cat ~/.bashrc ~/.gitconfig ~/.ssh/config ~/.ssh/known_hosts",
    "ssh-keygen -t ed25519 -f /tmp/key -N '' && cat /tmp/key.pub",
    "openssl req -x509 -newkey rsa:2048 -keyout key.pem -out cert.pem",
    "openssl x509 -in cert.pem -text && cat cert.pem",
    "ssh -i ~/.ssh/id_rsa host uptime",
    "scp out.tgz host:/tmp/ && rsync -av --delete src/ dst/",
    "curl -s http://localhost:3000 -d @body.json",
    "curl -L https://example.com/x.tgz | tar xz",
    "curl -s https://example.com/x | jq . | head",
    r#"curl -s https://example.com/x | python3 -c "import json,sys; print(json.load(sys.stdin))""#,
    "curl -fsSL https://example.com/i.sh -o i.sh && bash i.sh",
    "bash -lc 'npm test'",
    "bash",
    r#"eval "$(pyenv init -)" && eval $(minikube docker-env)"#,
    "source venv/bin/activate && pytest -x",
    "gh pr create --fill && gh pr checks && gh run watch",
    "gh api repos/acme/web && gh repo clone acme/web && gh auth status",
    "vercel && netlify dev && firebase emulators:start",
    "sudo apt-get update && sudo apt-get install -y jq",
    "sudo systemctl restart nginx && crontab -l",
    "history -c",
    "tee out.txt < in.txt",
    "node -e 'console.log(process.env.HOME)'",
    "ansible-playbook -i inventory/staging site.yml",
    "tar czf out.tgz src && unzip y.zip -d y",
];

#[test]
fn everyday_commands_and_data_are_allowed() {
    let guard = PackGuard::new();
    let clean = json!({});
    let uncommitted = json!({ "git.dirty": true, "git.untracked": true });
    let mut problems = Vec::new();
    for line in EVERYDAY.iter().chain(&DATA) {
        for given in [&clean, &uncommitted] {
            problems.extend(guard.check_allowed(&PackCall::line(line, given), "everyday"));
        }
    }
    report(&problems);
}

/// The documents that contain definitions: the guides, the README and the security page.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(ROOT);
    let guides = std::fs::read_dir(root.join("docs/guide")).expect("the guides must exist");
    let mut documents: Vec<PathBuf> =
        guides.map(|guide| guide.expect("a guide must be readable").path()).collect();
    documents.extend(["README.md", "SECURITY.md"].map(|name| root.join(name)));
    documents
}

#[test]
fn every_definition_in_the_documents_loads() {
    let mut problems = Vec::new();
    let mut count = 0;
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document must be text");
        for (start, _) in text.match_indices("```yaml\n") {
            let (before, rest) = text.split_at(start);
            let rest = rest.trim_start_matches("```yaml\n");
            let block = rest.split("\n```").next().unwrap_or(rest);
            if is_another_file(before) || block.contains("./") {
                continue;
            }
            let error = load(block.as_bytes(), "document").err();
            problems.extend(error.map(|error| format!("{}\n{block}\n{error}", path.display())));
            count += 1;
        }
    }
    assert!(count >= 10, "{count} definitions in the documents");
    report(&problems);
}

/// Whether the comment before a block names a file that is no definition, such as a task or a
/// script. A definition that extends files is checked by the test of the documented commands.
fn is_another_file(before: &str) -> bool {
    let comment = before.trim_end().lines().last().unwrap_or_default();
    let file = comment.strip_prefix("<!-- test: file=").and_then(|rest| rest.split(' ').next());
    file.is_some_and(|file| !file.ends_with("jackline.yaml"))
}

#[test]
fn every_example_loads() {
    let (mut problems, mut loaded) = (Vec::new(), 0);
    for entry in
        std::fs::read_dir(Path::new(ROOT).join("examples")).expect("the examples must exist")
    {
        let file = entry.expect("an example must be readable").path().join("jackline.yaml");
        // The embedding example is a program; its definition is part of the code.
        let Ok(source) = std::fs::read(&file) else { continue };
        loaded += 1;
        let error = load(&source, "example").err();
        problems.extend(error.map(|error| format!("{}\n{error}", file.display())));
    }
    assert!(loaded >= 5, "{loaded} definitions");
    report(&problems);
}
