#include "plugin/memdiag/server/tables/information_schema.h"

#include <array>
#include <cstddef>
#include <new>
#include <string_view>
#include <type_traits>
#include <variant>

#include "my_sys.h"
#include "mysqld_error.h"
#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/server/tables/row_filter.h"
#include "plugin/memdiag/server/tables/statement.h"
#include "plugin/memdiag/server/tables/table_fields.h"
#include "plugin/memdiag/server/tables/table_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/tables.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/auth_common.h"
#include "sql/sql_class.h"

namespace memdiag::information_schema {
namespace {

/** Stores a value of a spec in a field. */
class Store {
 public:
  explicit Store(Field *field) : m_field(field) {}
  void operator()(std::monostate) const { m_field->set_null(); }
  void operator()(uint64_t value) const {
    m_field->set_notnull();
    m_field->store(static_cast<longlong>(value), true);
  }
  void operator()(int64_t value) const {
    m_field->set_notnull();
    m_field->store(value, false);
  }
  void operator()(double value) const {
    m_field->set_notnull();
    m_field->store(value);
  }
  void operator()(bool value) const {
    (*this)(std::string_view{value ? "YES" : "NO"});
  }
  void operator()(std::string_view text) const {
    m_field->set_notnull();
    m_field->store(text.data(), text.size(), system_charset_info);
  }
  void operator()(Timestamp moment) const {
    m_field->set_notnull();
    const my_timeval value{static_cast<int64_t>(moment.us / 1000000),
                           static_cast<int64_t>(moment.us % 1000000)};
    m_field->store_timestamp(&value);
  }

 private:
  Field *m_field;
};

/** Writes rows of a table to the server's temporary table. */
template <const auto &table>
class Writer final
    : public Sink<typename std::remove_cvref_t<decltype(table)>::Row> {
 public:
  using Row = typename std::remove_cvref_t<decltype(table)>::Row;

  Writer(THD *thd, TABLE *to, Item *condition)
      : m_thd(thd), m_to(to), m_filter(condition, to) {}

  bool add(const Row &row) override {
    if (m_thd->killed) return false;
    // Most rows of the past are not wanted, and neighbours have the same time.
    bool is_known = m_decided;
    for (const size_t i : m_filter.columns()) {
      const Value value = table.columns[i].value(row);
      if (m_decided && is_same(value, m_stored[i])) continue;
      is_known = false;
      store(i, value);
    }
    if (!is_known) m_accepts = m_filter.accepts();
    m_decided = true;
    if (!m_accepts) return !m_thd->is_error();
    for (size_t i = 0; i < table.size; ++i)
      store(i, table.columns[i].value(row));
    m_failed = schema_table_store_record(m_thd, m_to);
    return !m_failed;
  }

  /** The error is raised. */
  bool failed() const { return m_failed || m_thd->is_error(); }

 private:
  /** The text of a former row may be gone. */
  static bool is_same(const Value &value, const Value &stored) {
    return !std::holds_alternative<std::string_view>(value) && value == stored;
  }

  void store(size_t column, const Value &value) {
    std::visit(Store(m_to->field[column]), value);
    m_stored[column] = value;
  }

  THD *const m_thd;
  TABLE *const m_to;
  const Row_filter m_filter;
  bool m_failed{false};
  /** The filter has decided about the last row, and accepts it. */
  bool m_decided{false};
  bool m_accepts{false};
  /** The values of the last row that the record buffer holds. */
  std::array<Value, table.size> m_stored{};
};

bool is_killed(const void *statement) {
  return static_cast<const Statement *>(statement)->is_killed();
}

template <const auto &table>
int fill(THD *thd, Table_ref *tables, Item *condition) {
  if (check_global_access(thd, PROCESS_ACL)) return 1;
  try {
    Statement statement(thd);
    const Interruptible until_killed(is_killed, &statement);
    Writer<table> writer(thd, tables->table, condition);
    using Row = typename Writer<table>::Row;
    add_rows(&statement, static_cast<Sink<Row> *>(&writer));
    if (statement.is_killed()) {
      statement.forget_readings();
      thd->send_kill_message();
      return 1;
    }
    return writer.failed() ? 1 : 0;
  } catch (const std::bad_alloc &) {
    my_error(ER_STD_BAD_ALLOC_ERROR, MYF(0), table.name, "memdiag");
    return 1;
  }
}

}  // namespace

template <const auto &table>
int init(void *schema_table) {
  ST_SCHEMA_TABLE *const schema = static_cast<ST_SCHEMA_TABLE *>(schema_table);
  schema->fields_info = fields<table>.data();
  schema->fill_table = fill<table>;
  return 0;
}

#define INSTANTIATE(name) template int init<name##_table>(void *);
MEMDIAG_TABLES(INSTANTIATE)
#undef INSTANTIATE

}  // namespace memdiag::information_schema
