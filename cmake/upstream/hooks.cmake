# Included by upstream's own configure right after its project() call
# (CMAKE_PROJECT_MySQL_INCLUDE). Everything here waits until upstream has defined
# its targets, at the end of its top-level folder.
include(${CMAKE_CURRENT_LIST_DIR}/precompiled_headers.cmake)
cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL memdiag_precompile_upstream)
if(MEMDIAG_ROOT)
  include(${CMAKE_CURRENT_LIST_DIR}/product.cmake)
  cmake_language(DEFER DIRECTORY ${CMAKE_SOURCE_DIR} CALL memdiag_add_to_upstream)
endif()
