# Configures and builds upstream in <build>/bld.
# Options go into an initial-cache file and not on a command line: some values contain
# semicolons, and a changed file makes CMake configure upstream again.
set(upstream_options "# Made by cmake/upstream.cmake.\n")
function(upstream_option name value)
  string(APPEND upstream_options
    "set(${name} [==[${value}]==] CACHE STRING \"\" FORCE)\n")
  set(upstream_options "${upstream_options}" PARENT_SCOPE)
endfunction()

upstream_option(CMAKE_BUILD_TYPE RelWithDebInfo)
# The paths of Debian's packages, so that the tests test what is shipped. packaging/rpm
# adds links at the paths of RPM systems.
foreach(place
    CMAKE_INSTALL_PREFIX=/usr INSTALL_LAYOUT=DEB SYSCONFDIR=/etc/mysql
    MYSQL_UNIX_ADDR=/var/run/mysqld/mysqld.sock
    MYSQL_DATADIR=/var/lib/mysql MYSQL_KEYRINGDIR=/var/lib/mysql-keyring)
  string(REPLACE "=" ";" pair ${place})
  upstream_option(${pair})
endforeach()
# Debug information has line numbers for backtraces and profiles, but no types and no
# variables. Upstream turns those on for this layout; they triple the size of a build
# folder.
upstream_option(MINIMAL_RELWITHDEBINFO ON)
# No private folder of libraries exists.
upstream_option(CMAKE_SKIP_INSTALL_RPATH ON)

# The build has the server and its own tools, but not the router, the programs of a
# cluster, or upstream's unit tests. mysqld contains the engine NDB all the same, as
# stock does (WITH_NDBCLUSTER_STORAGE_ENGINE).
foreach(part UNIT_TESTS ROUTER NDB NDBCLUSTER)
  upstream_option(WITH_${part} OFF)
endforeach()
# The distribution's libraries get its security updates and need no compilation.
foreach(library SSL ICU LZ4 ZSTD ZLIB EDITLINE PROTOBUF)
  upstream_option(WITH_${library} system)
endforeach()
# The plugins of Debian's and upstream's packages.
foreach(plugin AUTHENTICATION_CLIENT_PLUGINS AUTHENTICATION_WEBAUTHN)
  upstream_option(WITH_${plugin} ON)
endforeach()
foreach(library FIDO KERBEROS LDAP SASL MECAB)
  upstream_option(WITH_${library} system)
