# Compiles everything through ccache. All presets and checkouts share one cache.
# Sets MEMDIAG_LAUNCHER (a list, empty without ccache) and MEMDIAG_COLLECT_LATE (an option).

# gcc looks for garbage when it has 128 MB, and looks through a precompiled header of 200 to
# 340 MB too, again and again: 18% of the time of a file, 10% without such a header. The code
# is the same, and ccache.conf keeps the option out of the keys.
set(MEMDIAG_COLLECT_LATE "")
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
  set(MEMDIAG_COLLECT_LATE --param=ggc-min-heapsize=1000000)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:${MEMDIAG_COLLECT_LATE}>)
endif()

find_program(CCACHE_PROGRAM ccache)
set(MEMDIAG_LAUNCHER "")
if(CCACHE_PROGRAM)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/ccache.conf.in
    ${CMAKE_BINARY_DIR}/ccache.conf @ONLY)
  # The locale is part of ccache's key, and rpmbuild sets another locale than the shell
  # that called it. So the locale is fixed here. This matters most for precompiled
  # headers: each compilation of one differs, and a miss there is a miss for every file
  # that uses it.
  set(MEMDIAG_LAUNCHER "env;-u;LC_ALL;-u;LC_CTYPE;-u;LC_MESSAGES;LANG=C.UTF-8"
    "CCACHE_CONFIGPATH=${CMAKE_BINARY_DIR}/ccache.conf;ccache")
  # Upstream's files and jemalloc lie below the build folder, the unit tests below the
  # checkout. Relative to it, they are hits in every other checkout.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${MEMDIAG_LAUNCHER})
else()
  message(WARNING "ccache is not installed: every build folder compiles everything")
endif()
