#!/bin/sh
# luajit.sh SOURCE_DIR LIBRARY CC: preprocesses the header, whose system includes LuaJIT knows by itself, and runs the
# program. 77: LuaJIT is not installed.
set -eu
command -v luajit >/dev/null || exit 77
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
: >"$folder/stddef.h"
: >"$folder/stdint.h"
"$3" -E -P -nostdinc -DNULL=0 -I"$folder" -I"$1/capi/include" "$1/capi/include/noria/noria.h" >"$folder/noria.i"
luajit "$1/tests/interop/luajit_test.lua" "$2" "$folder/noria.i"
