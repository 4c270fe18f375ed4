//! Programs and their violations, with exact positions.

use jackline_attempt::Subtype;
use jackline_sandbox_host::protocol::{CallableSpec, Callables};
use proptest::prelude::*;

use super::*;

fn callables() -> Callables {
    let named = |name: &str, external| CallableSpec {
        name: name.to_owned(),
        description: format!("does {name}"),
        external,
    };
    Callables {
        tools: vec![named("read_file", false), named("fetch", true)],
        delegates: vec![named("researcher", true), named("writer", false)],
    }
}

/// Each violation as `subtype line:column`.
fn violations_of(source: &str) -> Vec<String> {
    let show = |it: &ProgramViolation| format!("{} {}:{}", it.subtype, it.at.line, it.at.column);
    check(source, &callables()).iter().map(show).collect()
}

#[track_caller]
fn assert_violations(source: &str, expected: &[&str]) {
    assert_eq!(violations_of(source), expected, "in:\n{source}");
}

#[test]
fn a_program_that_calls_and_answers_has_no_violations() {
    for source in [
        "ok(1)",
        "return ok(tool('read_file')(path='a.txt'))",
        "text = tool('read_file', path='a.txt')\nok({'lines': len(text.split('\\n'))})",
        "import json, re\nfrom collections import Counter\nok(json.dumps(Counter('aab')))",
        "def work(name):\n    reader = tool(name)\n    return reader(path='a')\n\nif __name__ == '__main__':\n    ok(work('read_file'))",
        "class Point:\n    def __init__(self, x):\n        self.x = x\np = Point(1)\np.y = 2\nok(p.x + p.y)",
        "forge('double', 'ok(arguments[\"n\"] * 2)')\nok(tool('double')(n=2))",
        "for name, described in context['tools'].items():\n    print(name.upper(), described)\nok('read_file' in context['tools'])",
        "names = [name for name in context['tools'] if name.startswith('read')]\nok(names)",
        "context['seen'] = context.get('seen', 0) + 1\nok(context['seen'])",
        "try:\n    page = tool('fetch')(url='https://a')\nexcept RuntimeError as caught:\n    error('fetch_failed', str(caught), retriable=True)\nok(page)",
        "try:\n    page = tool('fetch')(url='https://a')\nexcept RuntimeError:\n    ok([])\nok(page)",
        "try:\n    text = tool('read_file')(path='a')\nexcept RuntimeError:\n    ok('there is no such file')\nok(text)",
        "outcome = delegate('writer', task='x')\nif outcome['status'] == 'error':\n    outcome\nelse:\n    ok(outcome['value'])",
        // The program binds this name itself, so it is not the builtin function.
        "input = 3\nvars = [input]\nok(vars)",
    ] {
        assert_violations(source, &[]);
    }
}

#[test]
fn a_syntax_error_is_reported_at_its_position() {
    assert_violations("ok(1", &["syntax_error 1:5"]);
    assert_violations("Here is the program:\nok(1)", &["syntax_error 1:13"]);
    assert_violations("x = 1\nok('\0')", &["syntax_error 2:5"]);
    assert_violations("x = 'ä'; y = = 2", &["syntax_error 1:14"]);
    assert_violations("x = 1\r\ny = = 2", &["syntax_error 2:5"]);
}

#[test]
fn unknown_tools_and_delegates_are_reported() {
    assert_violations("ok(tool('reed_file')(path='a'))", &["unknown_tool 1:9"]);
    assert_violations("call = tool\nx = call('nope', a=1)", &["unknown_tool 2:10"]);
    assert_violations("delegate('read_file', task='x')", &["unknown_tool 1:10"]);
    let objections = check("tool('nope')", &callables());
    let correction = objections[0].correction.as_deref();
    assert_eq!(correction, Some("Call only what exists: read_file, fetch."));
}

#[test]
fn access_to_the_outside_is_forbidden() {
    let row =
        |source: &str, at: &str| assert_violations(source, &[&format!("forbidden_construct {at}")]);
    row("import os", "1:8");
    row("import json, subprocess", "1:14");
    row("from urllib.request import urlopen", "1:1");
    row("from . import x", "1:1");
    row("x = eval('1')", "1:5");
    row("run = exec\nrun('1')", "1:7");
    row("ok(open('/etc/passwd').read())", "1:4");
    row("ok(().__class__)", "1:7");
    row("async def f():\n    pass\nok(1)", "1:1");
    row("def g():\n    yield 1\nok(list(g()))", "2:5");
    row("match 1:\n    case 1:\n        ok(1)", "1:1");
}

