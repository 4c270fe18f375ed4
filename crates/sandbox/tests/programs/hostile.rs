//! Hostile programs: the worker may end, but the host continues.

use jackline_attempt::ArtifactOutcome;
use jackline_sandbox_host::ProgramLimits;
use serde_json::json;

use crate::world::SandboxWorld;

/// Asserts that the host continues and can run the next program.
#[track_caller]
fn still_works(world: &SandboxWorld) {
    assert_eq!(world.answer("ok(tool('add')(a=1, b=2))"), json!(3));
}

#[test]
fn an_endless_loop_is_ended() {
    let mut world = SandboxWorld::new();
    world.limits.time_ms = 500;
    for source in [
        "while True: pass",
        "while True:\n    try:\n        while True: pass\n    except BaseException:\n        pass",
        "import itertools\nok([n for n in itertools.count() if n < 0])",
    ] {
        assert_eq!(world.fault(source).0, "timeout", "{source}");
        still_works(&world);
    }
}

#[test]
fn memory_is_limited() {
    let mut world = SandboxWorld::new();
    world.limits = ProgramLimits { memory_bytes: 16 << 20, time_ms: 5_000, ..world.limits };
    for source in [
        "a = []\nwhile True: a.append('x' * 1000)",
        "ok('x' * 10 ** 10)",
        "x = [0]\nwhile True: x = x + x",
        "x = 'a'\nwhile True: x += x",
        "ok(2 ** 10 ** 9)",
        "ok(list(range(10 ** 9)))",
        "ok(sorted(range(10 ** 8)))",
        "d = {}\ni = 0\nwhile True:\n    i += 1\n    d[i] = [i] * 100",
        "import json\nok(json.loads('[' * 100000))",
        "ok('%1000000000d' % 1)",
        "ok(f'{1:1000000000}')",
        "ok('x'.ljust(10 ** 9))",
        "ok(bytes(10 ** 9))",
    ] {
        let ended = world.run(source);
        assert!(!matches!(ended, Ok(ArtifactOutcome::Ok { .. })), "{source}: {ended:?}");
        still_works(&world);
    }
    assert_eq!(world.fault("a = []\nwhile True: a.append('x' * 1000)").0, "memory");
}

#[test]
fn recursion_is_limited() {
    let world = SandboxWorld::new();
    assert_eq!(world.fault("def f(n): return f(n + 1)\nf(0)").0, "recursion");
    let deep = "x = []\nfor i in range(100000): x = [x]\nok(x)";
    let fault = world.fault(deep).0;
    assert!(
        ["non_serializable_result", "worker_crash", "recursion"].contains(&fault.as_str()),
        "{fault}"
    );
    let deep = "x = []\nfor i in range(100000): x = [x]\nprint(x)\nok(x == x)";
    let _ = world.run(deep);
    still_works(&world);
}

#[test]
fn a_value_that_is_not_plain_data_is_no_answer() {
    let world = SandboxWorld::new();
    for (source, says) in [
        ("ok({1, 2})", "value is a set; use a list"),
        ("ok({'a': [1, print]})", "value[\"a\"][1] is a function"),
        ("ok(tool('echo'))", "value is a function; call it"),
        ("ok({1: 2})", "value has a key that is an integer, not a string"),
        ("ok(float('nan'))", "value is a float that is not a finite number"),
        ("ok(2 ** 64)", "value is an integer beyond 64 bits"),
        ("ok(b'x')", "value is bytes"),
        ("a = []\na.append(a)\nok(a)", "value[0] is part of itself"),
        ("class A: pass\nok(A())", "value is an object"),
        ("ok(1, sources=[{1}])", "sources[0] is a set"),
        ("ok('x' * 5000000)", "the limit is 4194304"),
    ] {
        let (error_type, message) = world.fault(source);
        assert_eq!(error_type, "non_serializable_result", "{source}: {message}");
        assert!(message.contains(says), "{source}: {message}");
    }
    still_works(&world);
}

#[test]
fn a_hundred_megabytes_of_output_are_counted_but_not_stored() {
    let mut world = SandboxWorld::new();
    world.limits.time_ms = 30_000;
    world.limits.deadline_ms = 60_000;
    let source = "line = 'x' * 9999\nfor i in range(10500): print(line)\nok(1)";
    let (outcome, _, ran) = world.run_and_judge(source);
    assert!(outcome.is_ok(), "{outcome:?}");
    assert_eq!(ran.printed_bytes, 105_000_000);
    assert_eq!(ran.printed.len(), world.limits.printed_bytes_max);
    assert_eq!(world.run_and_judge("print('ä', 1)\nok(1)").2.printed, "ä 1\n");
}

