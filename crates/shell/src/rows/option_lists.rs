//! Option lists that are long or that several programs share. A list contains the
//! options that take a value. A `?` marks options that take the rest of their own word.

/// Python and its versions.
pub(super) const PYTHON: &str = "c m W X check-hash-based-pycs";
pub(super) const COPY: &str = "t S target-directory suffix";
pub(super) const GREP: &str = "e f m A B C D d regexp file max-count after-context before-context context \
                    include exclude exclude-dir exclude-from color colour label binary-files directories devices";
pub(super) const TEST: &str = "";
pub(super) const DOCKER: &str = "H host l log-level config context c";
/// `sudo`, `sudoedit`.
pub(super) const SUDO: &str = "u g h p C D R T U r t a c user group host prompt close-from chdir chroot \
                    command-timeout other-user role type auth-type login-class";
pub(super) const SU: &str = "c s g G w u command session-command shell group supp-group \
                  whitelist-environment user";
pub(super) const STRACE: &str = "a b e E I o O p P s S u U X output env user attach trace signal status \
                      string-limit columns summary-sort-by interruptible detach-on trace-path \
                      inject fault read write kvm const-print-style argv0";
pub(super) const SETPRIV: &str = "ambient-caps inh-caps bounding-set ruid euid rgid egid reuid regid groups \
                       securebits pdeathsig selinux-label apparmor-profile ptracer \
                       landlock-access landlock-rule seccomp-filter";
pub(super) const NUMACTL: &str = "i p P N C m w interleave preferred preferred-many cpunodebind \
                       physcpubind membind weighted-interleave";
pub(super) const SYSTEMD_RUN: &str = "u p E H M unit property setenv host machine uid gid nice slice \
                           description service-type working-directory on-active on-boot \
                           on-startup on-unit-active on-unit-inactive on-calendar \
                           timer-property path-property socket-property background";
pub(super) const PARALLEL: &str = "j a I n N L S C d P s E J jobs arg-file max-args max-replace-args max-lines \
                        sshlogin sshloginfile slf colsep delimiter max-procs max-chars delay joblog \
                        results tmpdir timeout retries halt load memfree nice basefile bf return \
                        workdir wd env block recstart recend tagstring profile";
pub(super) const NPX: &str =
    "p c w package call prefix cache registry userconfig workspace loglevel";
pub(super) const NPM: &str = "prefix C cwd dir w workspace F filter registry userconfig loglevel";
