//! Tests a single file: its keys, their values, and all errors.

use jackline_definition::{decode, encode, load};
use jackline_engine::{Definition, Digest};
use proptest::prelude::*;

use crate::full::FULL;
use crate::{check, check_shapes, problems_in, problems_in_bytes, schema_accepts};

#[test]
fn a_provider_without_guidance_or_trigger_is_refused() {
    let source = "\
feedback:
  - static: Hello.
  - every_n_calls: 0
  - { static: a, deadline: {}, every_n_seconds: 5 }
  - { static: a, on_file_created: ../x }
  - { static: a, on_file_created: { since: yesterday } }
  - { static: a, every_n_seconds: 0.0005 }
  - { static: a, every_n_seconds: 0.0 }
  - hello
";
    assert_eq!(
        problems_in(source),
        "\
f:2:5: this provider would never give feedback; give it `every_n_calls`, `every_n_seconds` or `on_file_created`
f:3:5: a feedback provider must have exactly one kind of guidance, not 0; give it `deadline` or `static`
f:3:5: this provider would never give feedback; give it `every_n_calls`, `every_n_seconds` or `on_file_created`
f:3:20: `every_n_calls` can't be 0
f:4:5: a feedback provider must have exactly one kind of guidance, not 2; give it `deadline` or `static`
f:5:5: this provider would never give feedback; give it `every_n_calls`, `every_n_seconds` or `on_file_created`
f:5:35: `../x` leads out of the workspace
f:6:5: this provider would never give feedback; give it `every_n_calls`, `every_n_seconds` or `on_file_created`
f:6:35: `on_file_created` needs a `path`
f:6:44: `since` can't be `yesterday`; use one of `session_start`, `ever`
f:7:5: this provider would never give feedback; give it `every_n_calls`, `every_n_seconds` or `on_file_created`
f:7:35: `every_n_seconds` can't be `0.0005`; seconds with up to three decimals are accepted, such as 30 or 0.5
f:8:5: this provider would never give feedback; give it `every_n_calls`, `every_n_seconds` or `on_file_created`
f:8:35: `every_n_seconds` can't be 0
f:9:5: a feedback provider must be a mapping, not text"
    );
}

#[test]
fn an_empty_file_is_the_default_definition() {
    for source in ["", "\n\n", "# nothing\n", "---\n", "{}", "version: 1", "\u{feff}", "~"] {
        assert_eq!(load(source.as_bytes(), "f"), Ok(Definition::default()), "{source:?}");
    }
}

#[test]
fn every_mistake_is_reported_at_once_with_its_position() {
    let source = "\
version: 2
nam: acme/coder
mode: enforced
tools:
  read: { kind: write }
  lint: { kidn: exec, aliases: [check, deploy] }
  deploy: { kind: efect }
sections:
  - tools: [lint]
    policies:
      - sequential_dependency: { lint: [tset] }
      - sequental_dependency: {}
completion:
  files: [../secret, { pth: x }]
completion_cap: { blocks: 0, same: -1 }
limits:
  steps: many
  wall_seconds: { soft: yes }
journal: { redact: none, retain_days: 99999999999 }
advisor: {}
";
    let expected = "\
f:1:10: version 2 is not supported; this jackline reads `version: 1`
f:2:1: unknown key `nam` in the definition; did you mean `name`?
f:3:7: `mode` can't be `enforced`; did you mean `enforce`?
f:5:17: a tool named `read` must have kind `read`
f:6:11: unknown key `kidn` in a tool; did you mean `kind`?
f:7:3: two tools are named `deploy`
f:7:19: `kind` can't be `efect`; did you mean `effect`?
f:9:5: a section needs a `name`
f:11:41: this policy can never see `tset`: it is not among the tools of section `unnamed`; add it to the section's `tools`, or move the policy to the top level
f:12:9: unknown key `sequental_dependency` in a policy; did you mean `sequential_dependency`?
f:14:11: `../secret` leads out of the workspace
f:14:22: a required file needs a `path`
f:14:24: unknown key `pth` in a required file; did you mean `path`?
f:15:27: `completion_cap.blocks` is 0, so no stop would ever be blocked; remove `completion` instead
f:15:36: `completion_cap.same` can't be -1; whole numbers from 0 are accepted
f:17:10: `limits.steps` must be a whole number, not `many`
f:18:17: `limits.wall_seconds` needs a `max`
f:18:25: `soft` must be true or false, not text
f:19:20: `journal.redact` can't be `none`; use one of `built-in`, `off`
f:19:39: `journal.retain_days` can't be 99999999999; whole numbers from 0 are accepted
f:20:10: `advisor` has no models; add one to `advisor.models`, or remove `advisor`";
    check(&[(source, expected)]);
}

