# Configures and builds upstream in <build>/bld.
find_program(MOLD_PROGRAM mold)

# An initial-cache file instead of -D on a command line: some values hold
# semicolons, and a changed file configures upstream anew.
set(upstream_options "# Made by cmake/upstream.cmake.\n")
function(upstream_option name value)
  string(APPEND upstream_options
    "set(${name} [==[${value}]==] CACHE STRING \"\" FORCE)\n")
  set(upstream_options "${upstream_options}" PARENT_SCOPE)
endfunction()

upstream_option(CMAKE_BUILD_TYPE RelWithDebInfo)
# Where packages have things, so that what is tested is what is shipped: Debian's
# places, which packaging/rpm links to where RPM systems look for them.
foreach(place
    CMAKE_INSTALL_PREFIX=/usr INSTALL_LAYOUT=DEB SYSCONFDIR=/etc/mysql
    MYSQL_UNIX_ADDR=/var/run/mysqld/mysqld.sock
    MYSQL_DATADIR=/var/lib/mysql MYSQL_KEYRINGDIR=/var/lib/mysql-keyring)
  string(REPLACE "=" ";" pair ${place})
  upstream_option(${pair})
endforeach()
# Line numbers for backtraces and profiles, no types and variables: with those, which
# upstream turns on for this layout, a build folder takes three times the space.
upstream_option(MINIMAL_RELWITHDEBINFO ON)
# There is no private folder of libraries to be searched.
upstream_option(CMAKE_SKIP_INSTALL_RPATH ON)

# The server and its own tools; neither the router nor a cluster's programs. The engine
# NDB is in mysqld all the same, as stock has it: WITH_NDBCLUSTER_STORAGE_ENGINE. The unit
# tests are upstream's of upstream.
foreach(part UNIT_TESTS ROUTER NDB NDBCLUSTER)
  upstream_option(WITH_${part} OFF)
endforeach()
# The distribution's libraries: they get its security updates and need not be
# compiled.
foreach(library SSL ICU LZ4 ZSTD ZLIB EDITLINE PROTOBUF)
  upstream_option(WITH_${library} system)
endforeach()
# The plugins that Debian's and upstream's own packages have.
foreach(plugin AUTHENTICATION_CLIENT_PLUGINS AUTHENTICATION_WEBAUTHN)
  upstream_option(WITH_${plugin} ON)
endforeach()
foreach(library FIDO KERBEROS LDAP SASL MECAB)
  upstream_option(WITH_${library} system)
endforeach()
# Not the static library with a copy of its dictionary: it cannot become part of a
# plugin, and the distribution has both.
upstream_option(BUNDLE_MECAB OFF)
# A debug build would take every warning for an error, and upstream's code has
# some with the distribution's libraries.
upstream_option(MYSQL_MAINTAINER_MODE OFF)
# Upstream would take the flags of the machine's packaging tools: fixed ones make
# a build the same everywhere. These are Debian 12's, with hardening=+all; upstream
# adds position independence. No file tells where it was built (upstream's own
# REPRODUCIBLE_BUILD would go past the compiler cache).
upstream_option(WITH_PACKAGE_FLAGS OFF)
upstream_option(REPRODUCIBLE_BUILD OFF)
set(hardening "-fstack-protector-strong -D_FORTIFY_SOURCE=2 -Wformat \
-Werror=format-security -ffile-prefix-map=${CMAKE_BINARY_DIR}=.")
set(profile "")
if(MEMDIAG_PROFILE)
  # Named by the object's place in bld, which is the same in both presets.
  # bench/pgo_train.py has the same folder, and the same name for its mark.
  set(profile_folder ${CMAKE_SOURCE_DIR}/build/profile/data)
  # What a profile is of. The compiler says nothing of functions whose profile it does
  # not find or that have changed.
  set(profiled "MySQL ${MEMDIAG_MYSQL_VERSION}, jemalloc ${MEMDIAG_JEMALLOC_VERSION}, \
${CMAKE_SOURCE_DIR}")
  foreach(patch IN LISTS patches)
    file(SHA256 ${patch} sum)
    string(APPEND profiled " ${sum}")
  endforeach()
  string(SHA256 profiled "${profiled}")
  set(profile " -fprofile-${MEMDIAG_PROFILE}=${profile_folder} \
-fprofile-prefix-path=${CMAKE_BINARY_DIR}/bld")
endif()
if(MEMDIAG_PROFILE STREQUAL generate)
  # bench/pgo_train.py puts it beside the profile.
  file(WRITE ${CMAKE_BINARY_DIR}/profiled ${profiled})
  # Threads count at the same time.
  string(APPEND profile " -fprofile-update=prefer-atomic")
  # A fifth of the server that no training comes to: compiled without a profile in the
  # optimised build, so not compiled at all here.
  upstream_option(WITH_NDBCLUSTER_STORAGE_ENGINE OFF)
  upstream_option(WITH_MYSQLX OFF)
