#!/bin/sh
# front_door.sh SOURCE FOLDER: on a bare machine and without root, each command of ./run names all that it lacks in one line.
set -eu
source=$1
bare=$2/bare
rm -rf "$bare"
mkdir -p "$bare"
for tool in sh dirname date nproc uname; do ln -s "$(command -v "$tool")" "$bare/$tool"; done
printf '#!/bin/sh\necho 1000\n' >"$bare/id"
printf '#!/bin/sh\nexit 1\n' >"$bare/apt-get"
chmod +x "$bare/id" "$bare/apt-get"

asks_for() {
  command=$1
  shift
  status=0
  said=$(PATH=$bare sh "$source/run" "$command" "$bare/prefix" 2>&1) || status=$?
  [ "$status" -eq 1 ] || { echo "./run $command ends with $status: $said"; exit 1; }
  line=$(printf '%s\n' "$said" | grep 'sudo apt-get install')
  [ "$(printf '%s\n' "$line" | wc -l)" -eq 1 ] || { echo "./run $command prints several lines: $said"; exit 1; }
  for package in "$@"; do
    case " $line " in
      *" $package "*) ;;
      *) echo "./run $command does not ask for $package: $line"; exit 1 ;;
    esac
  done
}

asks_for demo g++ cmake ninja-build
asks_for test g++ cmake ninja-build clang llvm-14 python3 pkg-config nginx redis-server redis-tools wrk luajit doxygen patch
asks_for lint g++ cmake ninja-build clang llvm-14 python3 binutils clang-format clang-tidy
asks_for bench g++ cmake ninja-build python3 cargo-web
asks_for mutants g++ cmake ninja-build python3 patch
asks_for install g++ cmake ninja-build
asks_for docs g++ cmake ninja-build doxygen
