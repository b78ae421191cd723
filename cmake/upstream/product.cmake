# Adds our parts to upstream's build: our sources, jemalloc in mysqld, the version comment.
# hooks.cmake includes this file.
#
# No option is added to the compile command of an upstream file: the compiler cache of
# every other preset would miss. Upstream's files include our headers by their paths in
# this repository; tools/build/tree.py copies the headers to the same paths in the source
# tree.

function(memdiag_need_target name)
  if(NOT TARGET ${name})
    message(FATAL_ERROR
      "memdiag: upstream has no target '${name}' any more; correct "
      "cmake/upstream/product.cmake (docs/moving-to-a-new-upstream.md)")
  endif()
endfunction()

# Our files alone are compiled for the thread sanitizer. Upstream's come from the compiler
# cache of preset dev, and have no reports of their own. A precompiled header would need the
# same option.
function(memdiag_sanitize_threads target)
  if(MEMDIAG_THREAD_SANITIZER)
    set_property(SOURCE ${ARGN} TARGET_DIRECTORY ${target} APPEND PROPERTY
      COMPILE_OPTIONS -fsanitize=thread)
    set_property(SOURCE ${ARGN} TARGET_DIRECTORY ${target} PROPERTY
      SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# Adds our files in a folder to a target of upstream.
function(memdiag_add_sources target folder)
  memdiag_need_target(${target})
  file(GLOB sources CONFIGURE_DEPENDS ${MEMDIAG_ROOT}/${folder}/*.cc)
  if(NOT MEMDIAG_DIETS) # "Leave out:" in the headers of patches/diets names these
    list(FILTER sources EXCLUDE REGEX
      "/memdiag/(calls|documents|fts|fts_words|known_root|parse_nodes|parsed_text|sp_lexes)[.]cc$")
  endif()
  target_sources(${target} PRIVATE ${sources})
  set_property(SOURCE ${sources} TARGET_DIRECTORY ${target} APPEND PROPERTY
    INCLUDE_DIRECTORIES ${MEMDIAG_ROOT})
  # These are linked by themselves, without the sanitizer's library.
  if(NOT target MATCHES "group_replication")
    memdiag_sanitize_threads(${target} ${sources})
  endif()
endfunction()

# Sets version_comment and the text of mysqld --version. Upstream defines the comment in a
# header that nearly every file includes. Only the files that print it get our definition.
function(memdiag_set_version_comment)
  set(diets "")
  if(NOT MEMDIAG_DIETS) # tests of diets look for these words
    set(diets " without diets")
  endif()
  set(header ${CMAKE_BINARY_DIR}/memdiag_version_comment.h)
  file(CONFIGURE OUTPUT ${header} @ONLY CONTENT
[[#include "mysql_version.h"
#undef MYSQL_COMPILATION_COMMENT_SERVER
#define MYSQL_COMPILATION_COMMENT_SERVER \
  "MySQL with memdiag @MEMDIAG_VERSION@@diets@, jemalloc @MEMDIAG_JEMALLOC_VERSION@"
]])
  memdiag_need_target(sql_main)
  memdiag_need_target(mysys)
  foreach(name sql/mysqld sql/sys_vars sql/log sql/sql_parse
      sql/server_component/host_application_signal_imp mysys/print_version)
    set(source ${CMAKE_SOURCE_DIR}/${name}.cc)
    file(STRINGS ${source} lines REGEX MYSQL_COMPILATION_COMMENT_SERVER)
    if(NOT lines)
      message(FATAL_ERROR "memdiag: ${name}.cc does not print the version comment "
        "any more; correct cmake/upstream/product.cmake")
    endif()
    set(target sql_main)
    if(name MATCHES "^mysys/")
      set(target mysys)
    elseif(name MATCHES "^sql/server_component/")
      set(target mysql_server_component_services)
    endif()
    # A precompiled header would have to come first, so these few files use none.
    set_source_files_properties(${source} TARGET_DIRECTORY ${target} PROPERTIES
      SKIP_PRECOMPILE_HEADERS ON COMPILE_OPTIONS "-include;${header}")
  endforeach()
endfunction()

# The linker leads a target's calls of a function to our code. The name is the compiler's: if
# no code called it, --wrap would do nothing. --undefined takes our file from its archive, and
# that needs the function: a name that is gone is an error. Link-time optimization binds a call
# before the linker could lead it, unless the file that has the function is compiled without:
# DEFINED names that file and its target.
function(memdiag_lead_calls target source text name)
  cmake_parse_arguments(ARG "" "" "DEFINED" ${ARGN})
  memdiag_need_target(${target})
  file(STRINGS ${CMAKE_SOURCE_DIR}/${source} lines REGEX "${text}")
  if(NOT lines)
    message(FATAL_ERROR "memdiag: ${source} has no '${text}' any more; correct "
      "cmake/upstream/product.cmake and our file with __wrap_${name}")
  endif()
  target_link_options(${target} PRIVATE LINKER:--wrap=${name} LINKER:--undefined=__wrap_${name})
  if(WITH_LTO AND ARG_DEFINED)
    list(POP_FRONT ARG_DEFINED file owner)
    memdiag_need_target(${owner})
    set_property(SOURCE ${CMAKE_SOURCE_DIR}/${file} TARGET_DIRECTORY ${owner} APPEND PROPERTY
      COMPILE_OPTIONS -fno-lto)
  endif()
endfunction()

# Binds threads of group replication to their pool, in plugin/group_replication.
function(memdiag_bind_group_replication)
  if(NOT TARGET group_replication) # a configuration may lack it
    return()
  endif()
  set(folder plugin/group_replication)
  memdiag_lead_calls(group_replication ${folder}/src/applier.cc "my_thread_init[(][)]"
    _Z14my_thread_initv)
  memdiag_lead_calls(group_replication
    ${folder}/libmysqlgcs/src/bindings/xcom/xcom/xcom_base.cc "xcom_taskmain2[(]xcom_port"
    _Z14xcom_taskmain2t)
  foreach(name malloc calloc free)
    target_link_options(group_replication PRIVATE LINKER:--wrap=${name})
  endforeach()
  if(WITH_LTO)
    memdiag_need_target(mysqlgcs)
    target_compile_options(group_replication PRIVATE -fno-lto)
    target_compile_options(mysqlgcs PRIVATE -fno-lto)
  endif()
  memdiag_add_sources(group_replication plugin/group_replication)
  set_property(SOURCE ${MEMDIAG_ROOT}/plugin/group_replication/memdiag_threads.cc
    TARGET_DIRECTORY group_replication PROPERTY SKIP_PRECOMPILE_HEADERS ON)
endfunction()

# Leads calls by which the X plugin reads a message and runs a command to plugin/x/memdiag_*.cc.
# The linker can do so where another file has the function: unity.cmake leaves the files
# alone that define the plugin's own.
function(memdiag_watch_x_messages)
  if(NOT TARGET mysqlx)
    return()
  endif()
  set(folder plugin/x/src)
  memdiag_lead_calls(mysqld ${folder}/client.cc "m_decoder[.]read_and_decode[(]get_idle_processing[(][)][)]"
    _ZN3ngs16Protocol_decoder15read_and_decodeEPN3xpl5iface14Waiting_for_ioE)
  memdiag_lead_calls(mysqld ${folder}/ngs/message_decoder.cc "m_cache[.]alloc_message[(]message_type"
    _ZN3ngs13Message_cache13alloc_messageEhPNS_15Message_requestE)
  memdiag_lead_calls(mysqld ${folder}/ngs/message_decoder.cc "message->ParseFromCodedStream[(]stream[)]"
    _ZN6google8protobuf11MessageLite20ParseFromCodedStreamEPNS0_2io16CodedInputStreamE)
  memdiag_lead_calls(mysqld ${folder}/session.cc "m_dispatcher[.]execute[(]command[)]"
    _ZN3xpl10Dispatcher7executeERKN3ngs15Message_requestE)
  memdiag_lead_calls(mysqld ${folder}/sql_data_context.cc "command_service_run_command[(]"
    _Z27command_service_run_commandP11Srv_session19enum_server_commandPK8COM_DATAPK12CHARSET_INFOPK22st_command_service_cbs17cs_text_or_binaryPv)
  if(WITH_LTO)
    target_compile_options(mysqlx PRIVATE -fno-lto)
  endif()
  memdiag_add_sources(mysqlx plugin/x)
endfunction()

# Leads the only call by which a component reads the machine's memory to
# components/group_replication_resource_manager/memdiag_memory.cc.
function(memdiag_judge_member)
  set(target component_group_replication_resource_manager)
  if(NOT TARGET ${target}) # a configuration may lack it
    return()
  endif()
  set(folder components/group_replication_resource_manager)
  memdiag_lead_calls(${target} ${folder}/resource_manager_stats_collector.cc
    "get_memory_info[(]m_memory_info[)]"
    _ZN19gr_resource_manager15get_memory_infoERNS_11Memory_InfoE)
  if(WITH_LTO)
    target_compile_options(${target} PRIVATE -fno-lto)
  endif()
  memdiag_add_sources(${target} ${folder})
endfunction()

# Leads calls of the server to our files, where a patch would take a hunk for each.
function(memdiag_lead_server_calls)
  # sql/memdiag/json_schemas.cc
  memdiag_lead_calls(mysqld sql/item_json_func.cc "is_valid_json_schema[(]document_string"
    _Z20is_valid_json_schemaPKcmS0_mRK22JsonSchemaErrorHandlerRKSt8functionIFvvEEPbP29Json_schema_validation_report
    DEFINED sql-common/json_schema.cc sql_main)
  memdiag_lead_calls(mysqld sql/item_json_func.cc "cached_schema_validator->initialize[(]"
    _ZN21Json_schema_validator10initializeEP8MEM_ROOTPKcmRK22JsonSchemaErrorHandlerRKSt8functionIFvvEE
    DEFINED sql-common/json_schema.cc sql_main)
  # sql/memdiag/refused_blocks.cc
  memdiag_lead_calls(mysqld sql/item_strfunc.cc "copy_if_not_alloced[(]str, res, orig_len[)]"
    _Z19copy_if_not_allocedP6StringS0_m DEFINED sql-common/sql_string.cc sql_main)
  memdiag_lead_calls(mysqld sql/item_strfunc.cc "statement_string->c_ptr_safe[(][)]"
    _ZN6String11mem_reallocEmb DEFINED sql-common/sql_string.cc sql_main)
  memdiag_lead_calls(mysqld sql/iterators/composite_iterators.cc "StoreFromTableBuffers[(]m_tables"
    _ZN9pack_rows21StoreFromTableBuffersERKNS_15TableCollectionEP6String DEFINED sql/pack_rows.cc sql_main)
  memdiag_lead_calls(mysqld sql/iterators/composite_iterators.cc "LoadIntoTableBuffers[(]m_tables"
    _ZN9pack_rows20LoadIntoTableBuffersERKNS_15TableCollectionEPKh DEFINED sql/pack_rows.cc sql_main)
  # sql/memdiag/events.cc
  memdiag_lead_calls(mysqld sql/event_data_objects.cc "sphead->execute_procedure[(]thd"
    _ZN7sp_head17execute_procedureEP3THDP14mem_root_dequeIP4ItemE DEFINED sql/sp_head.cc sql_main)
  # sql/memdiag/dropped_programs.cc
  memdiag_lead_calls(mysqld sql/sql_base.cc "sp_cache_routine[(]thd, rt, has_prelocking_list"
    _Z16sp_cache_routineP3THDP19Sroutine_hash_entrybPP7sp_head DEFINED sql/sp.cc sql_main)
  memdiag_lead_calls(mysqld sql/item_func.cc "m_sp->create_result_field[(]thd"
    _ZNK7sp_head19create_result_fieldEP3THDmPKcP5TABLE DEFINED sql/sp_head.cc sql_main)
  # sql/memdiag/unparsed_triggers.cc
  memdiag_lead_calls(mysqld sql/sql_base.cc "triggers->finalize_load[(]thd[)]"
    _ZN24Table_trigger_dispatcher13finalize_loadEP3THD DEFINED sql/table_trigger_dispatcher.cc sql_main)
  # sql/memdiag/persisted_file.cc
  memdiag_lead_calls(mysqld sql/set_var.cc "pv->flush_to_file[(][)]"
    _ZN25Persisted_variables_cache13flush_to_fileEv DEFINED sql/persisted_variable.cc sql_main)
  # sql/memdiag/threads.cc
  memdiag_lead_calls(mysqld mysys/my_thr_init.cc "^bool my_thread_init[(][)]"
    _Z14my_thread_initv DEFINED mysys/my_thr_init.cc mysys)
  # sql/memdiag/session_begins.cc
  memdiag_lead_calls(mysqld sql/conn_handler/connection_handler_per_thread.cc
    "thd_prepare_connection[(]thd[)]" _Z22thd_prepare_connectionP3THD DEFINED sql/sql_connect.cc sql_main)
  # sql/memdiag/idle_buffers.cc: only our hooks refer to it, as to a weak symbol
  target_link_options(mysqld PRIVATE LINKER:--undefined=memdiag_give_back_buffers)
  # plugin/memdiag/server/bridge/perfschema.cc
  memdiag_lead_calls(mysqld storage/perfschema/table_setup_instruments.cc "update_metadata_derived_flags[(][)];"
    _Z29update_metadata_derived_flagsv DEFINED storage/perfschema/pfs_instr.cc perfschema)
  memdiag_lead_calls(mysqld storage/perfschema/table_setup_consumers.cc "update_instruments_derived_flags[(][)];"
    _Z32update_instruments_derived_flagsv DEFINED storage/perfschema/pfs_instr.cc perfschema)
  # sql/memdiag/counted_locks.cc
  memdiag_lead_calls(mysqld storage/perfschema/table_uvar_by_thread.cc "find_thd[(]&finder[)]"
    _ZN18Global_THD_manager8find_thdEP13Find_THD_Impl DEFINED sql/mysqld_thd_manager.cc sql_main)
  memdiag_lead_calls(mysqld sql/sql_parse.cc "find_thd[(]&find_thd_with_id[)]"
    _ZN18Global_THD_manager8find_thdEP16Find_thd_with_id DEFINED sql/mysqld_thd_manager.cc sql_main)
  memdiag_lead_calls(mysqld sql/mysqld_thd_manager.h "~THD_ptr[(][)] { release[(][)]; }"
    _ZN7THD_ptr7releaseEv DEFINED sql/mysqld_thd_manager.cc sql_main)
  memdiag_lead_calls(mysqld storage/perfschema/table_host_cache.cc "hostname_cache_lock[(][)];"
    _Z19hostname_cache_lockv DEFINED sql/hostname_cache.cc sql_main)
  memdiag_lead_calls(mysqld storage/perfschema/table_host_cache.cc "hostname_cache_unlock[(][)];"
    _Z21hostname_cache_unlockv DEFINED sql/hostname_cache.cc sql_main)
  memdiag_lead_calls(mysqld sql/item_timefunc.cc "to_tz = my_tz_find[(]thd"
    _Z10my_tz_findP3THDPK6String DEFINED sql/tztime.cc sql_main)
  # sql/memdiag/transactions.cc
  memdiag_lead_calls(mysqld sql/transaction.cc "res = ha_commit_trans[(]thd, true"
    _Z15ha_commit_transP3THDbb DEFINED sql/handler.cc sql_main)
  memdiag_lead_calls(mysqld sql/transaction.cc "res = ha_rollback_trans[(]thd, true[)]"
    _Z17ha_rollback_transP3THDb DEFINED sql/handler.cc sql_main)
  memdiag_lead_calls(mysqld sql/sql_class.cc "xa::Transaction_cache::detach[(]trn_ctx[)]"
    _ZN2xa17Transaction_cache6detachEP15Transaction_ctx DEFINED sql/xa/transaction_cache.cc sql_main)
  # sql/memdiag/refused_parameters.cc
  memdiag_lead_calls(mysqld sql/sql_parse.cc "mysql_stmt_get_longdata[(]thd, stmt"
    _Z23mysql_stmt_get_longdataP3THDP18Prepared_statementjPhm DEFINED sql/sql_prepare.cc sql_main)
  memdiag_lead_calls(mysqld sql/sql_parse.cc "mysqld_stmt_execute[(]thd, stmt"
    _Z19mysqld_stmt_executeP3THDP18Prepared_statementbmP8PS_PARAM DEFINED sql/sql_prepare.cc sql_main)
  # sql/memdiag/binlog_cache.cc
  memdiag_lead_calls(mysqld sql/binlog_ostream.cc "LOG_PREFIX = \"ML\""
    _Z16open_cached_fileP8IO_CACHEPKcS2_mi DEFINED mysys/mf_cache.cc mysys)
  # storage/innobase/memdiag/sql_in_innodb.cc
  memdiag_lead_calls(mysqld storage/innobase/row/row0upd.cc "innobase_get_computed_value[(]"
    _Z27innobase_get_computed_valuePK8dtuple_tPK12dict_v_col_tPK12dict_table_tPP16mem_block_info_tS9_P3THDP5TABLEPK12dict_field_tS7_P5upd_t
    DEFINED storage/innobase/handler/ha_innodb.cc innobase)
  memdiag_lead_calls(mysqld storage/innobase/row/row0sel.cc "innobase_index_cond[(]"
    _Z19innobase_index_condP11ha_innobase DEFINED storage/innobase/handler/ha_innodb.cc innobase)
  memdiag_lead_calls(mysqld storage/innobase/handler/i_s.cc "schema_table_store_record2[(]thd, table, false[)]"
    _Z26schema_table_store_record2P3THDP5TABLEb DEFINED sql/sql_show.cc sql_main)
  memdiag_lead_calls(mysqld storage/innobase/handler/i_s.cc "OK[(]schema_table_store_record[(]thd, table[)][)]"
    _Z25schema_table_store_recordP3THDP5TABLE DEFINED sql/sql_show.cc sql_main)
  # storage/innobase/memdiag/recovered_pages.cc
  memdiag_lead_calls(mysqld sql/mysqld.cc "^  ha_post_recover[(][)];"
    _Z15ha_post_recoverv DEFINED sql/handler.cc sql_main)
  # storage/innobase/memdiag/kept_statistics.cc
  memdiag_lead_calls(mysqld storage/innobase/dict/dict0dd.cc "dict_table_close[(]table, dict_locked, false"
    _Z16dict_table_closeP12dict_table_tbb DEFINED storage/innobase/dict/dict0dict.cc innobase)
  memdiag_lead_calls(mysqld storage/innobase/include/dict0stats.ic "dict_stats_update[(]table, opt[)]"
    _Z17dict_stats_updateP12dict_table_t23dict_stats_upd_option_tP5trx_tb
    DEFINED storage/innobase/dict/dict0stats.cc innobase)
  memdiag_lead_calls(mysqld storage/innobase/dict/dict0stats_bg.cc "dict_stats_update_retry[(]table, DICT"
    _Z23dict_stats_update_retryP12dict_table_t23dict_stats_upd_option_tm
    DEFINED storage/innobase/dict/dict0stats.cc innobase)
  # storage/innobase/memdiag/spilled_tables.cc
  memdiag_lead_calls(mysqld storage/temptable/src/handler.cc "all_columns_are_fixed_size, per_table_limit[)][)]"
    _ZN9temptable5TableC1EP5TABLEPNS_5BlockEbm DEFINED storage/temptable/src/table.cc temptable)
  if(MEMDIAG_DIETS)
    # storage/innobase/memdiag/documents.cc
    memdiag_lead_calls(mysqld sql/sql_update.cc "table->mark_columns_needed_for_update[(]"
      _ZN5TABLE30mark_columns_needed_for_updateEP3THDb DEFINED sql/table.cc sql_main)
  endif()
endfunction()

function(memdiag_add_to_upstream)
  memdiag_need_target(mysqld)
  set(MEMDIAG_JEMALLOC_INCLUDE ${MEMDIAG_JEMALLOC_DIR}/include)

  # Our layer. Preset linked takes only jemalloc's options from it, so that comparisons
  # use the same options.
  if(MEMDIAG_FLAVOUR STREQUAL linked)
    set(layer ${MEMDIAG_ROOT}/mysys/memdiag/jemalloc/malloc_conf.cc)
  else()
    file(GLOB layer CONFIGURE_DEPENDS ${MEMDIAG_ROOT}/mysys/memdiag/*.cc
      ${MEMDIAG_ROOT}/mysys/memdiag/*/*.cc)
    list(FILTER layer EXCLUDE REGEX /unittest/)
  endif()
  add_library(memdiag_core STATIC ${layer})
  target_include_directories(memdiag_core PRIVATE
    ${MEMDIAG_ROOT} ${MEMDIAG_JEMALLOC_INCLUDE})
  target_compile_features(memdiag_core PRIVATE cxx_std_20)

  add_library(memdiag_jemalloc STATIC IMPORTED)
  set_target_properties(memdiag_jemalloc PROPERTIES
    IMPORTED_LOCATION ${MEMDIAG_JEMALLOC_DIR}/lib/libjemalloc.a)
  if(MEMDIAG_JEMALLOC_PREFIXED)
    target_compile_definitions(memdiag_core PRIVATE MEMDIAG_JEMALLOC_PREFIXED)
  endif()

  # Both archives are linked whole. jemalloc's malloc, operator new and others replace
  # those of the C and C++ libraries in mysqld and in everything that it loads. Our layer
  # has hooks that upstream's libraries refer to as weak symbols. Only mysqld links them;
  # client programs link the same libraries without.
  target_link_libraries(mysqld
    $<LINK_LIBRARY:WHOLE_ARCHIVE,memdiag_core>
    $<LINK_LIBRARY:WHOLE_ARCHIVE,memdiag_jemalloc> pthread dl m)
  set_target_properties(mysqld PROPERTIES INTERFACE_LINK_LIBRARIES "")

  if(MEMDIAG_FLAVOUR STREQUAL product)
    memdiag_add_sources(innobase storage/innobase/memdiag)
    memdiag_add_sources(temptable storage/temptable/memdiag)
    memdiag_add_sources(sql_main sql/memdiag)
    # The system variables are linked into mysqld itself and not into the plugin's archive:
    # nothing refers to their objects, so the linker would leave them out.
    target_sources(mysqld PRIVATE
      ${MEMDIAG_ROOT}/plugin/memdiag/server/variables.cc)
    set_property(SOURCE ${MEMDIAG_ROOT}/plugin/memdiag/server/variables.cc
      TARGET_DIRECTORY mysqld APPEND PROPERTY INCLUDE_DIRECTORIES ${MEMDIAG_ROOT})
    if(MEMDIAG_THREAD_SANITIZER)
      foreach(target mysqld memdiag_core memdiag)
        memdiag_need_target(${target})
      endforeach()
      memdiag_sanitize_threads(mysqld ${MEMDIAG_ROOT}/plugin/memdiag/server/variables.cc)
      target_compile_options(memdiag_core PRIVATE -fsanitize=thread)
      target_compile_options(memdiag PRIVATE -fsanitize=thread)
      target_link_options(mysqld PRIVATE -fsanitize=thread)
    endif()
    memdiag_set_version_comment()
    memdiag_bind_group_replication()
    memdiag_watch_x_messages()
    memdiag_judge_member()
    memdiag_lead_server_calls()
    # The X plugin has this attribute behind the head of a definition, where gcc takes none.
    if(WITH_UBSAN AND TARGET mysqlx)
      target_compile_definitions(mysqlx PRIVATE SUPPRESS_UBSAN=)
    endif()
    if(TARGET memdiag) # the plugin
      target_include_directories(memdiag PRIVATE ${MEMDIAG_ROOT})
      target_include_directories(memdiag_test PRIVATE ${MEMDIAG_ROOT})
    endif()
  endif()
endfunction()
