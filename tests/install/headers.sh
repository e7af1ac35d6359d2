#!/bin/sh
# headers.sh SOURCE CC CXX [CC CXX]...: compiles each public header alone, as every standard promised, and asserts that
# it defines no macro without the prefix (A1).
set -eu
include=$1/capi/include
shift
cd "$include"
checked=0
if grep -nE '^ *# *(define|undef) +[A-Za-z_0-9]+' *.h noria/*.h noria/errors.def | grep -vE '# *(define|undef) +NORIA_'; then
  echo "these macros lack the prefix NORIA_"
  exit 1
fi
while [ $# -gt 0 ]; do
  for header in *.h noria/*.h; do
    for standard in c99 c11 c17 c++11 c++14 c++17 c++20; do
      case $standard in
        c++*) compiler=$2 language=c++ ;;
        *) compiler=$1 language=c ;;
      esac
      # Twice, so that a header without its guard is told too.
      printf '#include <%s>\n#include <%s>\ntypedef int not_empty;\n' "$header" "$header" |
        "$compiler" -x "$language" -std="$standard" -I. -Wall -Wextra -Wpedantic -Werror -fsyntax-only - ||
        { echo "$header fails as $standard with $compiler"; exit 1; }
      # A program's own macros are its own, whatever they are called (errors.def is a list of macro calls).
      printf '#define X mine\n#include <%s>\n#ifndef X\n#error "X is gone"\n#endif\ntypedef int not_empty;\n' "$header" |
        "$compiler" -x "$language" -std="$standard" -I. -Wall -Wextra -Wpedantic -Werror -fsyntax-only - ||
        { echo "$header touches the macro X of a program, as $standard with $compiler"; exit 1; }
      checked=$((checked + 1))
    done
  done
  shift 2
done
echo "$checked compilations"
[ "$checked" -gt 0 ]