#[test]
fn an_unknown_key_is_reported_with_the_nearest_key() {
    check_shapes(&[
        ("toolz: {}", "f:1:1: unknown key `toolz` in the definition; did you mean `tools`?"),
        ("Mode: observe", "f:1:1: unknown key `Mode` in the definition; did you mean `mode`?"),
        ("loop: {}", "f:1:1: unknown key `loop` in the definition; did you mean `loops`?"),
        (
            "zzzzzz: 1",
            "f:1:1: unknown key `zzzzzz` in the definition; known keys: `version`, `name`, `extends`, `mode`, `modes`, `tools`, `unknown_tools`, `sections`, `policies`, `read_before_write`, `rules`, `packs`, `shell`, `protected`, `completion`, `completion_cap`, `limits`, `loops`, `progress`, `dirty_bits`, `iterations_extension`, `prices`, `context`, `schema`, `plan`, `outputs`, `io`, `attempts`, `health`, `run`, `models`, `advisor`, `identity`, `feedback`, `feedback_bytes_max`, `deadline`, `notify`, `journal`",
        ),
        (
            "safety: { max_iterations: 100 }",
            "f:1:1: unknown key `safety` in the definition; in a definition these settings are `limits.iterations`, `progress` and `loops`; the guide `from-manifest` has a table",
        ),
        (
            "context: { warning_threshold: 75 }",
            "f:1:12: unknown key `warning_threshold` in `context`; use `warn`",
        ),
        (
            "tools: { t: { knd: read } }",
            "f:1:15: unknown key `knd` in a tool; did you mean `kind`?",
        ),
        (
            "sections: [ { name: s, tool: [t] } ]",
            "f:1:24: unknown key `tool` in a section; did you mean `tools`?",
        ),
        (
            "policies: [ sequential_dependencies: { a: [b] } ]",
            "f:1:13: unknown key `sequential_dependencies` in a policy; did you mean `sequential_dependency`?",
        ),
        (
            "policies: [ sequential_dependency: { a: [ { tool: b, frsh: true } ] } ]",
            "f:1:54: unknown key `frsh` in a prerequisite; did you mean `fresh`?",
        ),
        (
            "completion: { file: [a] }",
            "f:1:15: unknown key `file` in a completion check; did you mean `files`?",
        ),
        (
            "completion: { files: [ { path: a, non_emtpy: true } ] }",
            "f:1:35: unknown key `non_emtpy` in a required file; did you mean `non_empty`?",
        ),
        (
            "completion_cap: { block: 1 }",
            "f:1:19: unknown key `block` in `completion_cap`; did you mean `blocks`?",
        ),
        ("limits: { step: 1 }", "f:1:11: unknown key `step` in `limits`; did you mean `steps`?"),
        (
            "limits: { steps: { max: 1, pre: turn } }",
            "f:1:28: unknown key `pre` in a limit; did you mean `per`?",
        ),
        (
            "journal: { retain_day: 1 }",
            "f:1:12: unknown key `retain_day` in `journal`; did you mean `retain_days`?",
        ),
    ]);
}

