#!/bin/sh
# build_jemalloc.sh SOURCE ROOT DIR CACHE CONFIGURE-FLAG...
# Copies SOURCE to DIR/src (autoconf and make write into it), builds the static library
# with our internals.c from the checkout ROOT in it, installs it into DIR/lib and
# DIR/include. CC, CXX, CFLAGS, CXXFLAGS, MAKE and AUTOCONF come from the environment.
# CACHE keeps it for the next build folder: most of its time is configure's.
set -eu

source=$1
root=$2
dir=$3
cache=$4
shift 4

ours=mysys/memdiag/jemalloc
# All that decides the result. configure asks the C library; the build folder's path is in
# the flags that keep it out of the library.
key=$({
  printf '%s\n' "$@"
  env | grep -E '^(CC|CXX|CFLAGS|CXXFLAGS)=' | sort | sed "s|${dir%/*}=||"
  ${CC:-cc} --version
  getconf GNU_LIBC_VERSION
  find "$source" -type f -print0 | sort -z | xargs -0 cat
  cat "$0" "$root/cmake/jemalloc_internals.mk" "$root/$ours"/internals.[ch]
} | sha256sum | cut -c1-16)
kept=$cache/jemalloc-$key

rm -rf "$dir"
if [ -d "$kept" ]; then
  # With new times: the library must not be older than this script.
  exec cp -R "$kept" "$dir"
fi
mkdir -p "$dir"
log=$dir/build.log

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
# Another build may keep the same one meanwhile.
unfinished=$(mktemp -d "$kept.XXXXXX")
mkdir -p "$unfinished/src/bin"
cp -a "$dir/lib" "$dir/include" "$log" "$unfinished/"
cp -a "$dir/src/bin/jeprof" "$unfinished/src/bin/"
chmod 755 "$unfinished"
mv -T "$unfinished" "$kept" 2>/dev/null || rm -rf "$unfinished"
