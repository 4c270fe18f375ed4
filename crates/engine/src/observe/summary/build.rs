//! How a build ended, if the text is unambiguous.

use super::BuildOutcome;
use super::count::leading_count;
use super::text::OutputLine;

/// All builders whose output is recognised. One failure outweighs any success.
#[derive(Default)]
pub(super) struct BuildParser {
    failed: bool,
    ok: bool,
    /// The line before named a Go package, so compiler errors of that package follow.
    is_after_package: bool,
}

impl BuildParser {
    /// Reads a line. `errors` tells whether the text contains the word `error` anywhere; `first` is
    /// the first byte of the line without indentation.
    pub(super) fn read_line(&mut self, line: &OutputLine<'_>, first: u8, errors: bool) {
        let text = line.trimmed;
        let package = core::mem::take(&mut self.is_after_package);
        self.failed |= match first {
            b'e' => text.starts_with("error: could not compile `") || text == "error during build:",
            b'n' => {
                text.starts_with("npm ERR! ")
                    || text.starts_with("npm error ")
                    || text.starts_with("ninja: build stopped: ")
            }
            // The message can be in any language: `make: *** [Makefile:2: all] Fehler 1`.
            b'm' | b'g' => text.split_once(": *** ").is_some_and(|(make, _)| {
                let make = make.strip_prefix('g').unwrap_or(make);
                make == "make" || make.starts_with("make[")
            }),
            b'c' => text.starts_with("collect2: error: "),
            b'B' | b'[' => self.read_banner(text),
            b'w' => self.read_webpack(text),
            b'F' => {
                let built = text.strip_prefix("Finished `");
                self.ok |= built.is_some_and(|rest| rest.contains(" profile ["));
                false
            }
            _ => false,
        };
        self.ok |= text.starts_with("✓ built in ");
        if let Some(heading) = text.strip_prefix("# ") {
            // `# example.com/a`, or `# example.com/a [example.com/a.test]`.
            self.is_after_package = !heading.contains(' ') || heading.ends_with(".test]");
        } else if package {
            self.failed |= is_go_error(text);
        } else if errors && !self.failed && text.contains("error") {
            self.failed |= is_compiler_error(text);
        }
    }

    pub(super) fn finish(&self) -> Option<BuildOutcome> {
        match (self.failed, self.ok) {
            (true, _) => Some(BuildOutcome::Failed),
            (false, true) => Some(BuildOutcome::Ok),
            (false, false) => None,
        }
    }

    /// The last lines of Maven, Gradle and Ant.
    fn read_banner(&mut self, text: &str) -> bool {
        if text.starts_with("[ERROR] Failed to execute goal ") {
            return true;
        }
        let text = text.strip_prefix("[INFO] ").unwrap_or(text);
        self.ok |= text == "BUILD SUCCESS" || text.starts_with("BUILD SUCCESSFUL");
        text == "BUILD FAILURE" || text == "BUILD FAILED" || text.starts_with("BUILD FAILED in ")
    }

    /// `webpack 5.90.0 compiled with 1 error in 200 ms`.
    fn read_webpack(&mut self, text: &str) -> bool {
        let Some((_, how)) =
            text.strip_prefix("webpack ").and_then(|rest| rest.split_once("compiled "))
        else {
            return false;
        };
        let errors = how.strip_prefix("with ").and_then(leading_count);
        let failed = errors.is_some_and(|(_, word)| word.starts_with("error"));
        self.ok |= !failed && (how.starts_with("successfully") || errors.is_some());
        failed
    }
}

/// `./a.go:2:23: …`, possibly after `vet: `.
fn is_go_error(text: &str) -> bool {
    let text = text.strip_prefix("vet: ").unwrap_or(text);
    text.split_once(".go:").is_some_and(|(path, rest)| {
        !path.contains(' ') && leading_count(rest).is_some_and(|(_, rest)| rest.starts_with(':'))
    })
}

/// `a.c:3:5: error: …`, `A.java:3: error: …`, `a.ts(1,7): error TS2322: …`,
/// `a.ts:1:7 - error TS2322: …`.
fn is_compiler_error(text: &str) -> bool {
    const C: [&str; 10] = [".c", ".cc", ".cpp", ".cxx", ".h", ".hpp", ".m", ".mm", ".cu", ".java"];
    if let Some((place, code)) = text.split_once("error TS") {
        let placed = place.is_empty() || place.ends_with("): ") || place.ends_with(" - ");
        return placed && leading_count(code).is_some_and(|(_, rest)| rest.starts_with(':'));
    }
    let (Some((place, _)), Some((path, _))) = (
        text.split_once(": error: ").or_else(|| text.split_once(": fatal error: ")),
        text.split_once(':'),
    ) else {
        return false;
    };
    let position = place.get(path.len() + 1..).unwrap_or("");
    !path.contains(' ')
        && C.iter().any(|ending| path.ends_with(ending))
        && !position.is_empty()
        && position.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
}