#[test]
fn a_value_of_the_wrong_type_is_reported_with_its_position() {
    check_shapes(&[
        ("[a]", "f:1:1: the definition must be a mapping, not a list"),
        ("just text", "f:1:1: the definition must be a mapping, not text"),
        ("version: one", "f:1:10: `version` must be a whole number, not `one`"),
        ("version: 1.0", "f:1:10: `version` must be a whole number, not `1.0`"),
        ("version: \"1\"", "f:1:10: `version` must be a whole number, not `1`"),
        ("version: -1", "f:1:10: `version` can't be -1; whole numbers from 0 are accepted"),
        ("version: 2", "f:1:10: version 2 is not supported; this jackline reads `version: 1`"),
        ("name: 7", "f:1:7: `name` must be text, not a number"),
        ("mode: true", "f:1:7: `mode` must be text, not a boolean"),
        ("mode: \"\"", "f:1:7: `mode` must not be empty"),
        ("mode: warn", "f:1:7: `mode` can't be `warn`; use one of `enforce`, `observe`"),
        ("mode: enforse", "f:1:7: `mode` can't be `enforse`; did you mean `enforce`?"),
        ("tools: [a]", "f:1:8: `tools` must be a mapping, not a list"),
        ("tools: { t: read }", "f:1:13: a tool must be a mapping, not text"),
        ("tools: { t: { kind: [] } }", "f:1:21: `kind` must be text, not a list"),
        ("tools: { t: { kind: raed } }", "f:1:21: `kind` can't be `raed`; did you mean `read`?"),
        ("tools: { t: { aliases: a } }", "f:1:24: `aliases` must be a list, not text"),
        ("tools: { t: { aliases: [1] } }", "f:1:25: an alias must be text, not a number"),
        ("sections: { a: b }", "f:1:11: `sections` must be a list, not a mapping"),
        ("sections: [ s ]", "f:1:13: a section must be a mapping, not text"),
        ("sections: [ {} ]", "f:1:13: a section needs a `name`"),
        (
            "sections: [ { name: s, tools: t } ]",
            "f:1:31: the tools of a section must be a list, not text",
        ),
        ("sections: [ { name: s, tools: [7] } ]", "f:1:32: a tool must be text, not a number"),
        ("sections: [ { name: s }, { name: s } ]", "f:1:34: two sections are named `s`"),
    ]);
}

#[test]
fn a_policy_of_the_wrong_shape_is_reported_with_its_position() {
    check_shapes(&[
        ("policies: {}", "f:1:11: `policies` must be a list, not a mapping"),
        ("policies: [ a ]", "f:1:13: a policy must be a mapping, not text"),
        (
            "policies: [ {} ]",
            "f:1:13: a policy must have exactly one key, not 0; use one of `sequential_dependency`, `read_before_write`",
        ),
        (
            "policies: [ sequential_dependency: [a] ]",
            "f:1:36: `sequential_dependency` must be a mapping, not a list",
        ),
        (
            "policies: [ sequential_dependency: {} ]",
            "f:1:36: `sequential_dependency` is empty; write it as tool: [prerequisite, …]",
        ),
        (
            "policies: [ sequential_dependency: { a: b } ]",
            "f:1:41: the prerequisites of a tool must be a list, not text",
        ),
        (
            "policies: [ sequential_dependency: { a: [1] } ]",
            "f:1:42: a prerequisite must be text, not a number",
        ),
        (
            "policies: [ sequential_dependency: { a: [ { fresh: true } ] } ]",
            "f:1:43: a prerequisite needs a `tool`",
        ),
        (
            "policies: [ sequential_dependency: { a: [ { tool: b, fresh: 1 } ] } ]",
            "f:1:61: `fresh` must be true or false, not a number",
        ),
        ("policies: [ sequential_dependency: { a: [b, b] } ]", "f:1:45: `b` is listed twice"),
    ]);
}

