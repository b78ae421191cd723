/*
  Names of functions for people. Demangled names of templates fill a screen, but
  class and method are enough to tell functions apart.

    _ZN3THD16send_result_metadataERK...       THD::send_result_metadata
    _ZNSt6vectorIiSaIiEE9push_backERKi        std::vector::push_back
    _ZN12_GLOBAL__N_15writeEv.part.0          write
    a lambda in foo()                         foo::{lambda}

  Threads: any. Errors: std::bad_alloc.
*/

#ifndef MEMDIAG_FUNCTION_NAME_H
#define MEMDIAG_FUNCTION_NAME_H

#include <cstddef>
#include <string>
#include <string_view>

namespace memdiag::profile {

/** libstdc++ refuses a longer name, because it would take too much stack.
mysqld's longest name has 1,472 bytes. */
constexpr size_t max_demangled_name = 1024;

/** The name of a function from a symbol table, demangled and without template
arguments, parameters, return type, unnamed namespaces and the compiler's
suffixes. The function through which std::function calls gets the name of the
lambda that it holds. A name is returned unchanged, up to its first '.' or '@',
if no C++ compiler made it, if it is too long, or if this thread has too little
stack left. */
std::string function_name(const std::string &linkage_name);

/** The same for a name that is demangled. A form that this parser does not know
is returned whole. */
std::string shorten(std::string_view demangled);

}  // namespace memdiag::profile

#endif  // MEMDIAG_FUNCTION_NAME_H
