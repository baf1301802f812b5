#!/bin/sh
# Starts a server by npx, without npm in memory while the server runs: `sh npx.sh NPX ARGS...` (see npx.ts).
#
# npm decides which program npx runs, and installs it if necessary. Then it passes the program to its shell, which is
# this file. In that role the file prints the program and the environment that npm made for it. npm exits, and we become
# the program. So it is the program that npx would run, whatever npx is asked for.
mark='# found by npx'

if [ "$1" = -c ]; then
  # The shell also runs the install scripts of packages.
  [ "$npm_lifecycle_event" = npx ] || exec sh "$@"
  unset npm_config_script_shell
  printf '%s\n' "$mark"
  export -p
  printf 'exec %s\n' "$2"
  exit
fi

[ -x "$0" ] || exec "$@"
# Stdin is for the program.
found=$(npm_config_script_shell=$0 "$@" </dev/null) || exit
case $found in
  *"$mark"*) eval "${found##*"$mark"}" ;;
  *) printf '%s\n' "$found" ;;
esac
