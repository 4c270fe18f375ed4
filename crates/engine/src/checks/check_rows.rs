//! The built-in table of programs that test, build and document. The first matching row counts.

use super::CheckKind::{self, Build, Docs, Test};

/// A known command and the kind of check it is.
pub(super) struct CheckRow {
    pub(super) kind: CheckKind,
    /// The program and its subcommands.
    pub(super) command: &'static str,
    /// A word that the command must also contain.
    pub(super) required_word: &'static str,
    /// Words with which the command runs nothing.
    pub(super) excluding_words: &'static [&'static str],
}

/// With one of these words, no program does its usual work.
pub(super) const INFO_FLAGS: [&str; 3] = ["--help", "-h", "--version"];

const fn test(command: &'static str, without: &'static [&'static str]) -> CheckRow {
    CheckRow { kind: Test, command, required_word: "", excluding_words: without }
}

const fn build(command: &'static str) -> CheckRow {
    CheckRow { kind: Build, command, required_word: "", excluding_words: &["-n", "--dry-run"] }
}

const fn docs(command: &'static str) -> CheckRow {
    CheckRow { kind: Docs, command, required_word: "", excluding_words: &[] }
}

const CARGO: &[&str] = &["--no-run", "--list"];
const PYTEST: &[&str] =
    &["--collect-only", "--co", "--fixtures", "--markers", "--setup-plan", "-V"];
const JEST: &[&str] = &["--listTests", "--showConfig", "--init", "--clearCache"];
const LIST_FLAGS: &[&str] = &["-l", "--list", "--listenvs", "--notest"];
const DRY_RUN_FLAGS: &[&str] = &["--dry-run"];
const MAVEN: &[&str] = &["-DskipTests", "-DskipTests=true", "-Dmaven.test.skip=true"];
const GRADLE: &[&str] = &["-x", "--exclude-task", "-m", "--dry-run"];
const DOTNET: &[&str] = &["--list-tests", "-t"];
const LIST: &[&str] = &["--list"];
const LIST_TESTS: &[&str] = &["--list-tests"];
const NO_WORDS: &[&str] = &[];

pub(super) static CHECK_ROWS: &[CheckRow] = &[
    // Rust.
    test("cargo test", CARGO),
    test("cargo t", CARGO),
    test("cargo nextest run", CARGO),
    test("cargo nextest r", CARGO),
    test("cargo llvm-cov", CARGO),
    test("cargo tarpaulin", CARGO),
    // Python. `python -m pytest` is the program `pytest` here.
    test("pytest", PYTEST),
    test("py.test", PYTEST),
    test("unittest", NO_WORDS),
    test("nose2", NO_WORDS),
    test("tox", LIST_FLAGS),
    test("nox", LIST_FLAGS),
    test("hatch test", LIST_FLAGS),
    test("python manage.py test", NO_WORDS),
    test("python3 manage.py test", NO_WORDS),
    test("manage.py test", NO_WORDS),
    // Go.
    test("go test", &["-c", "-list", "-n"]),
    test("gotestsum", NO_WORDS),
    // JavaScript and TypeScript.
    test("npm test", NO_WORDS),
    test("npm t", NO_WORDS),
    test("npm tst", NO_WORDS),
    test("npm run test*", NO_WORDS),
    test("npm run-script test*", NO_WORDS),
    test("yarn test*", NO_WORDS),
    test("yarn run test*", NO_WORDS),
    test("yarn jest", JEST),
    test("yarn vitest", NO_WORDS),
    test("yarn mocha", DRY_RUN_FLAGS),
    test("pnpm test*", NO_WORDS),
    test("pnpm t", NO_WORDS),
    test("pnpm run test*", NO_WORDS),
    test("bun test", NO_WORDS),
    test("bun run test*", NO_WORDS),
    test("deno test", &["--no-run"]),
    test("deno task test*", NO_WORDS),
    CheckRow { kind: Test, command: "node", required_word: "--test", excluding_words: NO_WORDS },
    test("jest", JEST),
    test("vitest", &["list", "init"]),
    test("mocha", DRY_RUN_FLAGS),
    test("ava", NO_WORDS),
    test("playwright test", LIST),
    test("cypress run", NO_WORDS),
    // Tasks that the project's own files define.
    test("make test*", NO_WORDS),
    test("make check", NO_WORDS),
    test("gmake test*", NO_WORDS),
    test("gmake check", NO_WORDS),
    test("just test*", LIST),
    test("task test*", DRY_RUN_FLAGS),
    test("rake test*", DRY_RUN_FLAGS),
    test("rake spec*", DRY_RUN_FLAGS),
    test("ninja test", NO_WORDS),
    test("meson test", LIST),
    test("ctest", &["-N", "--show-only"]),
    test("bazel test", NO_WORDS),
    // Java and related languages.
    test("mvn test", MAVEN),
    test("mvn verify", MAVEN),
    test("mvnw test", MAVEN),
    test("mvnw verify", MAVEN),
    test("gradle test*", GRADLE),
    test("gradle check", GRADLE),
    test("gradlew test*", GRADLE),
    test("gradlew check", GRADLE),
    test("sbt test", NO_WORDS),
    test("lein test", NO_WORDS),
    // Others.
    test("rspec", DRY_RUN_FLAGS),
    test("rails test", NO_WORDS),
    test("phpunit", LIST_TESTS),
    test("pest", LIST_TESTS),
    test("php artisan test", LIST_TESTS),
    test("composer test", NO_WORDS),
    test("dotnet test", DOTNET),
    test("swift test", &["list", "--list-tests", "-l"]),
    test("xcodebuild test", NO_WORDS),
    test("mix test", NO_WORDS),
    test("zig build test", NO_WORDS),
    test("zig test", NO_WORDS),
    test("stack test", NO_WORDS),
    test("cabal test", NO_WORDS),
    test("dune test", NO_WORDS),
    test("dune runtest", NO_WORDS),
    test("dart test", NO_WORDS),
    test("flutter test", NO_WORDS),
    test("prove", NO_WORDS),
    test("bats", NO_WORDS),
    // Documentation, before the rows of builds, which would match some of these.
    docs("cargo doc"),
    docs("cargo rustdoc"),
    docs("mkdocs build"),
    docs("mdbook build"),
    docs("sphinx-build"),
    docs("make doc*"),
    docs("npm run doc*"),
    docs("yarn doc*"),
    docs("pnpm doc*"),
    docs("pnpm run doc*"),
    docs("typedoc"),
    docs("jsdoc"),
    docs("javadoc"),
    docs("doxygen"),
    docs("pdoc"),
    docs("mix docs"),
    // Builds.
    build("cargo build"),
    build("cargo b"),
    build("cargo check"),
    build("cargo c"),
    build("cargo clippy"),
    CheckRow {
        kind: Build,
        command: "cargo test",
        required_word: "--no-run",
        excluding_words: NO_WORDS,
    },
    build("go build"),
    build("go vet"),
    build("npm run build*"),
    build("npm run-script build*"),
    build("yarn build*"),
    build("yarn run build*"),
    build("pnpm build*"),
    build("pnpm run build*"),
    build("bun build"),
    build("bun run build*"),
    build("tsc"),
    build("vite build"),
    build("next build"),
    build("webpack"),
    build("make all"),
    build("make build*"),
    build("make compile"),
    CheckRow { kind: Build, command: "cmake", required_word: "--build", excluding_words: NO_WORDS },
    build("meson compile"),
    build("bazel build"),
    build("mvn compile"),
    build("mvn package"),
    build("mvn install"),
    build("mvnw compile"),
    build("mvnw package"),
    build("mvnw install"),
    build("gradle build"),
    build("gradle assemble"),
    build("gradlew build"),
    build("gradlew assemble"),
    build("sbt compile"),
    build("dotnet build"),
    build("swift build"),
    build("xcodebuild build"),
    build("mix compile"),
    build("zig build"),
    build("stack build"),
    build("cabal build"),
    build("dune build"),
    build("flutter build"),
];
