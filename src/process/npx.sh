#!/bin/sh
# Starts a server by npx, without npm in memory while the server runs: `sh npx.sh MARK NPX ARGS...` (see npx.ts).
#
# npm decides which program npx runs, and installs it if necessary. Then it passes the program to its shell, which is
# this file. In that role the file prints the program and the environment that npm made for it. npm exits, and we become
# the program. So it is the program that npx would run, whatever npx is asked for.
#
# What follows MARK in the output is run as shell code. MARK is random for each start, so no argument and no variable can
# contain it. Our variables have names that no environment has, since assigning an exported variable changes it.

if [ "$1" = -c ]; then
  # The shell also runs the install scripts of packages, which must not know the mark.
  [ "$npm_lifecycle_event" = npx ] || { unset catenary_npx_mark; exec sh "$@"; }
  set -- "$catenary_npx_mark" "$2"
  unset npm_config_script_shell catenary_npx_mark
  printf '%s\n' "$1"
  export -p
  printf 'exec %s\n' "$2"
  exit
fi

catenary_npx_mark=$1
shift
[ -x "$0" ] || exec "$@"
# Stdin is for the program.
catenary_npx_found=$(export catenary_npx_mark; npm_config_script_shell=$0 "$@" </dev/null) || exit
case $catenary_npx_found in
  *"$catenary_npx_mark"*) eval "${catenary_npx_found##*"$catenary_npx_mark"}" ;;
  *) printf '%s\n' "$catenary_npx_found" ;;
esac
