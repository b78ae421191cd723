# Builds jemalloc into <build>/jemalloc and defines the target memdiag::jemalloc.
# This file gives every configure flag with its reason. The options that jemalloc
# reads at run time are in mysys/memdiag/jemalloc/malloc_conf.cc.
find_program(MAKE_PROGRAM NAMES make gmake REQUIRED)
find_program(AUTOCONF_PROGRAM autoconf REQUIRED) # the tarball has no configure

set(flags
  # The tarball has no VERSION file and is no git checkout. Without this flag the
  # version would be 0.0.0.
  --with-version=${MEMDIAG_JEMALLOC_FULL_VERSION}
  # mysqld contains the static library. Nothing is installed or preloaded.
  --disable-shared
  --disable-doc
  # The MEMDIAG_* tables show these counters. They are on by default; the flag keeps
  # a new version from changing that unnoticed.
  --enable-stats
  # SET GLOBAL memdiag_profile activates heap profiling. Inactive, it costs a branch.
  --enable-prof
  # This server keeps frame pointers. A backtrace that follows them is ten times
  # cheaper than the unwinder's tables, and safe in any context.
  --enable-prof-frameptr
  # jemalloc's configure would ask the processor and the kernel of the build machine. The
  # kernel gives no address beyond 48 bits unless a program asks for one
  # (Documentation/arch/x86/x86_64/5level-paging.rst); with 57, the map of pages has a level more.
  --with-lg-vaddr=48
  --with-lg-hugepage=21)
if(MEMDIAG_JEMALLOC_PREFIXED)
  # The sanitizer keeps operator new, as it keeps malloc.
  list(APPEND flags --with-jemalloc-prefix=je_ --disable-cxx)
else()
  # operator new calls jemalloc directly, and delete passes the size.
  list(APPEND flags --enable-cxx)
endif()
if(MEMDIAG_JEMALLOC_DEBUG)
  list(APPEND flags --enable-debug)
endif()
if(CMAKE_SYSTEM_PROCESSOR STREQUAL aarch64)
  # Kernels have pages of 4, 16 or 64 KB. jemalloc compiles its own page size in, and works
  # on a kernel with smaller ones. Huge pages are of 2 MB where the kernel's are of 4 KB.
  list(APPEND flags --with-lg-page=16)
endif()
if(CMAKE_CROSSCOMPILING)
  list(APPEND flags --host=${CMAKE_LIBRARY_ARCHITECTURE})
endif()
# jemalloc itself chooses -O3. -g1 gives backtraces function names and lines. The
# rest of the server keeps frame pointers too.
set(cflags "-O3 -g1 -fno-omit-frame-pointer")
if(MEMDIAG_JEMALLOC_DEBUG)
  set(cflags "-O1 -g -fno-omit-frame-pointer")
endif()
string(APPEND cflags " -ffile-prefix-map=${CMAKE_BINARY_DIR}=.")
set(launcher "")
if(MEMDIAG_LAUNCHER)
  set(launcher "ccache ")
endif()

set(ours ${CMAKE_SOURCE_DIR}/mysys/memdiag/jemalloc)
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
    ${MEMDIAG_JEMALLOC_SOURCE} ${CMAKE_SOURCE_DIR} ${dir} ${MEMDIAG_CACHE_DIR} ${flags}
  DEPENDS ${CMAKE_SOURCE_DIR}/cmake/build_jemalloc.sh
    ${CMAKE_SOURCE_DIR}/cmake/jemalloc_internals.mk ${ours}/internals.c
    ${ours}/internals.h
  COMMENT "Building jemalloc ${MEMDIAG_JEMALLOC_VERSION}, about 1 minute"
  VERBATIM)
add_custom_target(memdiag_jemalloc_build ALL
  DEPENDS ${library} ${dir}/include/jemalloc/jemalloc.h)

add_library(memdiag_jemalloc_archive STATIC IMPORTED GLOBAL)
set_target_properties(memdiag_jemalloc_archive PROPERTIES
  IMPORTED_LOCATION ${library})
# The whole archive is linked: malloc, operator new and the others replace those of
# the C and C++ libraries, even if the program does not refer to them.
add_library(memdiag_jemalloc INTERFACE)
add_library(memdiag::jemalloc ALIAS memdiag_jemalloc)
add_dependencies(memdiag_jemalloc memdiag_jemalloc_build)
target_include_directories(memdiag_jemalloc INTERFACE ${dir}/include)
target_link_libraries(memdiag_jemalloc INTERFACE
  $<LINK_LIBRARY:WHOLE_ARCHIVE,memdiag_jemalloc_archive> pthread dl m)
if(MEMDIAG_JEMALLOC_PREFIXED)
  target_compile_definitions(memdiag_jemalloc INTERFACE MEMDIAG_JEMALLOC_PREFIXED)
endif()
