# ccache, for everything that is compiled here; one cache for all presets and
# checkouts. Sets MEMDIAG_LAUNCHER (a list, empty without ccache).
find_program(CCACHE_PROGRAM ccache)
set(MEMDIAG_LAUNCHER "")
if(CCACHE_PROGRAM)
  configure_file(${CMAKE_SOURCE_DIR}/cmake/ccache.conf.in
    ${CMAKE_BINARY_DIR}/ccache.conf @ONLY)
  set(MEMDIAG_LAUNCHER
    "env;CCACHE_CONFIGPATH=${CMAKE_BINARY_DIR}/ccache.conf;ccache")
  set(CMAKE_CXX_COMPILER_LAUNCHER ${MEMDIAG_LAUNCHER})
else()
  message(WARNING "ccache is not installed: every build folder compiles everything")
endif()