#[test]
fn a_check_or_limit_of_the_wrong_shape_is_reported_with_its_position() {
    check_shapes(&[
        ("completion: [a]", "f:1:13: a completion check must be a mapping, not a list"),
        (
            "completion: { files: [a], all: [] }",
            "f:1:13: a completion check must have exactly one key, not 2; combine several with `all` or `any`\nf:1:32: `all` is empty; add an entry, or remove it",
        ),
        ("completion: { files: a }", "f:1:22: `files` must be a list, not text"),
        ("completion: { any: [] }", "f:1:20: `any` is empty; add an entry, or remove it"),
        ("completion: { files: [1] }", "f:1:23: a path must be text, not a number"),
        ("completion: { files: [ {} ] }", "f:1:24: a required file needs a `path`"),
        (
            "completion: { files: [ { path: a, min_bytes: -3 } ] }",
            "f:1:46: `min_bytes` can't be -3; whole numbers from 0 are accepted",
        ),
        (
            "completion: { files: [ { path: a, json: maybe } ] }",
            "f:1:41: `json` must be true or false, not text",
        ),
        ("limits: [steps]", "f:1:9: `limits` must be a mapping, not a list"),
        (
            "limits: { steps: -1 }",
            "f:1:18: `limits.steps` can't be -1; whole numbers from 0 are accepted",
        ),
        ("limits: { steps: ten }", "f:1:18: `limits.steps` must be a whole number, not `ten`"),
        ("limits: { steps: 1.5 }", "f:1:18: `limits.steps` must be a whole number, not `1.5`"),
        (
            "limits: { steps: 99999999999999999999 }",
            "f:1:18: `limits.steps` must be a whole number, not `99999999999999999999`",
        ),
        ("limits: { steps: { soft: true } }", "f:1:18: `limits.steps` needs a `max`"),
        ("limits: { steps: { max: x } }", "f:1:25: `max` must be a whole number, not `x`"),
        (
            "limits: { steps: { max: 1, per: day } }",
            "f:1:33: `per` can't be `day`; use one of `session`, `turn`",
        ),
        (
            "journal: { redact: none }",
            "f:1:20: `journal.redact` can't be `none`; use one of `built-in`, `off`",
        ),
        (
            "journal: { retain_days: -1 }",
            "f:1:25: `journal.retain_days` can't be -1; whole numbers from 0 are accepted",
        ),
        (
            "journal: { retain_days: 4294967296 }",
            "f:1:25: `journal.retain_days` can't be 4294967296; whole numbers from 0 are accepted",
        ),
    ]);
}

#[test]
fn the_size_of_tool_output_has_a_range() {
    let output = |value: &str, wrong: &str| {
        let source = format!("io: {{ output: {{ max_bytes: {value} }} }}");
        (source, format!("f:1:28: `io.output.max_bytes` {wrong}"))
    };
    for (value, wrong) in [
        ("0", "can't be 0; use a number from 4096 to 67108864"),
        ("4095", "can't be 4095; use a number from 4096 to 67108864"),
        ("67108865", "can't be 67108865; use a number from 4096 to 67108864"),
        ("-1", "can't be -1; whole numbers from 0 are accepted"),
        ("64K", "must be a whole number, not `64K`"),
        ("[1]", "must be a whole number, not a list"),
    ] {
        let (source, expected) = output(value, wrong);
        check_shapes(&[(&source, &expected)]);
    }
    check_shapes(&[
        ("io: 7", "f:1:5: `io` must be a mapping, not a number"),
        (
            "io: { read_files: {} }",
            "f:1:7: unknown key `read_files` in `io`; did you mean `read_file`?",
        ),
        (
            "io:\n  read_file: { max_lines: 0, max_bytes: 1023, max_line_bytes: 15 }\n  shell: { seconds: 86401, output_bytes: 0 }\n  output: { relative_paths: 1 }",
            "f:2:27: `io.read_file.max_lines` can't be 0; use a number from 1 to 1000000\n\
             f:2:41: `io.read_file.max_bytes` can't be 1023; use a number from 1024 to 67108864\n\
             f:2:63: `io.read_file.max_line_bytes` can't be 15; use a number from 16 to 1048576\n\
             f:3:21: `io.shell.seconds` can't be 86401; use a number from 1 to 86400\n\
             f:3:42: `io.shell.output_bytes` can't be 0; use a number from 1024 to 67108864\n\
             f:4:29: `io.output.relative_paths` must be true or false, not a number",
        ),
    ]);
}