#[test]
fn objects_of_the_host_must_not_be_changed() {
    let row = |source: &str, at: &str| {
        assert_violations(source, &[&format!("singleton_method_mutation {at}")]);
    };
    row("tool.call = lambda: 1\nok(1)", "1:1");
    row("reader = tool('read_file')\nreader.run = print", "2:1");
    row("a = tool('read_file')\nb = a\nb.x, c = 1, 2", "3:1");
    row("tool('read_file').run = print", "1:1");
    row("delegate('writer', task='x').value = 1", "1:1");
    row("Agent.execute = print", "1:1");
    row("import json\njson.dumps = print", "2:1");
    row("from math import pi\npi.x = 1", "2:1");
    row("context.get = print", "1:1");
    row("setattr(tool, 'x', 1)", "1:1");
    row("def ok(value):\n    pass", "1:5");
    row("for tool in [1]:\n    pass\nprint(1)", "1:5");
    row("try:\n    pass\nexcept ValueError as error:\n    pass", "3:22");
    row("context = {}", "1:1");
    row("import json as tool", "1:16");
    row("print(ok := 1)", "1:7");
}

#[test]
fn the_tools_in_the_context_are_a_mapping_to_descriptions() {
    let row = |source: &str, at: &str| {
        assert_violations(source, &[&format!("context_tools_shape_misuse {at}")]);
    };
    row("context['tools']['mine'] = print", "1:1");
    row("context['tools'] = []", "1:1");
    row("context['tools'].append('x')", "1:1");
    row("tools = context['tools']\ntools.update({})", "2:1");
    row("tools = context.get('tools', {})\nfirst = tools[0]", "2:9");
    row("ok(context['tools']['read_file'](path='a'))", "1:4");
    row("ok(context['tools']['read_file'].call(path='a'))", "1:4");
    row("ok(context.tools)", "1:4");
    row("for it in context['tools']:\n    print(it['name'])", "2:11");
    row("ok([it.name for it in context['tools']])", "1:5");
    row("def f(context):\n    context['tools'].append(1)\nf(context)", "2:5");
    // This name has another meaning, too, so its use is not certain.
    assert_violations("tools = context['tools']\ntools = []\ntools.append(1)\nok(tools)", &[]);
}

#[test]
fn a_failed_source_must_not_be_replaced_by_a_made_up_value() {
    let row = |source: &str, at: &str| {
        assert_violations(source, &[&format!("hardcoded_external_fallback_success {at}")]);
    };
    row("try:\n    ok(tool('fetch')(url='u'))\nexcept Exception:\n    ok({'price': 42})", "4:5");
    row(
        "get = tool('fetch')\ntry:\n    page = get(url='u')\nexcept Exception:\n    page = 'Dune, Alien'\nok(page)",
        "6:1",
    );
    row(
        "try:\n    it = delegate('researcher', q='x')\nexcept Exception:\n    names = ['Dune']\nok({'names': names})",
        "5:1",
    );
    row("ok(tool('fetch')(url='u') or ['Dune'])", "1:1");
    row(
        "it = delegate('researcher', q='x')\nif it['status'] == 'error':\n    ok('sunny')\nok(it['value'])",
        "3:5",
    );
    row(
        "it = delegate('researcher', q='x')\nif it['status'] != 'ok':\n    return ok([1, 2])\nok(it['value'])",
        "3:12",
    );
}

#[test]
fn all_violations_are_reported_at_once_and_in_order() {
    assert_violations(
        "import os\ntool('nope')()\ntool.x = 1\ncontext.tools\n",
        &[
            "forbidden_construct 1:8",
            "unknown_tool 2:6",
            "singleton_method_mutation 3:1",
            "context_tools_shape_misuse 4:1",
        ],
    );
    let many = "tool('nope')()\n".repeat(100);
    assert_eq!(check(&many, &callables()).len(), VIOLATIONS_MAX);
    for objection in check(&many, &callables()) {
        assert!(Subtype::ALL.iter().any(|it| it.name() == objection.subtype));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..Default::default() })]

    #[test]
    fn any_text_can_be_checked(source in "\\PC{0,200}") {
        check(&source, &callables());
    }

    #[test]
    fn any_sequence_of_words_can_be_checked(
        words in prop::collection::vec(
            prop::sample::select(vec![
                "tool", "(", ")", "'fetch'", "[", "]", "context", "'tools'", "=", ".", "ok", "x",
                "\n", "    ", "try", ":", "except", "for", "in", "import", "json", "if", "==",
                "'error'", "or", ",", "{", "}", "lambda", "def", "f", "1", "é", "\r", "\t", "del",
                "class", "with", "as", "await", "async", "yield", "*", "**", ":=", "f'{x}'", "forge",
            ]),
            0..40,
        ),
    ) {
        let source: String = words.concat();
        check(&source, &callables());
        check(&words.join(" "), &callables());
    }
}