elseif(MEMDIAG_PROFILE STREQUAL use)
  if(NOT EXISTS ${profile_folder}/trained) # the last that bench/pgo_train.py writes
    message(FATAL_ERROR "There is no whole profile in ${profile_folder}. Make it:\n"
      "  cmake --preset profile && cmake --build --preset profile && bench/pgo_train.py")
  endif()
  file(READ ${profile_folder}/trained trained)
  if(NOT trained STREQUAL profiled)
    message(WARNING "The profile in ${profile_folder} is of another version, of other "
      "patches or of another folder: what differs is compiled without. Make it anew:\n"
      "  cmake --preset profile && cmake --build --preset profile && bench/pgo_train.py")
  endif()
  # What the training did not reach is compiled as ever, not for size. A source's folder
  # is part of what the compiler compares: it would find every function changed.
  string(APPEND profile " -fprofile-partial-training -fprofile-correction \
-Wno-missing-profile -Wno-coverage-mismatch")
  upstream_option(WITH_LTO ON)
  # The compiler cache does not know the profile's files by these names.
  set(MEMDIAG_LAUNCHER "")
endif()
upstream_option(CMAKE_C_FLAGS "${hardening}${profile}")
upstream_option(CMAKE_CXX_FLAGS "${hardening}${profile}")
upstream_option(BISON_NO_LINE_OPT --file-prefix-map=${CMAKE_BINARY_DIR}=.)
set(link_flags "-Wl,-z,relro,-z,now")

if(MEMDIAG_LAUNCHER)
  upstream_option(CMAKE_C_COMPILER_LAUNCHER "${MEMDIAG_LAUNCHER}")
  upstream_option(CMAKE_CXX_COMPILER_LAUNCHER "${MEMDIAG_LAUNCHER}")
endif()
if(MOLD_PROGRAM)
  # Many times faster than the default linker: mysqld is linked in seconds.
  string(APPEND link_flags " -fuse-ld=mold")
endif()
foreach(kind EXE SHARED MODULE)
  upstream_option(CMAKE_${kind}_LINKER_FLAGS "${link_flags}")
endforeach()

upstream_option(CMAKE_PROJECT_MySQL_INCLUDE
  ${CMAKE_SOURCE_DIR}/cmake/upstream/hooks.cmake)
upstream_option(MEMDIAG_FLAVOUR ${MEMDIAG_FLAVOUR})
if(NOT MEMDIAG_FLAVOUR STREQUAL stock)
  # Our own sources are compiled through this link: below the build folder, so
  # that their paths are relative to ccache too.
  if(NOT IS_SYMLINK ${CMAKE_BINARY_DIR}/memdiag) # a build may be using it
    file(CREATE_LINK ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/memdiag SYMBOLIC)
  endif()
  upstream_option(MEMDIAG_ROOT ${CMAKE_BINARY_DIR}/memdiag)
  upstream_option(MEMDIAG_VERSION ${PROJECT_VERSION})
  upstream_option(MEMDIAG_JEMALLOC_DIR ${CMAKE_BINARY_DIR}/jemalloc)
  upstream_option(MEMDIAG_JEMALLOC_VERSION ${MEMDIAG_JEMALLOC_VERSION})
  upstream_option(MEMDIAG_JEMALLOC_PREFIXED ${MEMDIAG_JEMALLOC_PREFIXED})
endif()
if(MEMDIAG_FLAVOUR STREQUAL product)
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
  # A precompiled header that is there when it is compiled is one of its own
  # dependencies to the compiler cache, and would be a hit nowhere else.
  COMMAND find ${bld} -name "*.gch" -delete
  COMMAND ${CMAKE_COMMAND} -E touch ${configured}
  DEPENDS ${depends}
  COMMENT "Configuring MySQL ${MEMDIAG_MYSQL_VERSION}, about half a minute"
  USES_TERMINAL
  VERBATIM)

# Nothing to do is a question that only upstream's own ninja can answer, in a
# second or two, so it is asked each time. Ctrl-C loses the files being compiled.
set(targets "")
if(MEMDIAG_TARGETS)
  set(targets --target ${MEMDIAG_TARGETS})
endif()
set(copy_headers "")
if(MEMDIAG_FLAVOUR STREQUAL product)
  set(copy_headers COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/build/tree.py
    --headers-only --tree ${MEMDIAG_TREE})
endif()
add_custom_target(upstream ALL
  ${copy_headers}
  COMMAND ${CMAKE_COMMAND} -E env "NINJA_STATUS=[%f/%t %p, %e s] "
    ${CMAKE_COMMAND} --build ${bld} ${targets}
  DEPENDS ${configured}
  COMMENT "Building MySQL ${MEMDIAG_MYSQL_VERSION}, most of an hour on two cores \
when the compiler cache is empty"
  USES_TERMINAL
  VERBATIM)
