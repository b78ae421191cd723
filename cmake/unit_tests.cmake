# Builds our layer without the server: mysys/memdiag, the rooms of the plugin that do not
# use the server, and this preset's jemalloc. Each *_test.cc below a unittest/ is a program. One
# program generates and checks docs/reference.md.
file(GLOB tests CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/mysys/memdiag/unittest/*/*_test.cc
  ${CMAKE_SOURCE_DIR}/sql/memdiag/unittest/*_test.cc
  ${CMAKE_SOURCE_DIR}/storage/*/memdiag/unittest/*_test.cc
  ${CMAKE_SOURCE_DIR}/plugin/memdiag/unittest/*/*_test.cc)
file(GLOB layer CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/mysys/memdiag/*.cc
  ${CMAKE_SOURCE_DIR}/mysys/memdiag/*/*.cc)
list(FILTER layer EXCLUDE REGEX "/unittest/.*_test[.]cc$")
# The plugin's other rooms need the server's headers.
set(rooms allocator host ledger history budget advice ceiling profile
  profile_file profile_export)
if(MEMDIAG_UNIT STREQUAL fuzzers)
  # Those without a parser take as long to compile as the others.
  list(REMOVE_ITEM rooms budget advice)
  list(APPEND layer ${CMAKE_SOURCE_DIR}/plugin/memdiag/advice/start_option.cc)
