//! A program that runs another one reads its own options only up to the inner command.
//! All words behind it belong to the inner command, even if they look like options.

use jackline_shell::{Access, OpaqueReason, WordKind, WorkingDir, understand};

/// A command with options that also are options of some wrappers.
const COMMAND: &str = "tool -x -e -S -C d -c t -u w -D d -o log -v --something --chdir d --edit \
                       --output log --command t -- -e A=b";

/// Wrappers that run a command in the directory of the line.
const HERE: [&str; 129] = [
    "builtin",
    "bundle exec",
    "bundle exec --gemfile g",
    "bunx",
    "bunx -p pkg",
    "busybox",
    "caffeinate -i",
    "caffeinate -t 5",
    "catchsegv",
    "choom -n 5",
    "choom -n 5 --",
    "chpst -u user",
    "chrt -f 1",
    "chrt -d -T 1 -P 2 -D 3 0",
    "command",
    "command -p",
    "command --",
    "conda run -n env",
    "conda run --name env --no-capture-output",
    "cpulimit -l 50",
    "dbus-run-session",
    "dbus-run-session --config-file f --",
    "direnv exec dir",
    "doas",
    "doas -n -u user",
    "doas -C f",
    "dumb-init",
    "dumb-init -r 1:2",
    "eatmydata",
    "env",
    "env -",
    "env -i",
    "env -u A -u B",
    "env A=b C=d",
    "env -u A -- B=c",
    "env -S ''",
    "env -S '-u A' B=c",
    "env --unset A",
    "env --uns=A",
    "env -a name",
    "exec",
    "exec -a name",
    "exec -cl",
    "exec -cla name",
    "fakechroot -l lib",
    "fakeroot",
    "fakeroot -u",
    "fakeroot -u -l lib -s f --",
    "faketime '1 day ago'",
    "firejail --net=none",
    "flock lock",
    "flock -n -w 5 lock",
    "flock --wait 5 -E 3 lock",
    "gosu user",
    "gtimeout 5",
    "hatch run",
    "ionice",
    "ionice -c 2 -n 7 -t",
    "ionice --class idle",
    "linux64 -R",
    "ltrace -f",
    "ltrace -e malloc -n 2",
    "micromamba run -n env",
    "nice",
    "nice -n 5",
    "nice -5",
    "nice --adjustment=5",
    "nice --adj 5",
    "nohup",
    "npm exec --",
    "npm exec -y --package p --",
    "npx",
    "npx -y -p pkg",
    "npx --package=pkg --",
    "nsenter -t 1 -m -u",
    "nsenter --target 1 --all -S 0 -G 0",
    "numactl -N 0 -m 0",
    "pdm run",
    "pipenv run",
    "pipx run --spec s",
    "pkexec --user root",
    "pnpm exec",
    "pnpm dlx",
    "poetry run",
    "prlimit --nofile=10",
    "prlimit -n10",
    "proxychains4 -q -f conf",
    "pyenv exec",
    "rbenv exec",
    "runuser -u user",
    "runuser -u user --",
    "rye run",
    "script -q log",
    "setarch x86_64 -R",
    "setarch -R",
    "setpriv --reuid 1 --regid=1 --clear-groups",
    "setpriv --groups 1,2 --no-new-privs --",
    "setsid",
    "setsid -w -f",
    "softlimit -m 1000",
    "sshpass -p x",
    "stdbuf -oL -e 0",
    "stdbuf --output=L -i0",
    "strace",
    "strace -f -e trace=open -s 10",
    "strace -E A=b -u user -p 1",
    "strace --trace open -P path",
    "sudo",
    "sudo -n -u root -g root",
    "sudo -u root --",
    "sudo --prompt p --user root --close-from 3",
    "sudo A=b -u root C=d -n",
    "sudo -E -H -p ''",
    "sudo --preserve-env=A,B --host h",
    "systemd-run --scope",
    "systemd-run --user --scope -p A=b",
    "taskset 0x1",
    "taskset -c 0-3",
    "timeout 5",
    "timeout -k 1 -s KILL --foreground 5s",
    "timeout --signal KILL --kill-after=1 5",
    "tini -s --",
    "torsocks -i",
    "unbuffer",
    "unshare -rm -S 0",
    "uv run --with x --python 3.12",
    "uvx --from p",
    "valgrind --leak-check=full",
    "xvfb-run -a -s args",
];

/// Wrappers that run a command repeatedly and add words to it.
const EACH: [&str; 15] = [
    "xargs",
    "xargs -0 -n 1 -P 4",
    "xargs -r --max-procs 4 -d '\\n'",
    "xargs --replace",
    "xargs -i",
    "xargs -iI",
    "xargs -eE",
    "xargs -l -I %",
    "xargs --process-slot-var V -a list",
    "xargs --arg-file=list --max-lines",
    "watch -x",
    "watch -n 1 -d -x",
    "fd pattern -x",
    "fd -e py --exec",
    "parallel -j 4 --joblog jobs",
];