#[test]
fn a_cap_of_zero_is_refused() {
    check_shapes(&[(
        "completion_cap:\n  blocks: 0\n  same: 0\n",
        "f:2:11: `completion_cap.blocks` is 0, so no stop would ever be blocked; remove `completion` instead\n\
         f:3:9: `completion_cap.same` is 0, so no stop would ever be blocked; remove `completion` instead",
    )]);
}

#[test]
fn a_duplicate_key_is_an_error_at_any_depth() {
    check(&[
        (
            "mode: observe\nmode: enforce\n",
            "f:2:1: duplicate key `mode`; it is first used at line 1",
        ),
        (
            "tools:\n  a: {}\n  b: { kind: read, kind: write }\n  a: {}\n",
            "f:3:20: duplicate key `kind`; it is first used at line 3\n\
             f:4:3: duplicate key `a`; it is first used at line 2\n\
             f:4:3: two tools are named `a`",
        ),
    ]);
}

#[test]
fn yaml_features_beyond_plain_data_are_refused() {
    check(&[
        ("name: &a acme/x", "f:1:7: anchors are not supported; write the value itself"),
        ("tools: &a {}", "f:1:8: anchors are not supported; write the value itself"),
        ("sections: &a []", "f:1:11: anchors are not supported; write the value itself"),
        ("name: *a", "f:1:7: not valid YAML: while parsing node, found unknown anchor"),
        ("name: !!str x", "f:1:7: tags are not supported; write the value itself"),
        ("tools: !t {}", "f:1:8: tags are not supported; write the value itself"),
        ("? [a]\n: b\n", "f:1:3: a key must be text"),
        ("? {a: b}\n: c\n", "f:1:3: a key must be text"),
        (
            "mode: observe\n---\nmode: enforce\n",
            "f:2:1: a second document starts here; put one document in each file",
        ),
    ]);
}

#[test]
fn a_file_that_is_not_text_is_reported_with_the_position() {
    let rows: [(&[u8], &str); 5] = [
        (b"mode: observe\nname: a\xff/b", "f:2:8: invalid UTF-8"),
        (b"\xfe\xff", "f:1:1: invalid UTF-8"),
        (b"mode: obs\0erve", "f:1:10: the file contains a NUL character"),
        (
            b"\xef\xbb\xbfmoode: 1",
            "f:1:1: unknown key `moode` in the definition; did you mean `mode`?",
        ),
        (b"\xef\xbb\xbfname: a\0b", "f:1:8: the file contains a NUL character"),
    ];
    for (source, expected) in rows {
        assert_eq!(problems_in_bytes(source), expected, "{source:?}");
    }
}

#[test]
fn columns_count_characters_and_skip_the_byte_order_mark() {
    let rows: [(&[u8], &str); 4] = [
        ("ä: x\0".as_bytes(), "f:1:5: the file contains a NUL character"),
        (b"\xc3\xa4: x\xff", "f:1:5: invalid UTF-8"),
        (b"\xef\xbb\xbfa: b\n\0", "f:2:1: the file contains a NUL character"),
        (
            "tools: { ä: { kin: read } }".as_bytes(),
            "f:1:15: unknown key `kin` in a tool; did you mean `kind`?",
        ),
    ];
    let found = rows.map(|(source, _)| problems_in_bytes(source));
    assert_eq!(found, rows.map(|(_, expected)| expected.to_owned()));
}

#[test]
fn a_file_that_is_too_large_is_not_read() {
    let bytes = 4 << 20;
    let fits = vec![b'\n'; bytes];
    assert_eq!(problems_in_bytes(&fits), "ok");
    assert_eq!(
        problems_in_bytes(&vec![b'\n'; bytes + 1]),
        "f:1:1: the file has 4194305 bytes; the maximum is 4194304"
    );
}

