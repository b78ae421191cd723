#include "plugin/memdiag/server/threads/exempt.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "mysys/memdiag/upstream/private_member.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/sql_security_ctx.h"
#include "sql/binlog.h"
#include "sql/item.h"
#include "sql/item_func.h"
#include "sql/mdl.h"
#include "sql/mysqld.h"
#include "sql/protocol_classic.h"
#include "sql/query_options.h"
#include "sql/query_result.h"
#include "sql/set_var.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/sql_parse.h"
#include "sql/sql_union.h"
#include "sql/table.h"
#include "sql/transaction_info.h"
#include "sql/xa.h"

namespace memdiag {

struct Variable_set {
  using Member = Item_func_set_user_var *set_var_user::*;
  friend Member member_of(Variable_set);
};
template struct Names<Variable_set, &set_var_user::user_var_item>;

}  // namespace memdiag

namespace memdiag::exempt {
namespace {

bool has_grant(THD *thd, const char *privilege) {
  return thd->security_context()
      ->has_global_grant(privilege, strlen(privilege))
      .first;
}

constexpr ulong administrators_acls =
    SUPER_ACL | PROCESS_ACL | SHUTDOWN_ACL | REPL_SLAVE_ACL;
constexpr const char *administrators[] = {
    "CONNECTION_ADMIN", "GROUP_REPLICATION_ADMIN", "REPLICATION_SLAVE_ADMIN",
    "SYSTEM_VARIABLES_ADMIN"};

bool is_administrator(THD *thd) {
  return thd->security_context()->check_access(administrators_acls, "", true) ||
         std::any_of(std::begin(administrators), std::end(administrators),
                     [thd](const char *name) { return has_grant(thd, name); });
}

/** The server's own schemas have the table. A derived table has tables of its
own in the list. */
bool is_of_server(const Table_ref &table) {
  if (table.is_derived()) return true;
  const auto is_named = [&table](const char *name) {
    return my_strcasecmp(system_charset_info, table.db, name) == 0;
  };
  // Each statement that is known to be small comes here.
  switch (table.db_length) {
    case std::char_traits<char>::length("sys"):
      return is_named("sys");
    case std::char_traits<char>::length("mysql"):
      return is_named("mysql");
    default:
      return is_infoschema_db(table.db, table.db_length) ||
             is_perfschema_db(table.db, table.db_length);
  }
}

bool reads_only_tables_of_server(const LEX &lex) {
  if (lex.sql_command != SQLCOM_SELECT || lex.query_tables == nullptr)
    return false;
  for (const Table_ref *table = lex.query_tables; table != nullptr;
       table = table->next_global)
    if (!is_of_server(*table)) return false;
  return true;
}

/** A plugin runs statements for the server: group replication clones, the X
plugin authenticates. No client can be this user, whose account is locked. */
bool is_of_plugin(const THD &thd) {
  const LEX_CSTRING user = thd.m_main_security_ctx.user();
  return user.str != nullptr &&
         std::string_view(user.str, user.length) == "mysql.session";
}

/** A statement of init_connect has no client yet. An error would end the
connection. */
bool is_of_no_client(THD *thd) {
  return thd->is_classic_protocol() &&
         thd->get_protocol_classic()->get_vio() == nullptr;
}

/** Connectors ask for a dozen of system variables at once. */
constexpr size_t longest_text = 4096;
constexpr size_t longest_value = 256;

/** The calling thread's session has it, and alone changes its variables. */
bool is_short(const THD &thd, const Item_func_get_user_var &variable) {
  const auto found = thd.user_vars.find(
      std::string(variable.name.ptr(), variable.name.length()));
  return found == thd.user_vars.end() ||
         found->second->length() <= longest_value;
}

/** The item's value is as short as the text of the statement, or as a system
variable. */
bool is_short(const THD &thd, const Item &item) {
  switch (item.type()) {
    case Item::STRING_ITEM:
    case Item::INT_ITEM:
    case Item::DECIMAL_ITEM:
    case Item::REAL_ITEM:
    case Item::NULL_ITEM:
    case Item::HEX_BIN_ITEM:
    // The columns of an INSERT. Nothing else that has them is asked.
    case Item::FIELD_ITEM:
    case Item::DEFAULT_VALUE_ITEM:
      return true;
    case Item::FUNC_ITEM:
      break;
    default:
      return false;
  }
  const auto &function = down_cast<const Item_func &>(item);
  switch (function.functype()) {
    case Item_func::GSYSVAR_FUNC:
    case Item_func::SUSERVAR_FUNC:
      return true;
    case Item_func::GUSERVAR_FUNC:
      return is_short(thd, down_cast<const Item_func_get_user_var &>(item));
    case Item_func::FUNC_SP:
    case Item_func::UDF_FUNC:
      return false;
    default:
      return function.argument_count() == 0;
  }
}

/** Upstream waits within a commit with these stages: for its turn in the binary
log, and until a replica has the transaction. The second one is a plugin's, and
known by its name alone. */
bool waits_in_commit(const char *stage) {
  return stage == stage_wait_on_commit_ticket.m_name ||
         (stage != nullptr &&
          strcmp(stage, "Waiting for semi-sync ACK from replica") == 0);
}

bool has_short_values(const THD &thd) {
  if (thd.query().length > longest_text || !thd.stmt_arena->is_regular())
    return false;
  for (const Item *item = thd.item_list(); item != nullptr;
       item = item->next_free)
    if (!is_short(thd, *item)) return false;
  return true;
}

/** It drops many tables: each has its part of the dictionary read. */
bool names_many(const LEX &lex) {
  int names = 8;
  for (const Table_ref *table = lex.query_tables; table != nullptr;
       table = table->next_global)
    if (names-- == 0) return true;
  return false;
}

/** A user variable that is set to NULL gives back what it has. */
enum class Variable : uint8_t { none, gives_back, keeps };

Variable user_variable(const set_var_base &each) {
  const auto *const variable = dynamic_cast<const set_var_user *>(&each);
  if (variable == nullptr) return Variable::none;
  const Item &value = *(variable->*member_of(Variable_set{}))->arguments()[0];
  const bool is_null =
      value.type() == Item::PARAM_ITEM
          ? down_cast<const Item_param &>(value).param_state() ==
                Item_param::NULL_VALUE
          : value.type() == Item::NULL_ITEM;
  return is_null ? Variable::gives_back : Variable::keeps;
}

/** The statement sets user variables, each to NULL. Its digest is also that of
other values, so its former peaks tell nothing. */
bool gives_variables_back(const LEX &lex) {
  return lex.sql_command == SQLCOM_SET_OPTION && !lex.var_list.is_empty() &&
         std::all_of(lex.var_list.begin(), lex.var_list.end(),
                     [](const set_var_base &each) {
                       return user_variable(each) == Variable::gives_back;
                     });
}

/** A variable keeps what INTO gives it, and a client's cursor keeps its rows.
The cursor's class is local to sql_cursor.cc. A prepared statement has a result,
too, which sends. */
bool result_stays(const Query_result *result) {
  return dynamic_cast<const Query_dumpvar *>(result) != nullptr ||
         dynamic_cast<const Query_result_union *>(result) != nullptr;
}

}  // namespace

/** Commands that end something, and EXECUTE: its statement asks by itself. The
ones that stop a server or a part of it would give all of its memory back. An
error of those that begin replication would leave a replica or a member out.
EXPLAIN FOR CONNECTION holds locks without which the other session can neither
end its statement nor be told to. */
bool must_run(enum_sql_command command) {
  switch (command) {
    case SQLCOM_BEGIN:
    case SQLCOM_COMMIT:
    case SQLCOM_ROLLBACK:
    case SQLCOM_SAVEPOINT:
    case SQLCOM_ROLLBACK_TO_SAVEPOINT:
    case SQLCOM_RELEASE_SAVEPOINT:
    case SQLCOM_XA_START:
    case SQLCOM_XA_END:
    case SQLCOM_XA_PREPARE:
    case SQLCOM_XA_COMMIT:
    case SQLCOM_XA_ROLLBACK:
    case SQLCOM_UNLOCK_TABLES:
    case SQLCOM_UNLOCK_INSTANCE:
    case SQLCOM_HA_CLOSE:
    case SQLCOM_KILL:
    case SQLCOM_EXPLAIN_OTHER:
    case SQLCOM_SHUTDOWN:
    case SQLCOM_RESTART_SERVER:
    case SQLCOM_REPLICA_START:
    case SQLCOM_REPLICA_STOP:
    case SQLCOM_START_GROUP_REPLICATION:
    case SQLCOM_STOP_GROUP_REPLICATION:
    case SQLCOM_CHANGE_REPLICATION_SOURCE:
    case SQLCOM_CHANGE_REPLICATION_FILTER:
    case SQLCOM_CLONE:
    case SQLCOM_CHANGE_DB:
    case SQLCOM_EXECUTE:
    case SQLCOM_DEALLOCATE_PREPARE:
      return true;
    default:
      return false;
  }
}

bool is_of_system(const THD *thd) {
  return thd->system_thread != NON_SYSTEM_THREAD || thd->slave_thread ||
         is_of_plugin(*thd);
}

bool is_exempt(THD *thd) {
  return is_of_no_client(thd) || is_of_system(thd) || thd->in_sub_stmt != 0 ||
         thd->sp_runtime_ctx != nullptr || must_run(thd->lex->sql_command);
}

bool looks_at_server(const LEX &lex) {
  return (sql_command_flags[lex.sql_command] & CF_STATUS_COMMAND) != 0 ||
         reads_only_tables_of_server(lex);
}

bool administers(THD *thd) {
  return looks_at_server(*thd->lex) && is_administrator(thd);
}

bool holds_what_others_wait_for(THD *thd) {
  const Transaction_ctx *const transaction = thd->get_transaction();
  // While upstream reads its dictionary, the session's own is put aside. While
  // it exchanges the two, there is none.
  return transaction == nullptr || thd->is_attachable_transaction_active() ||
         thd->in_active_multi_stmt_transaction() ||
         !transaction->xid_state()->has_state(XID_STATE::XA_NOTR) ||
         thd->locked_tables_mode != LTM_NONE || thd->mdl_context.has_locks();
}

bool may_end(enum_sql_command command) {
  switch (command) {
    case SQLCOM_SELECT:
    case SQLCOM_INSERT:
    case SQLCOM_INSERT_SELECT:
    case SQLCOM_UPDATE:
    case SQLCOM_UPDATE_MULTI:
    case SQLCOM_DELETE:
    case SQLCOM_DELETE_MULTI:
    case SQLCOM_REPLACE:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_LOAD:
    case SQLCOM_CALL:
    case SQLCOM_DO:
    case SQLCOM_SET_OPTION:
    case SQLCOM_PREPARE:
      return true;
    default:
      return false;
  }
}

bool commits(const THD *thd) {
  if (!may_commit(thd)) return false;
  // Upstream leaves the stage behind when it has read its dictionary. A
  // statement that is no DDL has no plan any more when it commits.
  const enum_sql_command command = thd->query_plan.get_command();
  return command == SQLCOM_END || !may_end(command) ||
         waits_in_commit(thd->proc_info());
}

bool may_commit(const THD *thd) {
  const char *const stage = thd->proc_info();
  return stage == stage_waiting_for_handler_commit.m_name ||
         waits_in_commit(stage);
}

bool may_be_logged_as_text(const THD *thd) {
  // A function has it cleared. The call of the function is logged.
  return thd->variables.binlog_format != BINLOG_FORMAT_ROW &&
         (thd->in_sub_stmt != 0 ||
          (thd->variables.option_bits & OPTION_BIN_LOG) != 0) &&
         mysql_bin_log.is_open();
}

bool has_changed_for_good(const THD *thd) {
  // THD is without one while upstream exchanges it.
  const Transaction_ctx *const transaction = thd->get_transaction();
  return transaction == nullptr || thd->is_attachable_transaction_active() ||
         transaction->has_modified_non_trans_table(Transaction_ctx::STMT);
}

bool takes_little(THD *thd) {
  const LEX &lex = *thd->lex;
  switch (lex.sql_command) {
    case SQLCOM_DROP_TABLE:
    case SQLCOM_TRUNCATE:
      return !names_many(lex);
    case SQLCOM_SELECT:
    case SQLCOM_SET_OPTION:
      return lex.query_tables == nullptr &&
             (has_short_values(*thd) || gives_variables_back(lex));
    default:
      return false;
  }
}

bool inserts_little(THD *thd) {
  const LEX &lex = *thd->lex;
  return (lex.sql_command == SQLCOM_INSERT ||
          lex.sql_command == SQLCOM_REPLACE) &&
         lex.query_tables != nullptr &&
         lex.query_tables->next_global == nullptr && has_short_values(*thd);
}

bool deletes_all(const THD *thd) {
  const LEX &lex = *thd->lex;
  return lex.sql_command == SQLCOM_DELETE && lex.query_tables != nullptr &&
         lex.query_tables->next_global == nullptr &&
         lex.query_block->where_cond() == nullptr &&
         !lex.query_block->has_limit();
}

bool may_keep(THD *thd, bool takes_little) {
  const LEX &lex = *thd->lex;
  switch (lex.sql_command) {
    case SQLCOM_SELECT:
    case SQLCOM_DO:  // others may wait for its RELEASE_LOCK()
      return !lex.set_var_list.is_empty() || result_stays(lex.result);
    case SQLCOM_SET_OPTION:
      return std::any_of(lex.var_list.begin(), lex.var_list.end(),
                         [](const set_var_base &each) {
                           return user_variable(each) == Variable::keeps;
                         }) &&
             !(takes_little &&
               thd->security_context()->check_access(REPL_SLAVE_ACL));
    case SQLCOM_PREPARE:
    case SQLCOM_INSERT:
    case SQLCOM_INSERT_SELECT:
    case SQLCOM_REPLACE:
    case SQLCOM_REPLACE_SELECT:
    case SQLCOM_UPDATE:
    case SQLCOM_UPDATE_MULTI:
    case SQLCOM_LOAD:
    case SQLCOM_CREATE_TABLE:
    case SQLCOM_CALL:
    case SQLCOM_HA_OPEN:
      return true;
    default:
      return false;
  }
}

}  // namespace memdiag::exempt