/// Wrappers that run a command in the directory `sub`.
const THERE: [&str; 16] = [
    "env -C sub",
    "env -iC sub A=b",
    "env --chdir=sub",
    "env --chd sub",
    "env -C sub -S 'A=b'",
    "env -S '-C sub'",
    "sudo -D sub",
    "sudo --chdir sub -u root",
    "sudo A=b --chdir=sub",
    "unshare --wd sub -r",
    "nsenter -t 1 -W sub",
    "uv --directory sub run",
    "uv run --directory sub",
    "poetry -C sub run",
    "conda run --cwd sub -n env",
    "systemd-run --working-directory sub",
];

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Checks that a wrapper runs the command with exactly these words.
fn check(wrapper: &str, dir: &WorkingDir, wrong: &mut Vec<String>) {
    let line = format!("{wrapper} {COMMAND}");
    let found = understand(&line);
    let expected = words(COMMAND);
    let runs = found.commands.iter().any(|command| {
        let words: Vec<_> = command.words.iter().map(|word| word.text.to_string()).collect();
        words.starts_with(&expected) && command.dir == *dir && command.effects.is_empty()
    });
    let writes = found.commands.iter().flat_map(|command| &command.effects).any(|effect| {
        effect.access == Access::Edit || &*effect.path.text == "w" || &*effect.path.text == "d"
    });
    let misread = found.commands.iter().any(|command| command.program() == "t");
    if !runs || writes || misread {
        wrong.push(crate::render::render(&found));
    }
}

#[test]
fn a_wrapper_does_not_read_the_options_of_its_command() {
    let mut wrong = Vec::new();
    for wrapper in HERE.iter().chain(&EACH) {
        check(wrapper, &WorkingDir::Start, &mut wrong);
    }
    for wrapper in THERE {
        check(wrapper, &WorkingDir::Path("sub".into()), &mut wrong);
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn nested_wrappers_do_not_read_the_options_of_the_innermost_command() {
    let mut wrong = Vec::new();
    for outer in ["sudo -u root", "env A=b", "timeout 5", "nice -n 5", "xargs -n 1"] {
        for inner in HERE {
            check(&format!("{outer} {inner}"), &WorkingDir::Start, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "{} are wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn a_command_on_another_machine_is_reported_as_opaque_text() {
    for wrapper in [
        "ssh host",
        "ssh -p 22 user@host",
        "docker exec -it box",
        "docker run --rm img",
        "docker --tlscacert ps run img",
        "kubectl exec pod --",
        "kubectl --as get exec pod --",
        "podman exec box",
        "chroot /mnt",
        "sudo -R /mnt",
    ] {
        let line = format!("{wrapper} {COMMAND}");
        let found = understand(&line);
        let is_reported = found
            .opaque_parts
            .iter()
            .any(|part| part.reason == OpaqueReason::Elsewhere && part.text.ends_with(COMMAND));
        assert!(is_reported, "{}", crate::render::render(&found));
    }
}

#[test]
fn find_deletes_the_files_that_pass_the_tests_before_the_deletion() {
    for (line, path, known, recursive) in [
        ("find / -delete", "/", WordKind::Literal, true),
        ("find // -delete", "//", WordKind::Literal, true),
        ("find . -delete", ".", WordKind::Literal, true),
        ("find -delete", ".", WordKind::Literal, true),
        ("find ~ -delete", "~", WordKind::Home, true),
        ("find / -xdev -depth -delete", "/", WordKind::Literal, true),
        ("find / -delete -name x", "/", WordKind::Literal, true),
        ("find -D exec / -delete", "/", WordKind::Literal, true),
        ("find -O3 -L / -delete", "/", WordKind::Literal, true),
        ("find -x -f / -delete", "/", WordKind::Literal, true),
        ("find / -exec echo -name x \\; -delete", "/", WordKind::Literal, true),
        ("find / -printf -name -delete", "/", WordKind::Literal, true),
        ("find /etc -name x -delete", "/etc/**/x", WordKind::Glob, false),
        ("find / -name x -delete", "/**/x", WordKind::Glob, false),
        ("find / -type f -delete", "/**", WordKind::Glob, false),
        ("find . -name x , -delete", "./**", WordKind::Glob, false),
        ("find . -name x -o -delete", "./**", WordKind::Glob, false),
        ("find . ! -name x -delete", "./**", WordKind::Glob, false),
        ("sudo find / -delete", "/", WordKind::Literal, true),
        ("find / -exec rm {} +", "/", WordKind::Literal, false),
        ("find / -exec rm {} +", "/**", WordKind::Glob, false),
        ("find / -exec rm -rf {} \\;", "/", WordKind::Literal, true),
        ("find / -maxdepth 0 -exec rm -rf {} \\;", "/", WordKind::Literal, true),
        ("find /etc -name x -exec rm {} \\;", "/etc/**/x", WordKind::Glob, false),
        ("find . -exec env -u + rm {} \\;", "./**", WordKind::Glob, false),
        ("find /etc -type f -execdir rm x \\;", "x", WordKind::Literal, false),
    ] {
        let found = understand(line);
        let deletes = found.commands.iter().flat_map(|command| &command.effects).any(|effect| {
            effect.access == Access::Delete
                && effect.path.text == path
                && effect.path.kind == known
                && effect.recursive == recursive
        });
        assert!(deletes, "{line}\n{}", crate::render::render(&found));
    }
}
