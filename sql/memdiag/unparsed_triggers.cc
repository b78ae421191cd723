/*
  A trigger that could not be parsed. Upstream keeps the error with the table's
  handle, and each later statement that gets this handle fails with it. But
  while a statement has a text of more than a megabyte, the parser looks for
  KILL and for the client, and reports them as an error of the trigger. The
  ceiling ends such statements, and closes handles that are not used, so that
  triggers are parsed again. A handle with such an error is closed when its
  statement ends: the next statement parses the trigger for itself.

  The linker redirects the server's calls of
  Table_trigger_dispatcher::finalize_load() to this file (--wrap, in
  cmake/upstream/product.cmake).

  Threads: the session's. Errors: as the replaced function.
*/

#include "mysys/memdiag/upstream/private_member.h"
#include "sql/sql_class.h"
#include "sql/table.h"
#include "sql/table_trigger_dispatcher.h"

bool load(Table_trigger_dispatcher *triggers, THD *thd) asm(
    "__real__ZN24Table_trigger_dispatcher13finalize_loadEP3THD");
bool load_for_one_statement(Table_trigger_dispatcher *triggers, THD *thd) asm(
    "__wrap__ZN24Table_trigger_dispatcher13finalize_loadEP3THD");

namespace memdiag {

struct Trigger_error {
  using Member = const char *Table_trigger_dispatcher::*;
  friend Member member_of(Trigger_error);
};
template struct Names<Trigger_error,
                      &Table_trigger_dispatcher::m_parse_error_message>;

}  // namespace memdiag

bool load_for_one_statement(Table_trigger_dispatcher *triggers, THD *thd) {
  const bool has_failed = load(triggers, thd);
  // Through the public base: the dispatcher itself hides its table.
  Table_trigger_field_support *const fields = triggers;
  if (triggers->*member_of(memdiag::Trigger_error{}) != nullptr)
    fields->get_subject_table()->invalidate_dict();
  return has_failed;
}
