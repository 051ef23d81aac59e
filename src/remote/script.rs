//! The shell scripts that run on hosts. They are constant: paths and other values are arguments,
//! and nothing is inserted into the text. Only POSIX features and programs.

use std::ffi::OsString;

/// Writes stdin to `$4`: through `$1`, of `$2` bytes, with the mode `$3`. A connection that was cut
/// ends the input early; the size then differs.
pub(super) const COPY: &str = r#"
umask 077
cat >"$1" && [ "$(wc -c <"$1")" -eq "$2" ] && chmod "$3" "$1" && mv -f -- "$1" "$4" && exit 0
rm -f -- "$1"
exit 1
"#;

/// Prints facts about the host as `KEY VALUE` lines. `$1` is the work directory, `$2` the path of
/// phalanx or an empty word. The directory is created, private, if its parent exists.
pub(super) const FACTS: &str = r#"
printf 'system %s\n' "$(uname -sm)"
mode() { stat -c %a "$1" 2>/dev/null || stat -f %Lp "$1"; }
if [ -d "$1" ] || (umask 077 && mkdir -p "$1"); then
    printf 'dir made\n'
    [ -w "$1" ] && [ -x "$1" ] && printf 'dir writable\n'
    [ -O "$1" ] && printf 'dir own\n'
    printf 'mode %s\n' "$(mode "$1")"
fi
program=$2
if [ -z "$program" ]; then
    program=$1/bin/phalanx
    [ -x "$program" ] || program=$(command -v phalanx)
fi
if [ -n "$program" ] && [ -x "$program" ]; then
    printf 'phalanx-path %s\n' "$program"
    printf 'phalanx %s\n' "$("$program" --version 2>&1 | head -n 1)"
fi
command -v tmux >/dev/null && printf 'tmux %s\n' "$(tmux -V 2>&1 | head -n 1)"
command -v git >/dev/null && printf 'git %s\n' "$(git --version 2>&1 | head -n 1)"
exit 0
"#;

/// Prints the time in milliseconds since the epoch, or in seconds where `date` knows no fractions.
pub(super) const CLOCK: &str = "date +%s%3N";

/// Returns the command line that runs a script with these arguments.
pub(super) fn argv(script: &str, arguments: &[&str]) -> Vec<OsString> {
    ["sh", "-c", script, "phalanx"].iter().chain(arguments).map(Into::into).collect()
}
