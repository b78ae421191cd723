# Builds jemalloc into <build>/jemalloc; defines the target memdiag::jemalloc.
# Every configure flag is here, with its reason. Options that jemalloc reads when
# it starts are in mysys/memdiag/jemalloc/malloc_conf.cc.
find_program(MAKE_PROGRAM NAMES make gmake REQUIRED)
find_program(AUTOCONF_PROGRAM autoconf REQUIRED) # the tarball has no configure

set(flags
  # The tarball has no VERSION file and is no git checkout; without this the
  # version would read 0.0.0.
  --with-version=${MEMDIAG_JEMALLOC_FULL_VERSION}
  # One static library in mysqld; nothing to install, nothing to preload.
  --disable-shared
  --disable-doc
  # MEMDIAG_* tables are made of these counters. (On by default; said so that a
  # new version cannot change it unnoticed.)
  --enable-stats
  # Heap profiles can be switched on in a running server. Off, it costs a branch.
  --enable-prof
  # This server keeps frame pointers: a backtrace is a walk over them instead of
  # the unwinder's tables, ten times cheaper and safe in any context.
  --enable-prof-frameptr)
if(MEMDIAG_JEMALLOC_PREFIXED)
  # operator new stays with the sanitizer, as malloc does.
  list(APPEND flags --with-jemalloc-prefix=je_ --disable-cxx)
else()
  # operator new calls jemalloc itself, and delete passes the size on.
  list(APPEND flags --enable-cxx)
endif()
if(MEMDIAG_JEMALLOC_DEBUG)
  list(APPEND flags --enable-debug)
endif()
# -O3 is jemalloc's own choice; -g1 gives function names and lines in backtraces;
# the frame pointer as in the rest of the server.
set(cflags "-O3 -g1 -fno-omit-frame-pointer")
if(MEMDIAG_JEMALLOC_DEBUG)
  set(cflags "-O1 -g -fno-omit-frame-pointer")
endif()
string(APPEND cflags " -ffile-prefix-map=${CMAKE_BINARY_DIR}=.")
set(launcher "")
if(MEMDIAG_LAUNCHER)
  set(launcher "ccache ")
endif()

set(patches ${CMAKE_SOURCE_DIR}/patches/jemalloc)
file(GLOB patch_files CONFIGURE_DEPENDS ${patches}/*.patch)
set(dir ${CMAKE_BINARY_DIR}/jemalloc)
set(library ${dir}/lib/libjemalloc.a)
add_custom_command(
  OUTPUT ${library} ${dir}/include/jemalloc/jemalloc.h
  COMMAND ${CMAKE_COMMAND} -E env
    "CC=${launcher}${CMAKE_C_COMPILER}" "CXX=${launcher}${CMAKE_CXX_COMPILER}"
    "CCACHE_CONFIGPATH=${CMAKE_BINARY_DIR}/ccache.conf"
    "CFLAGS=${cflags}" "CXXFLAGS=${cflags}"
    "MAKE=${MAKE_PROGRAM}" "AUTOCONF=${AUTOCONF_PROGRAM}"
    sh ${CMAKE_SOURCE_DIR}/cmake/build_jemalloc.sh
    ${MEMDIAG_JEMALLOC_SOURCE} ${patches} ${dir} ${flags}
  DEPENDS ${CMAKE_SOURCE_DIR}/cmake/build_jemalloc.sh ${patch_files}
  COMMENT "Building jemalloc ${MEMDIAG_JEMALLOC_VERSION}, about 1 minute"
  VERBATIM)
add_custom_target(memdiag_jemalloc_build ALL
  DEPENDS ${library} ${dir}/include/jemalloc/jemalloc.h)

add_library(memdiag_jemalloc_archive STATIC IMPORTED GLOBAL)
set_target_properties(memdiag_jemalloc_archive PROPERTIES
  IMPORTED_LOCATION ${library})
# All of the archive: malloc, operator new and the rest replace the C and C++
# libraries', whatever the program itself refers to.
add_library(memdiag_jemalloc INTERFACE)
add_library(memdiag::jemalloc ALIAS memdiag_jemalloc)
add_dependencies(memdiag_jemalloc memdiag_jemalloc_build)
target_include_directories(memdiag_jemalloc INTERFACE ${dir}/include)
target_link_libraries(memdiag_jemalloc INTERFACE
  $<LINK_LIBRARY:WHOLE_ARCHIVE,memdiag_jemalloc_archive> pthread dl m)
if(MEMDIAG_JEMALLOC_PREFIXED)
  target_compile_definitions(memdiag_jemalloc INTERFACE MEMDIAG_JEMALLOC_PREFIXED)
endif()
