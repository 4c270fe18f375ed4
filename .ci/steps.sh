# Timed steps for a script with `set -euo pipefail`.
#
#   step NAME WARM COLD TIMEOUT FUNCTION
#
# Runs a shell function in its own process with `set -euo pipefail`. The three numbers are minutes.
# WARM and COLD are the budgets with and without a filled cargo target directory. A step that
# exceeds its budget is marked, but does not fail. After TIMEOUT the step and all its processes are
# killed. A step that fails or times out ends the script. When the script ends, it prints a table of
# all steps that ran.

step_rows=()
step_process=

step() {
    local name=$1 warm=$2 cold=$3 limit=$4 function=$5 start=$SECONDS code=0 result=ok
    printf '\n== %s: timeout %s min\n' "$name" "$limit"
    export -f "${function?}"
    # In the background, because then `wait` lets a signal interrupt this script immediately.
    timeout --kill-after=30s "${limit}m" bash -euo pipefail -c "$function" </dev/null &
    step_process=$!
    wait "$step_process" || code=$?
    step_process=
    local seconds=$((SECONDS - start))
    case $code in
        0) ((seconds <= cold * 60)) || result='ok, over budget' ;;
        124) result='TIMED OUT' ;;
        137) result='KILLED' ;;
        *) result="FAILED with $code" ;;
    esac
    step_rows+=("$(printf '%-42s %8d %8d %8d  %s' \
        "$name" "$seconds" "$((warm * 60))" "$((cold * 60))" "$result")")
    printf '== %s: %s after %d s\n' "$name" "$result" "$seconds"
    ((code == 0)) || exit "$code"
}

step_table() {
    ((${#step_rows[@]})) || return 0
    printf '\n%-42s %8s %8s %8s\n' 'step, in seconds' took warm cold
    printf '%s\n' "${step_rows[@]}"
    printf '%-42s %8d\n' all "$SECONDS"
}

# A signal to the script ends the current step. `timeout` passes it on to the processes of the step.
step_stop() {
    [[ -z $step_process ]] || kill -TERM "$step_process" 2>/dev/null || true
    exit "$1"
}

trap step_table EXIT
trap 'step_stop 130' INT
trap 'step_stop 143' TERM