#[test]
fn the_nesting_depth_is_limited() {
    let nested = |depth: usize| format!("tools: {}{}", "[".repeat(depth), "]".repeat(depth));
    assert_eq!(problems_in(&nested(31)), "f:1:8: `tools` must be a mapping, not a list");
    assert_eq!(
        problems_in(&nested(32)),
        "f:1:39: lists and mappings are nested deeper than 32 levels"
    );
    // The YAML parser looks ahead and has its own limit.
    assert_eq!(problems_in(&nested(100_000)), "f:1:263: not valid YAML: recursion limit exceeded");
    let checks = |depth: usize| {
        format!("completion: {}{{ files: [a] }}{}", "{ any: [ ".repeat(depth), " ] }".repeat(depth))
    };
    assert_eq!(problems_in(&checks(8)), "ok");
    assert_eq!(problems_in(&checks(9)), "f:1:94: `all` and `any` are nested deeper than 8 levels");
}

#[test]
fn mistakes_beyond_the_maximum_are_only_counted() {
    let source = (0..250).map(|n| format!("bad{n}: 1")).collect::<Vec<_>>().join("\n");
    let complaints = problems_in(&source);
    assert_eq!(complaints.lines().count(), 201);
    assert_eq!(complaints.lines().last(), Some("f: and 50 more problems"));
}

#[test]
fn invalid_yaml_is_reported_with_its_position() {
    check(&[
        (
            "tools: {",
            "f:2:1: not valid YAML: while parsing a node, did not find expected node content",
        ),
        ("a: b: c", "f:1:5: not valid YAML: mapping values are not allowed in this context"),
        (
            "mode: \"x",
            "f:1:7: not valid YAML: while scanning a quoted scalar, found unexpected end of stream",
        ),
    ]);
}

#[test]
fn a_cycle_is_reported_completely() {
    let policy = |body: &str| format!("policies:\n  - sequential_dependency:\n{body}");
    let cycle = "these prerequisites form a cycle:";
    assert_eq!(problems_in(&policy("      a: [a]\n")), format!("f:3:7: {cycle} `a` needs `a`"));
    assert_eq!(
        problems_in(&policy("      a: [b]\n      b: [a]\n")),
        format!("f:3:7: {cycle} `a` needs `b` needs `a`")
    );
    // The path into a cycle is not part of it.
    assert_eq!(
        problems_in(&policy("      x: [a]\n      a: [b]\n      b: [c]\n      c: [ok, a]\n")),
        format!("f:4:7: {cycle} `a` needs `b` needs `c` needs `a`")
    );
    // A tool and its alias are one tool.
    let aliased = format!("tools: {{ a: {{ aliases: [A] }} }}\n{}", policy("      a: [A]\n"));
    assert_eq!(problems_in(&aliased), format!("f:4:7: {cycle} `a` needs `a`"));
    // Two paths to the same tool are not a cycle.
    assert_eq!(problems_in(&policy("      a: [b, c]\n      b: [d]\n      c: [d]\n")), "ok");
}

#[test]
fn a_policy_that_can_never_see_a_tool_is_refused() {
    check(&[
        (
            "sections: [ { name: s, tools: [lint], policies: [ sequential_dependency: { lint: [zzz] } ] } ]",
            "f:1:83: this policy can never see `zzz`: it is not among the tools of section `s`; add it to the section's `tools`, or move the policy to the top level",
        ),
        (
            "sections: [ { name: s, tools: [lint, test], policies: [ sequential_dependency: { lnit: [test] } ] } ]",
            "f:1:82: this policy can never see `lnit`: it is not among the tools of section `s`; did you mean `lint`?",
        ),
        // A policy does not see a tool of another section, although the tool is declared.
        (
            "tools: { lint: {}, pack: {} }\nsections: [ { name: s, tools: [lint], policies: [ sequential_dependency: { lint: [pack] } ] } ]",
            "f:2:83: this policy can never see `pack`: it is not among the tools of section `s`; add it to the section's `tools`, or move the policy to the top level",
        ),
        (
            "tools: { lint: {}, deploy: {} }\npolicies: [ sequential_dependency: { deploy: [lnit] } ]",
            "f:2:47: this policy can never see `lnit`: no such tool is declared; did you mean `lint`?",
        ),
        (
            "tools: { lint: {}, deploy: {} }\npolicies: [ sequential_dependency: { deploy: [ { tool: zzzz } ] } ]",
            "f:2:56: this policy can never see `zzzz`: no such tool is declared; add it to `tools`",
        ),
        // If the file declares no tools, every tool is possible.
        ("policies: [ sequential_dependency: { deploy: [lint] } ]", "ok"),
        // An alias can be used like the name, in a section and at the top level.
        (
            "tools: { lint: { aliases: [L] }, d: {} }\nsections: [ { name: s, tools: [L, d], policies: [ sequential_dependency: { d: [lint] } ] } ]",
            "ok",
        ),
    ]);
}

