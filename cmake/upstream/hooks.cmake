# Upstream's own configure includes this file right after its project() call
# (CMAKE_PROJECT_MySQL_INCLUDE). Functions that change targets are deferred to the end of
# upstream's top-level folder, when the targets exist.
include(${CMAKE_CURRENT_LIST_DIR}/precompiled_headers.cmake)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL memdiag_precompile_upstream)
if(MEMDIAG_ROOT)
  include(${CMAKE_CURRENT_LIST_DIR}/product.cmake)
  cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL memdiag_add_to_upstream)
endif()
# Last, because the former decide which sources have options of their own.
include(${CMAKE_CURRENT_LIST_DIR}/unity.cmake)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL memdiag_unite_upstream)
if(MEMDIAG_PORTABLE)
  include(${CMAKE_CURRENT_LIST_DIR}/portable.cmake)
endif()
# mysql-test-run looks for the error messages in share/mysql and in share. Upstream's
# Debian layout has them in share/mysql-<series>.
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/share)
if(NOT EXISTS ${CMAKE_BINARY_DIR}/share/mysql)
  file(CREATE_LINK mysql-9.7 ${CMAKE_BINARY_DIR}/share/mysql SYMBOLIC)
endif()
