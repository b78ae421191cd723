#include "sql/memdiag/own_names.h"

#include <cstring>

#include <strings.h>

#include "my_sys.h"
#include "mysqld_error.h"
#include "mysys/memdiag/upstream/private_member.h"
#include "sql/binlog.h"
#include "sql/event_parse_data.h"
#include "sql/item_func.h"
#include "sql/set_var.h"
#include "sql/sp_head.h"
#include "sql/sp_instr.h"
#include "sql/sql_parse.h"
#include "sql/table.h"

namespace memdiag {

/** An item's name may be an alias. */
struct Variable_of_item {
  using Member = const System_variable_tracker Item_func_get_system_var::*;
  friend Member member_of(Variable_of_item);
};
template struct Names<Variable_of_item, &Item_func_get_system_var::var_tracker>;

namespace {

const char *variable_of(const Item_func_get_system_var &item) {
  return (item.*member_of(Variable_of_item{})).get_var_name();
}

/** A name that only this server has, and stock's error for it. */
struct Own_name {
  const char *name = nullptr;
  int error = 0;
};

/** Tables, variables and functions of ours, and no others, begin with it. */
bool is_own(const char *name) {
  constexpr char begin[] = "memdiag_";
  return name != nullptr && strncasecmp(name, begin, strlen(begin)) == 0;
}

Own_name table_in(const Table_ref *table) {
  for (; table != nullptr; table = table->next_global)
    if (table->schema_table != nullptr &&
        is_own(table->schema_table->table_name))
      return {table->schema_table->table_name, ER_UNKNOWN_TABLE};
  return {};
}

/** The variables that a SET sets. */
Own_name set_variable_in(LEX *lex) {
  if (lex->sql_command != SQLCOM_SET_OPTION) return {};
  for (set_var_base &of : lex->var_list)
    if (const auto *set = dynamic_cast<const set_var *>(&of);
        set != nullptr && is_own(set->m_var_tracker.get_var_name()))
      return {set->m_var_tracker.get_var_name(), ER_UNKNOWN_SYSTEM_VARIABLE};
  return {};
}

/** @param items  all that the parser made for a statement */
Own_name read_variable_in(const Item *items) {
  for (; items != nullptr; items = items->next_free)
    if (const auto *read =
            dynamic_cast<const Item_func_get_system_var *>(items);
        read != nullptr && is_own(variable_of(*read)))
      return {variable_of(*read), ER_UNKNOWN_SYSTEM_VARIABLE};
  return {};
}

Own_name function_in(const Item *items) {
  for (; items != nullptr; items = items->next_free)
    if (const auto *call = dynamic_cast<const Item_udf_func *>(items);
        call != nullptr && is_own(call->func_name()))
      return {call->func_name(), ER_SP_DOES_NOT_EXIST};
  return {};
}

Own_name name_in(sp_instr *step) {
  Own_name found = read_variable_in(step->m_arena.item_list());
  auto *const with_lex = dynamic_cast<sp_lex_instr *>(step);
  if (found.name != nullptr || with_lex == nullptr) return found;
  // Upstream only lends it for reading, but its lists have no such iterators.
  auto *const lex = const_cast<LEX *>(with_lex->get_lex());
  if (lex == nullptr) return {};
  found = table_in(lex->query_tables);
  return found.name != nullptr ? found : set_variable_in(lex);
}

/** The routine, trigger or event that the statement defines. In a routine, LEX
has the running one for a statement that defines none. A prepared event is no
longer in LEX. */
sp_head *defined_by(LEX *lex) {
  if (lex->sql_command != SQLCOM_CREATE_EVENT &&
      lex->sql_command != SQLCOM_ALTER_EVENT)
    return lex->sphead;
  const Event_parse_data &event = *get_event_parse_data(lex);
  if (event.event_body != nullptr) return event.event_body;
  return event.body_changed ? lex->sphead : nullptr;
}

Own_name name_in_definition(THD *thd) {
  LEX *const lex = thd->lex;
  const Item *const items = thd->stmt_arena->item_list();
  Own_name found = table_in(lex->query_tables);
  if (found.name == nullptr) found = read_variable_in(items);
  if (lex->sql_command == SQLCOM_CREATE_VIEW)
    return found.name != nullptr ? found : function_in(items);
  sp_head *const program = defined_by(lex);
  if (program == nullptr) return found;
  for (sp_instr *step : program->get_instructions()) {
    if (found.name != nullptr) break;
    found = name_in(step);
  }
  return found;
}

void raise(const Own_name &own, const char *why_not) {
  my_printf_error(own.error, "Only this server has '%s': %s", MYF(0), own.name,
                  why_not);
}

}  // namespace

bool is_refused_definition(THD *thd) {
  const Own_name found = name_in_definition(thd);
  if (found.name == nullptr) return false;
  raise(found,
        "a view, routine, trigger or event that names it would stop a replica "
        "and keep a dump from loading. Name it in a statement; routines and "
        "events may PREPARE one.");
  return true;
}

bool is_refused_text(THD *thd) {
  LEX *const lex = thd->lex;
  Own_name found = table_in(lex->query_tables);
  if (thd->variables.binlog_format == BINLOG_FORMAT_MIXED) {
    if (found.name != nullptr)
      lex->set_stmt_unsafe(LEX::BINLOG_STMT_UNSAFE_SYSTEM_TABLE);
    return false;
  }
  if (!mysql_bin_log.is_open() ||
      (thd->variables.option_bits & OPTION_BIN_LOG) == 0 ||
      !is_update_query(lex->sql_command))
    return false;
  const Item *const items = thd->stmt_arena->item_list();
  if (found.name == nullptr) found = read_variable_in(items);
  if (found.name == nullptr) found = function_in(items);
  if (found.name == nullptr) return false;
  found.error = ER_BINLOG_STMT_MODE_AND_ROW_ENGINE;
  raise(found,
        "with binlog_format = STATEMENT a replica would stop at this text. Set "
        "binlog_format = ROW.");
  return true;
}

}  // namespace memdiag
