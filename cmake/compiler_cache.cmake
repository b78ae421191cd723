# ccache, for everything that is compiled here; one cache for all presets and
# checkouts. Sets MEMDIAG_LAUNCHER (a list, empty without ccache).
find_program(CCACHE_PROGRAM ccache)
set(MEMDIAG_LAUNCHER "")
if(CCACHE_PROGRAM)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/ccache.conf.in
    ${CMAKE_BINARY_DIR}/ccache.conf @ONLY)
  # One language, which ccache knows a compilation by: rpmbuild sets another than the
  # shell it is called from. Precompiled headers differ each time they are compiled, so
  # that nothing compiled with one is found unless it is found itself.
  set(MEMDIAG_LAUNCHER "env;-u;LC_ALL;-u;LC_CTYPE;-u;LC_MESSAGES;LANG=C.UTF-8"
    "CCACHE_CONFIGPATH=${CMAKE_BINARY_DIR}/ccache.conf;ccache")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MEMDIAG_LAUNCHER})
else()
  message(WARNING "ccache is not installed: every build folder compiles everything")
endif()
