//! Which programs test, build and document: rows, first match first.

use super::What::{self, Build, Docs, Test};

/// A command that is known.
pub(super) struct Row {
    pub(super) what: What,
    /// The program and its subcommands.
    pub(super) command: &'static str,
    /// A word that has to be there, too.
    pub(super) with: &'static str,
    /// Words with which nothing is run.
    pub(super) without: &'static [&'static str],
}

/// With these, no program does what it is for.
pub(super) const IDLE: [&str; 3] = ["--help", "-h", "--version"];

const fn test(command: &'static str, without: &'static [&'static str]) -> Row {
    Row { what: Test, command, with: "", without }
}

const fn build(command: &'static str) -> Row {
    Row { what: Build, command, with: "", without: &["-n", "--dry-run"] }
}

const fn docs(command: &'static str) -> Row {
    Row { what: Docs, command, with: "", without: &[] }
}

const CARGO: &[&str] = &["--no-run", "--list"];
const PYTEST: &[&str] =
    &["--collect-only", "--co", "--fixtures", "--markers", "--setup-plan", "-V"];
const JEST: &[&str] = &["--listTests", "--showConfig", "--init", "--clearCache"];
const LISTS: &[&str] = &["-l", "--list", "--listenvs", "--notest"];
const DRY: &[&str] = &["--dry-run"];
const MAVEN: &[&str] = &["-DskipTests", "-DskipTests=true", "-Dmaven.test.skip=true"];
const GRADLE: &[&str] = &["-x", "--exclude-task", "-m", "--dry-run"];
const DOTNET: &[&str] = &["--list-tests", "-t"];
const LIST: &[&str] = &["--list"];
const LIST_TESTS: &[&str] = &["--list-tests"];
const NOTHING: &[&str] = &[];

pub(super) static ROWS: &[Row] = &[
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
    test("unittest", NOTHING),
    test("nose2", NOTHING),
    test("tox", LISTS),
    test("nox", LISTS),
    test("hatch test", LISTS),
    test("python manage.py test", NOTHING),
    test("python3 manage.py test", NOTHING),
    test("manage.py test", NOTHING),
    // Go.
    test("go test", &["-c", "-list", "-n"]),
    test("gotestsum", NOTHING),
    // JavaScript and TypeScript.
    test("npm test", NOTHING),
    test("npm t", NOTHING),
    test("npm tst", NOTHING),
    test("npm run test*", NOTHING),
    test("npm run-script test*", NOTHING),
    test("yarn test*", NOTHING),
    test("yarn run test*", NOTHING),
    test("yarn jest", JEST),
    test("yarn vitest", NOTHING),
    test("yarn mocha", DRY),
    test("pnpm test*", NOTHING),
    test("pnpm t", NOTHING),
    test("pnpm run test*", NOTHING),
    test("bun test", NOTHING),
    test("bun run test*", NOTHING),
    test("deno test", &["--no-run"]),
    test("deno task test*", NOTHING),
    Row { what: Test, command: "node", with: "--test", without: NOTHING },
    test("jest", JEST),
    test("vitest", &["list", "init"]),
    test("mocha", DRY),
    test("ava", NOTHING),
    test("playwright test", LIST),
    test("cypress run", NOTHING),
    // Whatever the project's own files say.
    test("make test*", NOTHING),
    test("make check", NOTHING),
    test("gmake test*", NOTHING),
    test("gmake check", NOTHING),
    test("just test*", LIST),
    test("task test*", DRY),
    test("rake test*", DRY),
    test("rake spec*", DRY),
    test("ninja test", NOTHING),
    test("meson test", LIST),
    test("ctest", &["-N", "--show-only"]),
    test("bazel test", NOTHING),
    // Java and its kin.
    test("mvn test", MAVEN),
    test("mvn verify", MAVEN),
    test("mvnw test", MAVEN),
    test("mvnw verify", MAVEN),
    test("gradle test*", GRADLE),
    test("gradle check", GRADLE),
    test("gradlew test*", GRADLE),
    test("gradlew check", GRADLE),
    test("sbt test", NOTHING),
    test("lein test", NOTHING),
    // Others.
    test("rspec", DRY),
    test("rails test", NOTHING),
    test("phpunit", LIST_TESTS),
    test("pest", LIST_TESTS),
    test("php artisan test", LIST_TESTS),
    test("composer test", NOTHING),
    test("dotnet test", DOTNET),
    test("swift test", &["list", "--list-tests", "-l"]),
    test("xcodebuild test", NOTHING),
    test("mix test", NOTHING),
    test("zig build test", NOTHING),
    test("zig test", NOTHING),
    test("stack test", NOTHING),
    test("cabal test", NOTHING),
    test("dune test", NOTHING),
    test("dune runtest", NOTHING),
    test("dart test", NOTHING),
    test("flutter test", NOTHING),
    test("prove", NOTHING),
    test("bats", NOTHING),
    // Documentation, before what would take it for a build.
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
    Row { what: Build, command: "cargo test", with: "--no-run", without: NOTHING },
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
    Row { what: Build, command: "cmake", with: "--build", without: NOTHING },
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
