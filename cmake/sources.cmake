# Fetches the sources and makes the source tree of this preset. CMake runs this when it
# configures, and again when a pin or a patch has changed. It takes no time if nothing
# has changed.
set(wanted mysql jemalloc)
if(MEMDIAG_FLAVOUR STREQUAL unit)
  set(wanted jemalloc)
elseif(MEMDIAG_FLAVOUR STREQUAL stock)
  set(wanted mysql)
endif()

function(memdiag_python)
  execute_process(COMMAND ${Python3_EXECUTABLE} ${ARGN} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "Stopped; the reason is in the message above.")
  endif()
endfunction()

set(result ${CMAKE_BINARY_DIR}/sources.result.json)
memdiag_python(${CMAKE_SOURCE_DIR}/tools/build/sources.py ${wanted}
  --build-dir ${CMAKE_BINARY_DIR} --result ${result})
file(READ ${result} json)
string(JSON MEMDIAG_CACHE_DIR GET ${json} cache)
if("jemalloc" IN_LIST wanted)
  string(JSON MEMDIAG_JEMALLOC_SOURCE GET ${json} jemalloc tree)
  string(JSON MEMDIAG_JEMALLOC_VERSION GET ${json} jemalloc version)
  string(JSON MEMDIAG_JEMALLOC_FULL_VERSION GET ${json} jemalloc full_version)
endif()
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  ${CMAKE_SOURCE_DIR}/cmake/sources.json
  ${CMAKE_SOURCE_DIR}/cmake/mysql_signing_key.asc
  ${CMAKE_SOURCE_DIR}/tools/build/pristine.py
  ${CMAKE_SOURCE_DIR}/tools/build/sources.py)

if("mysql" IN_LIST wanted)
  string(JSON MEMDIAG_PRISTINE GET ${json} mysql tree)
  string(JSON MEMDIAG_MYSQL_VERSION GET ${json} mysql version)
  set(MEMDIAG_TREE ${CMAKE_BINARY_DIR}/mysql)
  set(tree_args --pristine ${MEMDIAG_PRISTINE} --tree ${MEMDIAG_TREE})
  if(MEMDIAG_FLAVOUR STREQUAL product)
    file(GLOB patches CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/patches/*/*.patch)
    if(NOT MEMDIAG_DIETS)
      list(APPEND tree_args --no-diets)
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
      ${patches}
      ${CMAKE_SOURCE_DIR}/patches/hooks/series
      ${CMAKE_SOURCE_DIR}/patches/diets/series
      ${CMAKE_SOURCE_DIR}/tools/build/patches.py
      ${CMAKE_SOURCE_DIR}/tools/build/tree.py)
    memdiag_python(${CMAKE_SOURCE_DIR}/tools/build/patches.py lint)
  else()
    list(APPEND tree_args --stock)
  endif()
  memdiag_python(${CMAKE_SOURCE_DIR}/tools/build/tree.py ${tree_args})
endif()
