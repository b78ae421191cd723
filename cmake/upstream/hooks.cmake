# Included by upstream's own configure right after its project() call
# (CMAKE_PROJECT_MySQL_INCLUDE). What changes targets waits until upstream has defined
# them, at the end of its top-level folder.
include(${CMAKE_CURRENT_LIST_DIR}/precompiled_headers.cmake)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL memdiag_precompile_upstream)
if(MEMDIAG_ROOT)
  include(${CMAKE_CURRENT_LIST_DIR}/product.cmake)
  cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL memdiag_add_to_upstream)
endif()
# mysql-test-run looks for the messages in share/mysql and in share, and upstream's
# own layout for Debian has them in share/mysql-<series>.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share)
if(NOT EXISTS ${CMAKE_BINARY_DIR}/share/mysql)
  file(CREATE_LINK mysql-9.7 ${CMAKE_BINARY_DIR}/share/mysql SYMBOLIC)
endif()
