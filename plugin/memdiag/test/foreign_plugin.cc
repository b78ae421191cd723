/*
  memdiag_foreign.so, plugins for tests: as compiled for a stock server, and one
  as compiled for this server.

  An engine, an INFORMATION_SCHEMA table and a daemon claim the interface
  version of stock: the server refuses them
  (patches/0031-foreign-plugins.patch). The table memdiag_native claims the
  version of this server. It walks Query_block::fields, a container whose layout
  patches/0026 changes, and shows the names of the statement's columns.
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

namespace {

/** The versions that stock's headers define for the three kinds. */
constexpr int stock_version = MYSQL_VERSION_ID << 8;

st_mysql_storage_engine engine = {stock_version};
st_mysql_daemon daemon_info = {stock_version};
st_mysql_information_schema foreign = {stock_version};
st_mysql_information_schema native = {
    MYSQL_INFORMATION_SCHEMA_INTERFACE_VERSION};

const char author[] = "memdiag";

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

/** The server refuses the others before it calls them. */
int never(void *) { return 1; }

}  // namespace

mysql_declare_plugin(memdiag_foreign){
    MYSQL_STORAGE_ENGINE_PLUGIN,
    &engine,
    "memdiag_foreign_engine",
    author,
    "For tests: an engine for stock",
    PLUGIN_LICENSE_GPL,
    never,
    nullptr,
    nullptr,
    1,
    nullptr,
    nullptr,
    nullptr,
    0,
},
    {
        MYSQL_INFORMATION_SCHEMA_PLUGIN,
        &foreign,
        "memdiag_foreign_table",
        author,
        "For tests: a table for stock",
        PLUGIN_LICENSE_GPL,
        never,
        nullptr,
        nullptr,
        1,
        nullptr,
        nullptr,
        nullptr,
        0,
    },
    {
        MYSQL_DAEMON_PLUGIN,
        &daemon_info,
        "memdiag_foreign_daemon",
        author,
        "For tests: a daemon for stock",
        PLUGIN_LICENSE_GPL,
        never,
        nullptr,
        nullptr,
        1,
        nullptr,
        nullptr,
        nullptr,
        0,
    },
    {
        MYSQL_INFORMATION_SCHEMA_PLUGIN,
        &native,
        "memdiag_native",
        author,
        "For tests: a table for this server",
        PLUGIN_LICENSE_GPL,
        begin_table,
        nullptr,
        nullptr,
        1,
        nullptr,
        nullptr,
        nullptr,
        0,
    } mysql_declare_plugin_end;
