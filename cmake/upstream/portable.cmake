# Links what differs between distributions into the programs, so that one set of binaries
# runs on all of them (docs/packages.md): the C++ library, and the libraries whose file
# names carry a version. hooks.cmake includes this file.
#
# Nothing is compiled for it. Debian's -dev packages have the archives beside the headers
# that the build reads, and no compile command changes. packaging/make/portable.py fails
# on a program that needs more than its list.
#
# - The C++ library. mysqld exports its copy. The loader asks mysqld first, so a plugin
#   uses mysqld's copy and not the plugin's: exceptions, locales and operator new cross the
#   border as with a shared library. A client's plugin uses its own.
# - libgcc_s stays shared: all objects of a process need one unwinder, glibc loads this
#   one too, and every system has it.
# - protobuf. Its archive uses a thread's variable in a way that only a program can. So
#   mysqld has all of protobuf-lite, and group replication uses that. The two plugins of
#   telemetry need the whole library, and keep the distribution's.
# - A program leaves out the functions and data that it does not use: ten small programs
#   have 0.8 instead of 8 MB. mysqld keeps all, for plugins.
# - The symbols of C archives are hidden: OpenSSL or curl may bring another version of
#   zlib or zstd into the process.
set(MEMDIAG_ARCHIVES /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE})
set(memdiag_hidden z zstd lz4 aio edit tinfo icui18n icuuc)
foreach(name IN LISTS memdiag_hidden ITEMS bsd icudata protobuf protobuf-lite)
  if(NOT EXISTS ${MEMDIAG_ARCHIVES}/lib${name}.a)
    message(WARNING "memdiag: ${MEMDIAG_ARCHIVES}/lib${name}.a is not here, so this build "
      "runs on this version of this distribution alone")
    return()
  endif()
endforeach()
set(arc4random ${CMAKE_BINARY_DIR}/arc4random.o)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_LIST_DIR}/arc4random.c ${CMAKE_CURRENT_LIST_DIR}/icu_data.sh)
execute_process(COMMAND ${CMAKE_C_COMPILER} -O2 -fPIC -c -o ${arc4random}
  ${CMAKE_CURRENT_LIST_DIR}/arc4random.c COMMAND_ERROR_IS_FATAL ANY)
# One option for each: mold 1.10 never ends with a list.
list(TRANSFORM memdiag_hidden REPLACE "(.+)" "-Wl,--exclude-libs=lib\\1.a")
list(JOIN memdiag_hidden " " memdiag_hidden)
foreach(kind EXE SHARED MODULE)
  string(APPEND CMAKE_${kind}_LINKER_FLAGS " ${arc4random} -static-libstdc++ ${memdiag_hidden}")
endforeach()
string(APPEND CMAKE_EXE_LINKER_FLAGS " -Wl,--gc-sections")
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL memdiag_link_portably)

# Sets a list of libraries of a target. The further arguments are names of archives, or paths.
function(memdiag_set_archives target list)
  list(TRANSFORM ARGN REPLACE "^([^/]+)$" "${MEMDIAG_ARCHIVES}/lib\\1.a")
  set_property(TARGET ${target} PROPERTY ${list} ${ARGN})
endfunction()

# Replaces a library, where it is there, in both lists of a target. A path stays as it is.
function(memdiag_replace_library target library)
  list(TRANSFORM ARGN REPLACE "^([^/]+)$" "${MEMDIAG_ARCHIVES}/lib\\1.a")
  foreach(property LINK_LIBRARIES INTERFACE_LINK_LIBRARIES)
    get_target_property(libraries ${target} ${property})
    string(REGEX REPLACE "(^|;|:)${library}(;|>|$)" "\\1${ARGN}\\2" libraries "${libraries}")
    if(libraries)
      set_property(TARGET ${target} PROPERTY ${property} ${libraries})
    endif()
  endforeach()
endfunction()

function(memdiag_link_portably)
  memdiag_set_archives(zlib_interface INTERFACE_LINK_LIBRARIES z)
  memdiag_set_archives(zstd_interface INTERFACE_LINK_LIBRARIES zstd)
  memdiag_set_archives(lz4_interface INTERFACE_LINK_LIBRARIES lz4)
  set(icu ${CMAKE_BINARY_DIR}/libicudata)
  execute_process(COMMAND ${CMAKE_COMMAND} -E env CC=${CMAKE_C_COMPILER}
    sh ${MEMDIAG_ROOT}/cmake/upstream/icu_data.sh ${MEMDIAG_ARCHIVES}/libicudata.a ${icu}
    COMMAND_ERROR_IS_FATAL ANY)
  memdiag_set_archives(icu_interface INTERFACE_LINK_LIBRARIES
    icui18n icuuc ${icu}/icudata.o)
  # libedit needs three objects of libbsd, whose others would replace the C library's.
  set(bsd ${CMAKE_BINARY_DIR}/libbsd)
  file(MAKE_DIRECTORY ${bsd})
  execute_process(COMMAND ${CMAKE_AR} x ${MEMDIAG_ARCHIVES}/libbsd.a strlcpy.o unvis.o vis.o
    WORKING_DIRECTORY ${bsd} COMMAND_ERROR_IS_FATAL ANY)
  memdiag_replace_library(mysql "${EDITLINE_LIBRARY}" edit tinfo
    ${bsd}/strlcpy.o ${bsd}/unvis.o ${bsd}/vis.o)
  memdiag_replace_library(innobase aio aio)

  # Upstream lists what the shared library needs: the C++ library, which comes last anyway.
  foreach(name protobuf protobuf-lite)
    set_target_properties(ext::lib${name} PROPERTIES
      IMPORTED_LOCATION ${MEMDIAG_ARCHIVES}/lib${name}.a INTERFACE_LINK_LIBRARIES "")
  endforeach()
  set_property(TARGET mysqld APPEND PROPERTY
    LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,ext::libprotobuf-lite")
  target_link_options(mysqld PRIVATE -Wl,--no-gc-sections)
  if(TARGET group_replication)
    set_property(TARGET gr_protobuf_lite PROPERTY INTERFACE_LINK_LIBRARIES "")
    get_target_property(libraries group_replication LINK_LIBRARIES)
    list(REMOVE_ITEM libraries ext::libprotobuf-lite)
    set_property(TARGET group_replication PROPERTY LINK_LIBRARIES ${libraries})
  endif()
  foreach(target component_telemetry telemetry_client)
    if(TARGET ${target}) # the first library that has a symbol counts
      target_link_options(${target} BEFORE PRIVATE ${MEMDIAG_ARCHIVES}/libprotobuf.so -lstdc++)
    endif()
  endforeach()
endfunction()
