//! Violations by an artifact, or by what it did.
//!
//! Each has a type and a subtype where it is raised, so that no code parses messages.

use std::fmt;

use jackline_engine::verdict::{ViolationClass, ViolationSubtype, ViolationType};
use serde::{Serialize, Serializer};

/// A position in the source text, counted from one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLocation {
    /// The line.
    pub line: u32,
    /// The column.
    pub column: u32,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

impl Serialize for SourceLocation {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

/// The result of a validation that raised violations. Logs and retries name it beside each
/// violation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ValidationResult {
    /// The artifact was rejected.
    #[default]
    Failed,
}

/// One violation, with all fields that a retry and a log need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AttemptViolation {
    /// What the validation says about the artifact.
    pub validation_result: ValidationResult,
    /// Whether another try can help.
    #[serde(rename = "guardrail_class")]
    pub class: ViolationClass,
    /// The type of the violation.
    #[serde(rename = "violation_type")]
    pub kind: ViolationType,
    /// The exact subtype.
    #[serde(rename = "violation_subtype")]
    pub subtype: ViolationSubtype,
    /// The message.
    #[serde(rename = "violation_message")]
    pub message: String,
    /// The position in the artifact.
    #[serde(rename = "violation_location", skip_serializing_if = "Option::is_none")]
    pub location: Option<SourceLocation>,
    /// What would be accepted instead: a mechanism, never an answer.
    #[serde(rename = "required_correction")]
    pub correction: String,
}

impl AttemptViolation {
    /// Creates a violation with the class and the correction of its subtype.
    pub fn new(subtype: Subtype, message: impl Into<String>) -> Self {
        Self {
            validation_result: ValidationResult::Failed,
            class: subtype.class(),
            kind: subtype.kind(),
            subtype: subtype.into(),
            message: message.into(),
            location: None,
            correction: subtype.correction().to_owned(),
        }
    }

    /// Sets the position.
    #[must_use]
    pub fn with_location(mut self, location: SourceLocation) -> Self {
        self.location = Some(location);
        self
    }

    /// Replaces the general correction by a more specific one.
    #[must_use]
    pub fn with_correction(mut self, correction: impl Into<String>) -> Self {
        self.correction = correction.into();
        self
    }

    /// Applies the definition's list of terminal subtypes. It changes only subtypes of this
    /// crate; violations of the engine's guards keep their class.
    #[must_use]
    pub(crate) fn with_terminal_subtypes(mut self, terminal: &[String]) -> Self {
        if Subtype::named(self.subtype.as_str()).is_some() {
            let is_terminal = terminal.iter().any(|word| word == self.subtype.as_str());
            self.class =
                if is_terminal { ViolationClass::Terminal } else { ViolationClass::Recoverable };
        }
        self
    }
}

impl From<&jackline_engine::Violation> for AttemptViolation {
    /// Converts a violation that the engine raised for a call of the artifact.
    fn from(violation: &jackline_engine::Violation) -> Self {
        let correction = violation.correction.clone();
        Self {
            validation_result: ValidationResult::Failed,
            class: violation.class,
            kind: violation.kind.clone(),
            subtype: violation.subtype.clone(),
            message: violation.message.clone(),
            location: None,
            correction: correction.unwrap_or_else(|| Subtype::ToolDenied.correction().to_owned()),
        }
    }
}

macro_rules! subtypes {
    ($($(#[$doc:meta])* $name:ident = $word:literal, $kind:ident, $class:ident, $correction:literal;)*) => {
        /// What an artifact can violate. Each subtype has a type, a class and a correction, so
        /// that no code parses messages.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Subtype {
            $($(#[$doc])* $name,)*
        }

        impl Subtype {
            /// All subtypes.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The word used in logs and definitions.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $word,)* }
            }

            /// The subtype with this word.
            pub fn named(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$name),)* _ => None }
            }

            /// The type of the violation.
            pub fn kind(self) -> ViolationType {
                match self { $(Self::$name => ViolationType::$kind,)* }
            }

            /// Whether another try can help.
            pub fn class(self) -> ViolationClass {
                match self { $(Self::$name => ViolationClass::$class,)* }
            }

            /// What would be accepted instead.
            pub fn correction(self) -> &'static str {
                match self { $(Self::$name => $correction,)* }
            }
        }

        impl From<Subtype> for ViolationSubtype {
            fn from(subtype: Subtype) -> Self {
                match subtype { $(Subtype::$name => Self::$name,)* }
            }
        }
    };
}

