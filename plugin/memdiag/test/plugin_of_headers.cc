/*
  An engine, an INFORMATION_SCHEMA table and a daemon, compiled twice:
  memdiag_stock.so with the headers of an unpatched MySQL, memdiag_native.so
  with this server's. The table walks Query_block::fields, a container whose
  layout patches/diets/0026 changes, and shows the names of the statement's
  columns. The server refuses all three of memdiag_stock.so
  (patches/hooks/0031).
*/

#include <mysql/plugin.h>

#include <string>

#include "mysql_version.h"
#include "sql/field.h"
#include "sql/handler.h"
#include "sql/item.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/sql_show.h"
#include "sql/table.h"

#ifdef MEMDIAG_STOCK_HEADERS
#define HEADERS "memdiag_stock"
static_assert(MYSQL_HANDLERTON_INTERFACE_VERSION == MYSQL_VERSION_ID << 8,
              "these are not the headers of stock");
#else
#define HEADERS "memdiag_native"
#endif

namespace {

st_mysql_storage_engine engine = {MYSQL_HANDLERTON_INTERFACE_VERSION};
st_mysql_daemon daemon_info = {MYSQL_DAEMON_INTERFACE_VERSION};
st_mysql_information_schema table = {
    MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

ST_FIELD_INFO columns[] = {
    {"COLUMNS_OF_STATEMENT", 200, MYSQL_TYPE_STRING, 0, 0, "", 0},
    {nullptr, 0, MYSQL_TYPE_NULL, 0, 0, nullptr, 0}};

int fill(THD *thd, Table_ref *tables, Item *) {
  std::string names;
  for (const Item *item : thd->lex->query_block->fields)
    names.append(names.empty() ? "" : ", ").append(item->item_name.ptr());
  tables->table->field[0]->store(names.data(), names.size(),
                                 system_charset_info);
  return schema_table_store_record(thd, tables->table) ? 1 : 0;
}

int begin_table(void *schema_table) {
  auto *const schema = static_cast<ST_SCHEMA_TABLE *>(schema_table);
  schema->fields_info = columns;
  schema->fill_table = fill;
  return 0;
}

int begin_nothing(void *) { return 0; }

int begin_engine(void *hton) {
  static_cast<handlerton *>(hton)->flags = HTON_NOT_USER_SELECTABLE;
  return 0;
}

st_mysql_plugin plugin_of(int kind, void *info, const char *name,
                          int (*begin)(void *)) {
  return {kind,    info,    name,    "memdiag", "For tests", PLUGIN_LICENSE_GPL,
          begin,   nullptr, nullptr, 1,         nullptr,     nullptr,
          nullptr, 0};
}

}  // namespace

mysql_declare_plugin(memdiag_headers)
    plugin_of(MYSQL_STORAGE_ENGINE_PLUGIN, &engine, HEADERS "_engine",
              begin_engine),
    plugin_of(MYSQL_INFORMATION_SCHEMA_PLUGIN, &table, HEADERS "_table",
              begin_table),
    plugin_of(MYSQL_DAEMON_PLUGIN, &daemon_info, HEADERS "_daemon",
              begin_nothing) mysql_declare_plugin_end;
