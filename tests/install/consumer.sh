#!/bin/sh
# consumer.sh SOURCE BUILD CC CXX: installs into an empty prefix, moves it, and builds and runs consumer.c
# against it in each way that the README offers.
set -eu
source=$1 build=$2 CC=$3 CXX=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
warn="-Wall -Wextra -Wpedantic -Werror"
cd "$work"

cmake --install "$build" --prefix "$work/first" >/dev/null
mv first moved
library=$(dirname "$(find "$work/moved" -name libnoria.a)")
PKG_CONFIG_PATH=$library/pkgconfig
export PKG_CONFIG_PATH

# shellcheck disable=SC2086 # $warn and what pkg-config prints are lists
{
  cp "$source/tests/install/consumer.c" consumer.c
  cp consumer.c consumer.cpp
  echo "pkg-config, shared"
  "$CC" -std=c99 $warn consumer.c $(pkg-config --cflags --libs noria) -o shared
  LD_LIBRARY_PATH=$library ./shared
  LD_LIBRARY_PATH=$library ldd ./shared | grep -q "libnoria.so.0 => $library/" || { echo "not linked to libnoria.so.0"; exit 1; }
  echo "pkg-config, shared, C++"
  "$CXX" -std=c++11 $warn consumer.cpp $(pkg-config --cflags --libs noria) -o shared_cpp
  LD_LIBRARY_PATH=$library ./shared_cpp
  echo "pkg-config, static"
  "$CC" -std=c99 $warn consumer.c -Wl,-Bstatic $(pkg-config --cflags --libs --static noria | sed 's/-lnoria/-lnoria -Wl,-Bdynamic/') -o archive
  ./archive
  if ldd ./archive | grep noria; then echo "the static program needs libnoria.so"; exit 1; fi
  echo "pkg-config, wholly static"
  "$CC" -std=c99 -static consumer.c $(pkg-config --cflags --libs --static noria) -o whole 2>whole.log || { cat whole.log; exit 1; }
  ./whole
}

# package NAME LANGUAGE EXTENSION TARGET: the same through find_package.
package() {
  echo "find_package, $2, $4"
  mkdir "$1"
  cp "consumer.$3" "$1/"
  cat >"$1/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.13)
project(consumer LANGUAGES $2)
find_package(noria 0.1 REQUIRED)
add_executable(consumer consumer.$3)
target_link_libraries(consumer PRIVATE $4)
END
  cmake -S "$1" -B "$1/build" -DCMAKE_PREFIX_PATH="$work/moved" -DCMAKE_C_COMPILER="$CC" \
    -DCMAKE_CXX_COMPILER="$CXX" >/dev/null
  cmake --build "$1/build" >"$1/log" 2>&1 || { cat "$1/log"; exit 1; }
  "$1/build/consumer"
}
package c_shared C c noria::noria
package c_static C c noria::noria_static
package cpp_shared CXX cpp noria::noria
package cpp_static CXX cpp noria::noria_static
