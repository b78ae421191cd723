/*
  What a prepared statement or a trigger needs of a stored function that its
  session has dropped. Upstream drops programs when a session has more than
  stored_program_cache of them, or ends. Idle sessions drop theirs while memory
  is short (kept_programs.h).

  1. A prepared statement has a list of the routines that it calls. When it is
     executed again, upstream looks for each in the session's cache alone. One
     that is not there was NULL in each row, without an error. It is loaded. Its
     version then tells whether the list is still right.
  2. The field into which a function returns belongs to the statement, or to the
     trigger. Upstream leaves the list of an ENUM or SET with the function. The
     field gets a list of its own.

  The linker redirects the server's calls of two functions to this file (--wrap,
  in cmake/upstream/product.cmake).

  Ownership: the list is in the memory root of the field.
  Threads: the session's. Errors: as the replaced functions.
*/

#include <cstddef>

#include "sql/field.h"
#include "sql/sp.h"
#include "sql/sp_head.h"
#include "sql/sql_class.h"
#include "typelib.h"

enum_sp_return_code
find_routine(THD *thd, Sroutine_hash_entry *entry, bool lookup_only, sp_head **found) asm(
    "__real__Z16sp_cache_routineP3THDP19Sroutine_hash_entrybPP7sp_head");
enum_sp_return_code
find_or_load_routine(THD *thd, Sroutine_hash_entry *entry, bool lookup_only, sp_head **found) asm(
    "__wrap__Z16sp_cache_routineP3THDP19Sroutine_hash_entrybPP7sp_head");

Field *make_result_field(
    const sp_head *program, THD *thd, size_t length, const char *name,
    TABLE *
        table) asm("__real__ZNK7sp_head19create_result_fieldEP3THDmPKcP5TABLE");
Field *make_result_field_with_list(
    const sp_head *program, THD *thd, size_t length, const char *name,
    TABLE *
        table) asm("__wrap__ZNK7sp_head19create_result_fieldEP3THDmPKcP5TABLE");

enum_sp_return_code find_or_load_routine(THD *thd, Sroutine_hash_entry *entry,
                                         bool lookup_only, sp_head **found) {
  const enum_sp_return_code result =
      find_routine(thd, entry, lookup_only, found);
  return lookup_only && result == SP_OK && *found == nullptr
             ? find_routine(thd, entry, false, found)
             : result;
}

Field *make_result_field_with_list(const sp_head *program, THD *thd,
                                   size_t length, const char *name,
                                   TABLE *table) {
  Field *const field = make_result_field(program, thd, length, name, table);
  if (field == nullptr || (field->real_type() != MYSQL_TYPE_ENUM &&
                           field->real_type() != MYSQL_TYPE_SET))
    return field;
  TYPELIB *&list = down_cast<Field_enum *>(field)->typelib;
  list = copy_typelib(thd->mem_root, list);
  return list == nullptr ? nullptr : field;
}
