#!/bin/sh
# readme.sh SOURCE BUILD CC: compiles the C program of README.md as it is printed there, runs it, and
# compares what it prints, in any order, with the output that README.md shows below it.
set -eu
source=$1 build=$2 CC=$3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed -n '/^```c$/,/^```$/p' "$source/README.md" | sed '1d;/^```$/,$d' >"$work/program.c"
sed -n '/^```output$/,/^```$/p' "$source/README.md" | sed '1d;/^```$/,$d' | sort >"$work/promised"
[ -s "$work/program.c" ] && [ -s "$work/promised" ] || { echo "README.md shows no program or no output"; exit 1; }
"$CC" -std=c99 -Wall -Wextra -Wpedantic -Werror "$work/program.c" -I"$source/capi/include" -L"$build" -lnoria -o "$work/program"
LD_LIBRARY_PATH=$build "$work/program" | sort >"$work/printed"
diff "$work/promised" "$work/printed"
