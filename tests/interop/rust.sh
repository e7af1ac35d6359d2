#!/bin/sh
# rust.sh SOURCE_DIR LIBRARY FOLDER: builds the Rust program in FOLDER, against the library, and runs it.
# 77: no cargo, one too old, or the crate it needs is neither here nor to be had.
set -eu
command -v cargo >/dev/null || exit 77
minor=$(cargo --version | sed 's/^cargo 1\.\([0-9]*\)\..*/\1/')
[ "$minor" -ge 83 ] || exit 77
library=$(dirname "$2")
mkdir -p "$3"
cp -r "$1/tests/interop/rust/." "$3"
cd "$3"
cargo fetch --quiet 2>/dev/null || exit 77
RUSTFLAGS="-L native=$library -C link-arg=-Wl,-rpath,$library" cargo build --quiet --offline --target-dir target
exec target/debug/noria-interop