endforeach()
# MeCab's static library cannot be linked into a plugin. The distribution has a shared
# library and the dictionary.
upstream_option(BUNDLE_MECAB OFF)
# In maintainer mode a debug build treats warnings as errors. Upstream's code causes some
# with the distribution's libraries.
upstream_option(MYSQL_MAINTAINER_MODE OFF)
# Upstream would ask the machine's packaging tools for flags. Fixed flags make the build
# the same everywhere. These are Debian 12's with hardening=+all; upstream adds position
# independence. The prefix map keeps build paths out of all files. Upstream's
# REPRODUCIBLE_BUILD would do so too, but it bypasses the compiler cache.
upstream_option(WITH_PACKAGE_FLAGS OFF)
upstream_option(REPRODUCIBLE_BUILD OFF)
set(hardening "-fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wformat \
-Werror=format-security -ffile-prefix-map=${CMAKE_BINARY_DIR}=.")
set(profile "")
if(MEMDIAG_PROFILE)
  # A profile is named by its object's path in bld, which is the same in both presets.
  # bench/pgo_train.py uses the same folder and the same name for its mark.
  set(profile_folder ${CMAKE_SOURCE_DIR}/build/profile/data)
  # A hash of what upstream's code depends on, with our headers that it inlines. The
  # compiler itself does not report functions without a profile, nor changed ones.
  set(profiled "MySQL ${MEMDIAG_MYSQL_VERSION}, jemalloc ${MEMDIAG_JEMALLOC_VERSION}, \
${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}, ${CMAKE_SOURCE_DIR}")
  file(GLOB_RECURSE inlined ${CMAKE_SOURCE_DIR}/mysys/memdiag/upstream/*.h
    ${CMAKE_SOURCE_DIR}/sql/memdiag/*.h ${CMAKE_SOURCE_DIR}/storage/*.h)
  foreach(part IN LISTS patches inlined)
    file(SHA256 ${part} sum)
    string(APPEND profiled " ${sum}")
  endforeach()
  string(SHA256 profiled "${profiled}")
  set(profile " -fprofile-${MEMDIAG_PROFILE}=${profile_folder} \
-fprofile-prefix-path=${CMAKE_BINARY_DIR}/bld")
endif()
if(MEMDIAG_PROFILE STREQUAL generate)
  # bench/pgo_train.py copies this file to the profile.
  file(WRITE ${CMAKE_BINARY_DIR}/profiled ${profiled})
  # Several threads count at the same time.
  string(APPEND profile " -fprofile-update=prefer-atomic")
  # No training reaches these parts, a fifth of the server. The optimised build compiles
  # them without a profile, so this one leaves them out.
  upstream_option(WITH_NDBCLUSTER_STORAGE_ENGINE OFF)
  upstream_option(WITH_MYSQLX OFF)
elseif(MEMDIAG_PROFILE STREQUAL use)
  if(NOT EXISTS ${profile_folder}/trained) # bench/pgo_train.py writes this file last
    message(FATAL_ERROR "There is no whole profile in ${profile_folder}. Make it, and "
      "packages with it:\n  packaging/build")
  endif()
  # Two lines: what the profile is of, and a sum of its counts.
  file(STRINGS ${profile_folder}/trained trained)
  list(GET trained 0 trained_of)
  list(GET trained -1 counts)
  if(NOT trained_of STREQUAL profiled)
    message(WARNING "The profile in ${profile_folder} is of another version, of other "
      "patches or headers, of another compiler or folder: what differs is compiled without. "
      "Make it anew:\n"
      "  packaging/build")
  endif()
  # Code that the training did not reach is compiled as usual, not for size. The compiler
  # also compares the source's folder, and would report every function as changed. ninja
  # does not know the counts as inputs: the definition, which no code uses, lets other
  # counts compile everything.
  string(APPEND profile " -fprofile-partial-training -fprofile-correction \
-Wno-missing-profile -Wno-coverage-mismatch -DMEMDIAG_COUNTS=${counts}")
  upstream_option(WITH_LTO ON)
  # ccache does not know that these profiles are inputs of a compilation.
  set(MEMDIAG_LAUNCHER "")
endif()
upstream_option(CMAKE_C_FLAGS "${hardening}${profile}")
upstream_option(CMAKE_CXX_FLAGS "${hardening}${profile} ${MEMDIAG_COLLECT_LATE}")
upstream_option(BISON_NO_LINE_OPT --file-prefix-map=${CMAKE_BINARY_DIR}=.)
set(link_flags "-Wl,-z,relro,-z,now")

if(MEMDIAG_LAUNCHER)
  upstream_option(CMAKE_C_COMPILER_LAUNCHER "${MEMDIAG_LAUNCHER}")
  upstream_option(CMAKE_CXX_COMPILER_LAUNCHER "${MEMDIAG_LAUNCHER}")
endif()
if(MOLD_PROGRAM)
  string(APPEND link_flags " -fuse-ld=mold")
endif()
foreach(kind EXE SHARED MODULE)
  upstream_option(CMAKE_${kind}_LINKER_FLAGS "${link_flags}")
endforeach()

upstream_option(CMAKE_PROJECT_MySQL_INCLUDE
  ${CMAKE_SOURCE_DIR}/cmake/upstream/hooks.cmake)
upstream_option(MEMDIAG_FLAVOUR ${MEMDIAG_FLAVOUR})
if(NOT MEMDIAG_FLAVOUR STREQUAL stock)
  # Our sources are compiled through this link. It lies below the build folder, so ccache
  # sees relative paths here too.
  if(NOT IS_SYMLINK ${CMAKE_BINARY_DIR}/memdiag) # do not touch it: a build may use it
    file(CREATE_LINK ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/memdiag SYMBOLIC)
  endif()
  upstream_option(MEMDIAG_ROOT ${CMAKE_BINARY_DIR}/memdiag)
  upstream_option(MEMDIAG_VERSION ${PROJECT_VERSION})
  upstream_option(MEMDIAG_JEMALLOC_DIR ${CMAKE_BINARY_DIR}/jemalloc)
  upstream_option(MEMDIAG_JEMALLOC_VERSION ${MEMDIAG_JEMALLOC_VERSION})
  upstream_option(MEMDIAG_JEMALLOC_PREFIXED ${MEMDIAG_JEMALLOC_PREFIXED})
endif()
if(MEMDIAG_FLAVOUR STREQUAL product)
  upstream_option(MEMDIAG_DIETS ${MEMDIAG_DIETS})
  if(NOT MEMDIAG_SANITIZE) # a sanitizer comes as a shared library of the system
    upstream_option(MEMDIAG_PORTABLE ON)
  endif()
  # Preset sanitize has upstream's own options, WITH_ASAN and WITH_UBSAN.
  if(MEMDIAG_SANITIZE STREQUAL thread)
    upstream_option(MEMDIAG_THREAD_SANITIZER ON)
  endif()
  # A test needs a plugin that was compiled for stock.
  upstream_option(MEMDIAG_PRISTINE ${MEMDIAG_PRISTINE})
  # VERSION() and mysqld --version say 9.7.x-memdiag.
  upstream_option(MYSQL_SERVER_SUFFIX -memdiag)
endif()
foreach(option IN LISTS MEMDIAG_UPSTREAM_ARGS)
  if(NOT option MATCHES "^([A-Za-z0-9_]+)=(.*)$")
    message(FATAL_ERROR "MEMDIAG_UPSTREAM_ARGS: '${option}' is not NAME=VALUE")
  endif()
  upstream_option(${CMAKE_MATCH_1} "${CMAKE_MATCH_2}")
endforeach()
set(options_file ${CMAKE_BINARY_DIR}/upstream_options.cmake)
file(CONFIGURE OUTPUT ${options_file} CONTENT "${upstream_options}" @ONLY)

set(bld ${CMAKE_BINARY_DIR}/bld)
set(configured ${CMAKE_BINARY_DIR}/upstream.configured)
set(depends ${options_file} ${MEMDIAG_TREE}/MYSQL_VERSION)
if(NOT MEMDIAG_FLAVOUR STREQUAL stock)
  list(APPEND depends memdiag_jemalloc_build)
endif()
add_custom_command(
  OUTPUT ${configured}
  COMMAND ${CMAKE_COMMAND} -G Ninja -C ${options_file} -S ${MEMDIAG_TREE} -B ${bld}
  # If an old precompiled header exists when it is compiled again, ccache takes it for
  # one of its own inputs, and the result would never be a hit elsewhere.
  COMMAND find ${bld} -name "*.gch" -delete
  COMMAND ${CMAKE_COMMAND} -E touch ${configured}
  DEPENDS ${depends}
  COMMENT "Configuring MySQL ${MEMDIAG_MYSQL_VERSION}, about half a minute"
  USES_TERMINAL
  VERBATIM)

# Only upstream's own ninja knows whether anything must be built. It answers in a second
# or two, so each build asks it. Ctrl-C loses only the files being compiled.
set(targets "")
if(MEMDIAG_TARGETS)
  set(targets --target ${MEMDIAG_TARGETS})
endif()
set(copy_headers "")
if(MEMDIAG_FLAVOUR STREQUAL product)
  set(copy_headers COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/build/tree.py
    --headers-only --tree ${MEMDIAG_TREE})
endif()
set(build_upstream ${copy_headers}
  COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/build/old_headers.py ${bld}
    ${CMAKE_MAKE_PROGRAM}
  COMMAND ${CMAKE_COMMAND} -E env "NINJA_STATUS=[%f/%t %p, %e s] "
    ${CMAKE_COMMAND} --build ${bld})
add_custom_target(upstream ALL
  ${build_upstream} ${targets}
  DEPENDS ${configured}
  COMMENT "Building MySQL ${MEMDIAG_MYSQL_VERSION}, most of an hour on two cores \
when the compiler cache is empty"
  USES_TERMINAL
  VERBATIM)
# What ./run-demo needs: plugins, components and their libraries take a quarter of the time.
add_custom_target(server
  ${build_upstream} --target mysqld mysql
  DEPENDS ${configured}
  COMMENT "Building mysqld of MySQL ${MEMDIAG_MYSQL_VERSION}"
  USES_TERMINAL
  VERBATIM)