endif()
foreach(room IN LISTS rooms)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugin/memdiag/${room}/*.cc)
  list(APPEND layer ${sources})
endforeach()

find_package(GTest REQUIRED)
find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
include(GoogleTest)

# An object library links all objects, as in mysqld. Some are reached through weak
# symbols only.
add_library(memdiag_unit OBJECT ${layer})
target_compile_features(memdiag_unit PUBLIC cxx_std_20)
target_include_directories(memdiag_unit PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_options(memdiag_unit PUBLIC
  -O2 -g1 -fno-omit-frame-pointer -Wall -Wextra -Werror
  # Another checkout may have compiled an object of the compiler cache.
  -fdebug-prefix-map=${CMAKE_SOURCE_DIR}/= -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)
if(MOLD_PROGRAM AND NOT CMAKE_CROSSCOMPILING)
  target_link_options(memdiag_unit PUBLIC -fuse-ld=mold)
endif()
target_link_libraries(memdiag_unit PUBLIC memdiag::jemalloc Threads::Threads ZLIB::ZLIB)
if(MEMDIAG_SANITIZE)
  target_compile_options(memdiag_unit PUBLIC
    -fsanitize=${MEMDIAG_SANITIZE} -fno-sanitize-recover=undefined)
  target_link_options(memdiag_unit PUBLIC -fsanitize=${MEMDIAG_SANITIZE})
endif()
if(MEMDIAG_SANITIZE MATCHES address)
  # At -O1 a test compiles in little more than half the time. The layer, which it tests,
  # keeps -O2.
  set_source_files_properties(${tests} PROPERTIES COMPILE_OPTIONS -O1)
endif()
if(MEMDIAG_UNIT STREQUAL coverage)
  # gcov counts a line where the compiler left it. Threads count at the same time.
  target_compile_options(memdiag_unit PUBLIC --coverage -O0 -fprofile-update=atomic)
  target_link_options(memdiag_unit PUBLIC --coverage)
endif()
if(MEMDIAG_UNIT STREQUAL fuzzers)
  # Each *_fuzz.cc is a program of libFuzzer: tools/fuzz.py runs them.
  target_compile_options(memdiag_unit PUBLIC -fsanitize=fuzzer-no-link)
  # clang counts the elements of a table as steps, and spells an attribute otherwise.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/mysys/memdiag/pools/pools.cc
    PROPERTIES COMPILE_OPTIONS -fconstexpr-steps=100000000)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/mysys/memdiag/profiling/unwind.cc
    PROPERTIES COMPILE_OPTIONS -Wno-unknown-attributes)
  file(GLOB fuzzers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/plugin/memdiag/unittest/fuzz/*_fuzz.cc)
  foreach(source IN LISTS fuzzers)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    set_target_properties(${name} PROPERTIES
      RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzz)
    target_link_libraries(${name} PRIVATE memdiag_unit GTest::gtest)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  endforeach()
  return()
endif()

# jemalloc locks all of its mutexes around fork(). These are more than the deadlock
# detector can hold. By default each process sleeps for a second before it ends.
string(CONCAT environment "TSAN_OPTIONS=detect_deadlocks=0:die_after_fork=0:"
  "atexit_sleep_ms=20:"
  "suppressions=${CMAKE_SOURCE_DIR}/cmake/tsan.supp")

function(memdiag_program name source)
  add_executable(${name} ${source})
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittest)
  target_link_libraries(${name} PRIVATE memdiag_unit)
endfunction()

# The thread sanitizer finds nothing in tests of one thread, and their fuzzers take half
# of its time. The address sanitizer has them all.
set(tests_of_one_thread advisor amount_table black_box budget code_ranges columns
  connect_attributes cpu_loads cpu_quota elf_file error_text flame_graph folded fts_count
  fts_match full_regions giving history_memory history_rows host instruments
  kept_values kernel_text ledger limit_reader member_memory meter_list pfs_cells pfs_entries
  pfs_rows pfs_text_groups pfs_zero pprof process_memory profile_difference profile_file
  profile_rows program properties read_group recent record_policy root_sizes
  session_rows statement_gate statement_stacks summary symbols)

# ctest begins with the tests that took longest at its last run, which a fresh checkout does
# not have. These count as ten seconds: at the end one of them would run alone.
set(long_programs ceiling every_pool flight_recorder history ledger limit_reader pools
  pprof process profile_file profiler purger readers stress)

foreach(source IN LISTS tests)
  get_filename_component(name ${source} NAME_WE)
  string(REGEX REPLACE "_test$" "" subject ${name})
  if(MEMDIAG_SANITIZE STREQUAL "thread")
    file(STRINGS ${source} threads REGEX "std::j?thread|pthread_create")
    if(subject IN_LIST tests_of_one_thread AND threads)
      message(FATAL_ERROR "${source} starts threads: it must not be in tests_of_one_thread")
    elseif(subject IN_LIST tests_of_one_thread)
      continue()
    endif()
  endif()
  memdiag_program(${name} ${source})
  target_link_libraries(${name} PRIVATE GTest::gtest GTest::gtest_main)
  if(CMAKE_CROSSCOMPILING)
    # Each test runs in its own process: tools/arm64.py knows each that fails by its name.
    # ctest discovers the tests when it runs, so a program that crashes at once is a failed
    # test and not a failed build.
    gtest_discover_tests(${name} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 600
      PROPERTIES TIMEOUT 1800)
  else()
    # A program runs its tests in one process: to begin a process and to end it takes as
    # long as most tests, under a sanitizer much longer. A FRESH_TEST begins its own.
    # tools/run_tests.py reads the file about each of them.
    add_test(NAME ${name} COMMAND ${name})
    # The longest takes a minute on a busy machine. A hang must end.
    set_tests_properties(${name} PROPERTIES TIMEOUT 600
      ENVIRONMENT "${environment};GTEST_OUTPUT=xml:${CMAKE_BINARY_DIR}/cases/${name}.xml")
    if(subject IN_LIST long_programs)
      set_tests_properties(${name} PROPERTIES COST 10)
    endif()
  endif()
endforeach()

memdiag_program(memdiag_reference
  ${CMAKE_SOURCE_DIR}/plugin/memdiag/reference/reference_main.cc)
add_test(NAME reference_page
  COMMAND memdiag_reference --check ${CMAKE_SOURCE_DIR}/docs/reference.md)
add_test(NAME holders_json COMMAND memdiag_reference --check-holders
  ${CMAKE_SOURCE_DIR}/client/memdiag/judge/holders.json)
add_test(NAME ceiling_json COMMAND memdiag_reference --check-ceiling
  ${CMAKE_SOURCE_DIR}/client/memdiag/judge/ceiling.json)

# A sanitizer owns malloc(), and its programs do not run in valgrind.
if(NOT MEMDIAG_SANITIZE)
  memdiag_program(memdiag_known_ways
    ${CMAKE_SOURCE_DIR}/plugin/memdiag/test/known_ways.cc)
  add_test(NAME other_profilers
    COMMAND ${Python3_EXECUTABLE} ${CMAKE_SOURCE_DIR}/plugin/memdiag/test/other_profilers.py
      $<TARGET_FILE:memdiag_known_ways> ${CMAKE_BINARY_DIR}/jemalloc/src/bin/jeprof
      ${CMAKE_BINARY_DIR}/other_profilers)
  set_tests_properties(other_profilers PROPERTIES TIMEOUT 600)
endif()

memdiag_program(memdiag_block_cost ${CMAKE_SOURCE_DIR}/bench/block_cost.cc)

# Preloaded, the first makes any program see other processors than the machine's,
# and the second lets calls of ours fail.
foreach(source bench/cpu_shim proof/calls_shim)
  get_filename_component(name ${source} NAME)
  add_library(memdiag_${name} SHARED ${CMAKE_SOURCE_DIR}/${source}.cc)
  set_target_properties(memdiag_${name} PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/unittest)
  target_compile_features(memdiag_${name} PRIVATE cxx_std_20)
  target_include_directories(memdiag_${name} PRIVATE ${CMAKE_SOURCE_DIR})
  # Thread-local variables that need no allocation.
  target_compile_options(memdiag_${name} PRIVATE
    -O2 -g1 -Wall -Wextra -Werror -ftls-model=initial-exec)
  target_link_libraries(memdiag_${name} PRIVATE dl)
endforeach()