#[test]
fn a_tool_named_like_a_kind_has_that_kind() {
    check(&[
        ("tools: { exec: { kind: read } }", "f:1:24: a tool named `exec` must have kind `exec`"),
        ("tools: { exec: { kind: exec } }", "ok"),
        // A well-known name is only a default.
        ("tools: { bash: { kind: effect } }", "ok"),
    ]);
}

#[test]
fn one_name_means_one_tool() {
    check(&[
        ("tools: { a: { aliases: [b] }, b: {} }", "f:1:31: two tools are named `b`"),
        ("tools: { a: { aliases: [x] }, b: { aliases: [x] } }", "f:1:46: two tools are named `x`"),
        ("tools: { a: { aliases: [a] } }", "f:1:25: two tools are named `a`"),
        ("tools: { a: { aliases: [x, x] } }", "f:1:28: two tools are named `x`"),
        (
            "tools: { a: { aliases: [A] } }\npolicies: [ sequential_dependency: { a: [b1], A: [b2] } ]",
            "f:2:42: this policy can never see `b1`: no such tool is declared; add it to `tools`\n\
             f:2:47: `a` occurs twice\n\
             f:2:51: this policy can never see `b2`: no such tool is declared; add it to `tools`",
        ),
    ]);
}

#[test]
fn a_path_must_stay_in_the_workspace() {
    check(&[
        ("completion: { files: [../a] }", "f:1:23: `../a` leads out of the workspace"),
        ("completion: { files: [a/../../b] }", "f:1:23: `a/../../b` leads out of the workspace"),
        ("completion: { files: [/../a] }", "f:1:23: `/../a` leads out of the workspace"),
        ("completion: { files: [.] }", "f:1:23: `.` is the workspace, not a file"),
        ("completion: { files: [a/..] }", "f:1:23: `a/..` is the workspace, not a file"),
        ("completion: { files: [/] }", "f:1:23: `/` is the workspace, not a file"),
        ("completion: { files: [\"\"] }", "f:1:23: a path must not be empty"),
        ("completion: { files: [\"a\\0b\"] }", "f:1:23: the path contains a NUL byte"),
        ("completion: { files: [{ path: ../a }] }", "f:1:31: `../a` leads out of the workspace"),
    ]);
}

#[test]
fn names_must_have_the_right_form() {
    let not_a_name = |name: &str| {
        format!("f:1:7: `{name}` is not a name; write it as namespace/key, such as acme/coder")
    };
    for name in ["acme", "a/b/c", "/b", "a/", "a b/c", "ä/b", &format!("{}/b", "x".repeat(65))] {
        assert_eq!(problems_in(&format!("name: \"{name}\"")), not_a_name(name));
    }
    for name in ["a/b", "acme.io/my-agent_2", &format!("{}/b", "x".repeat(64))] {
        assert_eq!(problems_in(&format!("name: {name}")), "ok");
    }
    check(&[
        ("tools: { \"\": {} }", "f:1:10: the name of a tool must not be empty"),
        ("tools: { \"a\\tb\": {} }", "f:1:10: the name of a tool contains a control character"),
        (
            "tools: { t: { aliases: [\"\\e\"] } }",
            "f:1:25: the name of a tool contains a control character",
        ),
    ]);
}