#[test]
fn the_number_of_calls_is_limited() {
    let mut world = SandboxWorld::new();
    world.limits.calls_max = 10;
    let source =
        "while True:\n    try:\n        tool('echo')(a=1)\n    except BaseException:\n        pass";
    let (error_type, message) = world.fault(source);
    assert_eq!((error_type.as_str(), world.called().len()), ("budget_exceeded", 10), "{message}");
    still_works(&world);
}

#[test]
fn nothing_outside_is_reachable() {
    let world = SandboxWorld::new();
    for source in [
        "ok(open('/etc/passwd').read())",
        "import os\nok(os.getenv('PATH'))",
        "from pathlib import Path\nok(Path('/etc/passwd').read_text())",
        "import datetime\nok(str(datetime.datetime.now()))",
        "import socket\nok(1)",
        "ok(__import__('os'))",
        "ok(eval('1'))",
    ] {
        assert_eq!(world.fault(source).0, "execution", "{source}");
    }
}

#[test]
fn text_that_is_no_program_can_be_checked_and_run() {
    let world = SandboxWorld::new();
    for source in ["\0", "ok(1)\0", "ok('\0')", "\u{feff}ok(1)\0", "(", "\u{202e}", "'''", "\\"] {
        assert_ne!(world.validate(source), [""; 0], "{source:?}");
        let _ = world.run(source);
    }
    assert_eq!(world.fault("ok(").0, "invalid_code");
    still_works(&world);
}

#[test]
fn a_worker_that_runs_out_of_memory_ends_and_the_host_continues() {
    let mut world = SandboxWorld::new();
    let patient = world.limits;
    // The interpreter checks its memory limit when a program runs, not while it is parsed.
    world.limits = ProgramLimits { memory_bytes: 1 << 20, source_bytes_max: 32 << 20, ..patient };
    let (error_type, message) = world.fault(&format!("x = [{}]", "1,".repeat(200_000)));
    assert_eq!(error_type, "memory");
    assert!(message.starts_with("the worker ran out of memory"), "{message}");
    world.limits = patient;
    still_works(&world);
}

#[test]
fn ten_megabytes_of_code_are_refused_unparsed_unless_the_limit_allows_them() {
    const BYTES: usize = 10 << 20;
    let mut world = SandboxWorld::new();
    let long = "x = 1\n".repeat(BYTES / 6 + 1);
    assert_eq!(world.validate(&long), ["program_too_long"]);
    world.limits.source_bytes_max = 2 * BYTES;
    let patient = world.limits;
    for source in [long, "(".repeat(BYTES), "1 + ".repeat(BYTES / 4) + "1", "\0".repeat(BYTES)] {
        // The check fails or the worker ends. The host must survive both.
        world.limits.deadline_ms = 500;
        let _ = world.validate(&source);
        let _ = world.run(&source);
        world.limits = patient;
        still_works(&world);
    }
}

#[test]
fn short_programs_with_deep_nesting_can_only_end_the_worker() {
    let world = SandboxWorld::new();
    for source in [
        "1 + ".repeat(16_000) + "1",
        "-".repeat(60_000) + "1",
        "not ".repeat(16_000) + "1",
        "x".to_owned() + &".x".repeat(30_000),
        "x".to_owned() + &"[0]".repeat(20_000),
        "x".to_owned() + &"()".repeat(30_000),
        "x = ".repeat(16_000) + "1",
        "1 < ".repeat(16_000) + "1",
        "1 if 1 else ".repeat(5_000) + "1",
        "if 1:\n    pass\n".to_owned() + &"elif 1:\n    pass\n".repeat(3_000),
        "f'{".repeat(5_000),
        "[".repeat(5_000) + &"]".repeat(5_000),
        "lambda: ".repeat(5_000),
        (0..200).map(|depth| " ".repeat(depth) + "if 1:\n").collect(),
    ] {
        assert!(source.len() <= world.limits.source_bytes_max);
        let _ = world.validate(&source);
        let _ = world.run(&source);
        still_works(&world);
    }
}