subtypes! {
    /// The program changes an agent or a tool instead of calling it.
    SingletonMethodMutation = "singleton_method_mutation", ToolRegistryViolation, Recoverable,
        "Call tool(\"name\") or delegate(\"name\", ...) and use what it returns; never assign \
         to an attribute of a tool, an agent or a module.";
    /// The program treats `context["tools"]` as something other than a mapping.
    ContextToolsShapeMisuse = "context_tools_shape_misuse", ToolRegistryViolation, Recoverable,
        "context[\"tools\"] is a mapping from names to descriptions; look a name up in it, and \
         call the tool with tool(\"name\").";
    /// The program returns a hardcoded value as a success after a source failed.
    HardcodedExternalFallbackSuccess = "hardcoded_external_fallback_success",
        OutcomePolicyViolation, Recoverable,
        "Where a source fails, return error(type, message, retriable=True); never return ok with \
         a value that is written into the program.";
    /// The program returns external data without its sources.
    MissingExternalProvenance = "missing_external_provenance", OutcomePolicyViolation,
        Recoverable,
        "Return ok(value, sources=[...]) with uri, fetched_at, retrieval_tool and retrieval_mode \
         (live, cached or fixture) for everything that came from outside.";
    /// The program puts internal text into its answer.
    InternalTextLeak = "internal_text_leak", OutcomePolicyViolation, Recoverable,
        "Branch on the error_type or the subtype of a delegate's outcome, or on the class of an \
         exception; never put their messages into the answer. Say in your own words what the \
         answer needs.";
    /// The program calls a tool that does not exist.
    UnknownTool = "unknown_tool", ToolRegistryViolation, Recoverable,
        "Call only tools that are listed; their names are in context[\"tools\"].";
    /// The program uses a forbidden construct.
    ForbiddenConstruct = "forbidden_construct", InvalidCode, Recoverable,
        "Use only the functions of the host, plain data and control flow; no imports of modules \
         that reach outside, no exec, no eval.";
    /// The text is not a valid program.
    SyntaxError = "syntax_error", InvalidCode, Recoverable,
        "Write one complete program, without prose around it.";
    /// The program is too long.
    ProgramTooLong = "program_too_long", InvalidCode, Recoverable,
        "Write a short program that calls tools for the work.";
    /// The text is not a valid plan.
    PlanInvalid = "plan_invalid", InvalidPlan, Recoverable,
        "Write one plan that the schema allows.";
    /// The guards refuse a call of the program.
    ToolDenied = "tool_denied", ToolPolicyViolation, Recoverable,
        "Leave the refused call out, or change it as the reason says.";
    /// A key or a password is missing. No rewritten program can supply it.
    MissingCredentials = "missing_credentials", EnvironmentViolation, Terminal,
        "A person has to provide the credentials.";
    /// A dependency is missing. No rewritten program can supply it.
    DependencyUnavailable = "dependency_unavailable", EnvironmentViolation, Terminal,
        "A person has to make the dependency available.";
    /// This runtime does not support what the program needs.
    UnsupportedCapability = "unsupported_capability", EnvironmentViolation, Terminal,
        "This runtime does not support that; a person has to choose another way.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    #[test]
    fn every_subtype_says_what_it_is_and_what_passes() {
        let names: BTreeSet<_> = Subtype::ALL.iter().map(|it| it.name()).collect();
        assert_eq!(names.len(), Subtype::ALL.len());
        for subtype in Subtype::ALL {
            assert!(subtype.correction().len() > 20, "{subtype:?}");
            assert_eq!(ViolationSubtype::from(*subtype).as_str(), subtype.name());
            assert_eq!(Subtype::named(subtype.name()), Some(*subtype));
        }
        let terminal: Vec<_> = Subtype::ALL
            .iter()
            .filter(|it| it.class() == ViolationClass::Terminal)
            .map(|it| it.name())
            .collect();
        let expected = ["missing_credentials", "dependency_unavailable", "unsupported_capability"];
        assert_eq!(terminal, expected);
    }

    #[test]
    fn a_violation_has_the_shape_of_the_seed() {
        let violation = AttemptViolation::new(Subtype::SingletonMethodMutation, "no")
            .with_location(SourceLocation { line: 3, column: 5 })
            .with_correction("so");
        let expected = json!({
            "validation_result": "failed",
            "guardrail_class": "recoverable_guardrail",
            "violation_type": "tool_registry_violation",
            "violation_subtype": "singleton_method_mutation",
            "violation_message": "no",
            "violation_location": "3:5",
            "required_correction": "so",
        });
        assert_eq!(serde_json::to_value(violation).unwrap(), expected);
    }
}