/// A policy on such a tool would have no effect.
#[test]
fn a_tool_that_no_event_can_name_is_refused_in_sections_and_policies_too() {
    check(&[
        (
            "sections: [ { name: s, tools: [\"a\\tb\"] } ]",
            "f:1:32: the name of a tool contains a control character",
        ),
        (
            "policies: [ sequential_dependency: { \"a\\tb\": [c] } ]",
            "f:1:38: the name of a tool contains a control character",
        ),
    ]);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_never_break_the_loader(source in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = load(&source, "f");
    }

    #[test]
    fn arbitrary_yaml_letters_never_break_the_loader(
        source in "([a-z]{1,3}|[-:?,\\[\\]{}#&*!|>'\"%@` \n\t~<0-9]|tools|files|all|sequential_dependency){0,80}"
    ) {
        let _ = load(source.as_bytes(), "f");
    }

    /// Mutations of a valid file reach more code than random bytes. Every error must have an
    /// existing position, and every valid definition must survive encoding and decoding.
    #[test]
    fn mutations_of_a_good_file_never_break_the_loader(
        edits in proptest::collection::vec((any::<proptest::sample::Index>(), 0..5_u8, any::<u8>()), 1..6)
    ) {
        let mut source = FULL.as_bytes().to_vec();
        for (index, edit, byte) in edits {
            if source.is_empty() {
                break;
            }
            let at = index.index(source.len());
            match edit {
                0 => source[at] = byte,
                1 => source[at] ^= 1 << (byte % 8),
                2 => source.insert(at, byte),
                3 => drop(source.remove(at)),
                _ => {
                    // A copy of a piece of the file at another position.
                    let to = (at + usize::from(byte)).min(source.len());
                    let piece = source[at..to].to_vec();
                    let target = usize::from(byte).wrapping_mul(7) % source.len();
                    source.splice(target..target, piece);
                }
            }
        }
        match load(&source, "f") {
            Ok(definition) => {
                prop_assert_eq!(schema_accepts(&source), Some(true));
                let encoded = encode(&definition, &Digest::ZERO);
                prop_assert_eq!(decode(encoded, &Digest::ZERO), Some(definition));
            }
            Err(problems) => {
                let lines = source.split(|byte| *byte == b'\n').count();
                prop_assert!(!problems.is_empty());
                prop_assert!(problems.iter().all(|p| p.line >= 1 && p.line <= lines + 1 && p.column >= 1));
            }
        }
    }
}

#[test]
fn invalid_budgets_are_reported_with_their_positions() {
    let source = "\
tools: { search: {} }
limits:
  cost_usd: 2.5.0
  iterations: { soft: true }
  tool_calls: { serch: 1, search: -1 }
iterations_extension: 0
prices: { m: { input: -1 }, n: 3 }
context: { window: 0, warn: 90, block: 101, ineffective_max: 0 }
";
    let expected = "\
f:3:13: `limits.cost_usd` can't be `2.5.0`; amounts from 0 with up to six decimals are accepted, such as 2.50
f:4:15: `limits.iterations` needs a `max`
f:5:17: this limit can never see `serch`: no such tool is declared; did you mean `search`?
f:5:35: `limits.tool_calls.search` can't be -1; whole numbers from 0 are accepted
f:6:23: `iterations_extension` can't be 0
f:7:14: the price of `m` needs `output`
f:7:23: `input` can't be `-1`; amounts from 0 with up to six decimals are accepted, such as 2.50
f:7:32: a price must be a mapping, not a number
f:7:32: the price of `n` needs `input`
f:7:32: the price of `n` needs `output`
f:8:10: `context` is not in rising order: warn 90, compact 80, block 85; give `warn`, `compact` and `block` in rising order
f:8:20: `context.window` can't be 0
f:8:40: `context.block` can't be 101; use a percentage from 1 to 100
f:8:62: `context.ineffective_max` can't be 0";
    check(&[(source, expected)]);
}

#[test]
fn a_definition_contains_the_table_of_models_only_if_it_needs_it() {
    let has_table = |source: &str| !load(source.as_bytes(), "f").unwrap().models.prices.is_empty();
    assert!(!has_table("limits: { steps: 3 }"));
    assert!(has_table("limits: { cost_usd: 3 }"));
    assert!(has_table("prices: { m: { input: 1, output: 1 } }"));
    assert!(has_table("context: {}"));
    assert!(!has_table("context: null"));
    assert!(has_table("extends: [autonomous]"));
    assert!(!has_table("extends: [coding-agent]"));
}
