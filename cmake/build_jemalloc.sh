#!/bin/sh
# build_jemalloc.sh SOURCE ROOT DIR CONFIGURE-FLAG...
# Copies SOURCE to DIR/src (autoconf and make write into it), builds the static library
# with our internals.c from the checkout ROOT in it, installs it into DIR/lib and
# DIR/include. CC, CXX, CFLAGS, CXXFLAGS, MAKE and AUTOCONF come from the environment.
set -eu

source=$1
root=$2
dir=$3
shift 3

rm -rf "$dir"
mkdir -p "$dir"
log=$dir/build.log
ours=mysys/memdiag/jemalloc

build() {
  cp -a "$source" "$dir/src" &&
    cd "$dir/src" &&
    # Copied, so that no path of the checkout gets into the library.
    mkdir -p "$ours" &&
    cp "$root/$ours"/internals.[ch] "$ours/" &&
    "$AUTOCONF" &&
    ./configure --prefix="$dir" "$@" &&
    # Not build_lib_static: that compiles everything twice, for a library of
    # position-independent code that nothing links.
    "$MAKE" -j2 -f Makefile -f "$root/cmake/jemalloc_internals.mk" \
      lib/libjemalloc.a &&
    "$MAKE" install_include &&
    mkdir "$dir/lib" &&
    cp lib/libjemalloc.a "$dir/lib/"
}

if ! build "$@" >"$log" 2>&1; then
  tail -n 40 "$log" >&2
  echo "error: jemalloc could not be built; the whole log is in $log" >&2
  exit 1
fi
# configure falls back silently where it lacks something.
for flag in "$@"; do
  case $flag in
  --enable-prof | --enable-stats | --enable-cxx | --enable-prof-frameptr)
    name=${flag#--enable-}
    grep -Eq "^$name +: 1" "$log" || {
      echo "error: jemalloc was configured without $name; see $log" >&2
      rm -f "$dir/lib/libjemalloc.a"
      exit 1
    }
    ;;
  esac
done
