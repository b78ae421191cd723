# Unity files for upstream's libraries of many small sources, or of templates that many of the
# sources use: headers are read, and templates are instantiated, once for each unity file. The
# code is upstream's, so every preset does so, also stock. hooks.cmake includes this file.
#
# CMake's own UNITY_BUILD writes absolute paths into the files, and the compiler cache of every
# other preset and checkout would miss. These files have relative paths.

# memdiag_unite(<target> FILES count [MATCH regex] [EXCEPT regex])
# The sources of a target whose paths match become <count> files. EXCEPT names those that
# cannot share a file: two define the same name, or a header has no include guard. A source
# with options of its own stays alone.
function(memdiag_unite target)
  cmake_parse_arguments(ARG "" "FILES;MATCH;EXCEPT" "" ${ARGN})
  if(NOT TARGET ${target})
    message(FATAL_ERROR
      "memdiag: upstream has no target '${target}' any more; correct cmake/upstream/unity.cmake")
  endif()
  set(folder ${CMAKE_BINARY_DIR}/memdiag_unity)
  get_target_property(dir ${target} SOURCE_DIR)
  get_target_property(sources ${target} SOURCES)
  list(REMOVE_DUPLICATES sources) # upstream names one twice
  set(kept "")
  set(number 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${dir} OUTPUT_VARIABLE path)
    set(alone FALSE)
    foreach(property COMPILE_FLAGS COMPILE_OPTIONS COMPILE_DEFINITIONS SKIP_PRECOMPILE_HEADERS)
      get_source_file_property(value ${path} TARGET_DIRECTORY ${target} ${property})
      if(value)
        set(alone TRUE)
      endif()
    endforeach()
    cmake_path(IS_PREFIX CMAKE_SOURCE_DIR ${path} upstream) # not a file that the build makes
    if(alone OR NOT upstream OR NOT path MATCHES "[.](cc|cpp)$"
        OR (ARG_MATCH AND NOT path MATCHES "${ARG_MATCH}")
        OR (ARG_EXCEPT AND path MATCHES "${ARG_EXCEPT}"))
      list(APPEND kept ${source})
      continue()
    endif()
    cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${folder})
    math(EXPR part "${number} % ${ARG_FILES}")
    string(APPEND text_${part} "#include \"${path}\"\n")
    math(EXPR number "${number} + 1")
  endforeach()
  if(number LESS ARG_FILES)
    message(FATAL_ERROR "memdiag: ${number} sources of '${target}' match; "
      "correct cmake/upstream/unity.cmake")
  endif()
  math(EXPR last "${ARG_FILES} - 1")
  foreach(part RANGE ${last})
    set(file ${folder}/${target}_${part}.cc)
    file(CONFIGURE OUTPUT ${file} CONTENT "${text_${part}}" @ONLY)
    list(APPEND kept ${file})
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${kept})
endfunction()

function(memdiag_unite_upstream)
  memdiag_unite(sql_gis FILES 6)
  memdiag_unite(perfschema FILES 6 MATCH "/table_[^/]+$" EXCEPT "/table_replication_")
  memdiag_unite(sql_dd FILES 6 MATCH "/dd/impl/(tables|types|system_views)/"
    EXCEPT "_extensions[.]cc$|/(abstract_table|column|index|parameter|partition|routine|schema|tablespace)_impl[.]cc$")
  memdiag_unite(mysql_server_component_services FILES 6
    EXCEPT "/(mysql_library|mysql_signal_handler|mysql_statement_service|mysql_stored_program)_imp[.]cc$")
  # A configuration may lack these.
  if(TARGET mysqlx)
    # product.cmake redirects calls of these from other files.
    memdiag_unite(mysqlx FILES 6 EXCEPT "/(message_cache|protocol_decoder|xpl_dispatcher)[.]cc$")
  endif()
  if(TARGET ndbcluster)
    memdiag_unite(ndbcluster FILES 6
      EXCEPT "/(ha_|ndb_(binlog_purger|dd_|metadata_|sync_|thd_ndb|util_table))[^/]*$")
    memdiag_unite(ndbsignaldata_objlib FILES 1)
    memdiag_unite(ndbapi_objlib FILES 2 EXCEPT "/(NdbInterpretedCode|NdbScanFilter|Ndberr)[.]cpp$")
    memdiag_unite(ndbgeneral_objlib FILES 2)
  endif()
endfunction()
