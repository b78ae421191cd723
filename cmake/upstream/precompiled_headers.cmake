# Precompiled headers for upstream's largest targets. Parsing headers takes most of the
# time of a cold build. Precompiled headers do not change the generated code, so every
# preset uses them, also stock. hooks.cmake includes this file.
#
# Headers are written in angle brackets. CMake would turn quoted ones into absolute
# paths. A precompiled header with the path of a build folder differs in each preset and
# checkout, and so the compiler cache would miss.

# memdiag_precompile(<target> HEADERS h... [SKIP source...])
function(memdiag_precompile target)
  cmake_parse_arguments(ARG "" "" "HEADERS;SKIP" ${ARGN})
  if(NOT TARGET ${target})
    message(FATAL_ERROR
      "memdiag: upstream has no target '${target}' any more; "
      "correct cmake/upstream/precompiled_headers.cmake")
  endif()
  target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  get_target_property(dir ${target} SOURCE_DIR)
  foreach(source IN LISTS ARG_SKIP)
    set_source_files_properties(${dir}/${source} TARGET_DIRECTORY ${target}
      PROPERTIES SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()

function(memdiag_precompile_upstream)
  set(sql_headers
    <algorithm> <string> <unordered_map> <vector>
    <sql/sql_class.h> <sql/item.h> <sql/field.h> <sql/table.h>
    <sql/handler.h> <sql/sql_lex.h> <sql/dd/cache/dictionary_client.h>)
  # The header of the skipped file has no include guard.
  memdiag_precompile(sql_main HEADERS ${sql_headers}
    SKIP engine_combination_tracker.cc)
  foreach(target sql_dd mysql_server_component_services)
    memdiag_precompile(${target} HEADERS ${sql_headers})
  endforeach()
  foreach(target binlog rpl_replica) # they have sql_dd's options
    target_precompile_headers(${target} REUSE_FROM sql_dd)
  endforeach()
  memdiag_precompile(perfschema HEADERS
    <sql/sql_class.h> <sql/field.h> <sql/table.h>
    <storage/perfschema/pfs_instr.h> <storage/perfschema/pfs_engine_table.h>)
  memdiag_precompile(innobase HEADERS
    <univ.i> <sql/sql_class.h> <buf0buf.h> <dict0dict.h> <row0mysql.h>
    <trx0trx.h> <btr0btr.h> <mtr0mtr.h>)
  # A configuration may lack these plugins.
  if(TARGET group_replication)
    memdiag_precompile(group_replication HEADERS
      <plugin/group_replication/include/plugin.h>)
  endif()
  if(TARGET mysqlx)
    memdiag_precompile(mysqlx HEADERS
      <algorithm> <memory> <string> <vector>
      <plugin/x/src/xpl_log.h> <plugin/x/src/module_mysqlx.h>
      <plugin/x/src/ngs/protocol/protocol_protobuf.h> <plugin/x/src/session.h>)
  endif()
  if(TARGET ndbcluster)
    # The first skipped file is compiled with a definition of its own. The second one, in
    # a debug build, uses a name that a header of the server defines.
    memdiag_precompile(ndbcluster HEADERS ${sql_headers}
      SKIP plugin/ha_ndbcluster.cc plugin/ndb_binlog_thread.cc)
  endif()
endfunction()
