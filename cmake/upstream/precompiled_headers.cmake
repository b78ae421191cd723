# Precompiled headers for upstream's largest targets: header parsing is most of
# a cold build. They change no code that is generated, so every preset, stock
# included, builds with them. Injected by hooks.cmake.

#
# Headers are named in angle brackets: CMake makes absolute paths of those in quotes,
# and a precompiled header that names the build folder is another one in every preset
# and checkout, to the compiler cache too.

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
  # Skipped: its header has no include guard.
  memdiag_precompile(sql_main HEADERS ${sql_headers}
    SKIP engine_combination_tracker.cc)
  memdiag_precompile(sql_dd HEADERS ${sql_headers})
  memdiag_precompile(perfschema HEADERS
    <sql/sql_class.h> <sql/field.h> <sql/table.h>
    <storage/perfschema/pfs_instr.h> <storage/perfschema/pfs_engine_table.h>)
  memdiag_precompile(innobase HEADERS
    <univ.i> <sql/sql_class.h> <buf0buf.h> <dict0dict.h> <row0mysql.h>
    <trx0trx.h> <btr0btr.h> <mtr0mtr.h>)
endfunction()
