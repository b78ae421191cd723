#include "plugin/memdiag/server/tables/information_schema.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "my_sys.h"
#include "mysqld_error.h"
#include "mysys/memdiag/base/interruption.h"
#include "plugin/memdiag/base/utf8.h"
#include "plugin/memdiag/server/tables/statement.h"
#include "plugin/memdiag/server/tables/table_fields.h"
#include "plugin/memdiag/server/tables/table_rows.h"
#include "plugin/memdiag/tables/column.h"
#include "plugin/memdiag/tables/tables.h"
#include "sql/auth/auth_acls.h"
#include "sql/auth/auth_common.h"
#include "sql/error_handler.h"
#include "sql/field.h"
#include "sql/item.h"
#include "sql/item_cmpfunc.h"
#include "sql/item_func.h"
#include "sql/sql_class.h"
#include "sql/table.h"

namespace memdiag::information_schema {
namespace {

/** Stores a value of a spec in a field. */
class Store {
 public:
  /** @param characters  of a varchar: the most that it holds */
  Store(Field *field, uint32_t characters)
      : m_field(field), m_characters(characters) {}
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
  void operator()(bool value) const { store_text(value ? "YES" : "NO"); }
  void operator()(std::string_view text) const {
    // A field that cuts a text itself fails statements in strict mode.
    std::string room;
    store_text(utf8::fitting(text, m_characters, &room));
  }
  void operator()(Timestamp moment) const {
    m_field->set_notnull();
    const my_timeval value{static_cast<int64_t>(moment.us / 1000000),
                           static_cast<int64_t>(moment.us % 1000000)};
    m_field->store_timestamp(&value);
  }

 private:
  void store_text(std::string_view text) const {
    m_field->set_notnull();
    m_field->store(text.data(), text.size(), system_charset_info);
  }

  Field *const m_field;
  const uint32_t m_characters;
};

bool is_column_or_constant(Item *item, const TABLE *table) {
  Item *const real = item->real_item();
  if (real->type() == Item::FIELD_ITEM)
    return down_cast<Item_field *>(real)->field->table == table;
  return item->basic_const_item() ||
         (item->const_for_execution() && !item->has_subquery() &&
          !item->has_stored_program());
}

bool is_comparison(const Item_func *function) {
  switch (function->functype()) {
    case Item_func::EQ_FUNC:
    case Item_func::EQUAL_FUNC:
    case Item_func::NE_FUNC:
    case Item_func::LT_FUNC:
    case Item_func::LE_FUNC:
    case Item_func::GE_FUNC:
    case Item_func::GT_FUNC:
    case Item_func::BETWEEN:
    case Item_func::IN_FUNC:
    case Item_func::LIKE_FUNC:
    case Item_func::ISNULL_FUNC:
    case Item_func::ISNOTNULL_FUNC:
      return true;
    default:
      return false;
  }
}

bool is_simple(Item *item, const TABLE *table) {
  if (item->type() != Item::FUNC_ITEM) return false;
  auto *const function = down_cast<Item_func *>(item);
  if (!is_comparison(function)) return false;
  for (uint i = 0; i < function->argument_count(); ++i)
    if (!is_column_or_constant(function->arguments()[i], table)) return false;
  return true;
}

void collect(Item *item, const TABLE *table, std::vector<Item *> *terms) {
  if (item->type() == Item::COND_ITEM) {
    auto *const condition = down_cast<Item_cond *>(item);
    if (condition->functype() != Item_func::COND_AND_FUNC) return;
    for (Item &term : *condition->argument_list()) collect(&term, table, terms);
  } else if (is_simple(item, table)) {
    terms->push_back(item);
  }
}

bool has_constant_expression(Item *term) {
  auto *const function = down_cast<Item_func *>(term);
  Item **const first = function->arguments();
  return std::any_of(first, first + function->argument_count(),
                     [](Item *argument) {
                       return !argument->basic_const_item() &&
                              argument->real_item()->type() != Item::FIELD_ITEM;
                     });
}

void collect_columns(Item *term, std::vector<size_t> *columns) {
  auto *const function = down_cast<Item_func *>(term);
  for (uint i = 0; i < function->argument_count(); ++i) {
    Item *const real = function->arguments()[i]->real_item();
    if (real->type() != Item::FIELD_ITEM) continue;
    const size_t column = down_cast<Item_field *>(real)->field->field_index();
    if (std::ranges::find(*columns, column) == columns->end())
      columns->push_back(column);
  }
}

/** Drops the warnings and notes of a session while it exists, which the filling
of a table would keep without a bound. Errors are raised. */
class No_warnings final : Internal_error_handler {
 public:
  explicit No_warnings(THD *thd) : m_thd(thd) {
    thd->push_internal_handler(this);
  }
  ~No_warnings() override { m_thd->pop_internal_handler(); }
  No_warnings(const No_warnings &) = delete;
  No_warnings &operator=(const No_warnings &) = delete;

  bool dropped_any() const { return m_dropped; }

 private:
  bool handle_condition(THD *, uint, const char *,
                        Sql_condition::enum_severity_level *level,
                        const char *) override {
    if (*level == Sql_condition::SL_ERROR) return false;
    m_dropped = true;
    return true;
  }

  THD *const m_thd;
  bool m_dropped{false};
};

/** Drops rows of a table before the server stores them: those that the WHERE
clause would drop later. A table of history may have a million rows, and
`WHERE RUN = 0` then needs none of their memory.

Only simple terms are used: comparisons of the table's own columns with
constants. Evaluating one once more may warn once more. So its warnings are
dropped, and the row is accepted: the server then evaluates the clause itself,
and warns. A constant expression is evaluated once in the statement and may warn
then only, so the first comparison with it keeps its warnings. A filter refers
to the condition's items, which belong to the statement. */
class Row_filter {
 public:
  /** @param condition  as the server hands it to a table's fill function; may
  be nullptr
  @throws std::bad_alloc */
  Row_filter(Item *condition, const TABLE *table) {
    std::vector<Item *> items;
    if (condition != nullptr) collect(condition, table, &items);
    for (Item *item : items) {
      collect_columns(item, &m_columns);
      m_terms.push_back({item, !has_constant_expression(item)});
    }
  }

  /** The columns that accepts() reads, by their index in the table; each once.
   */
  const std::vector<size_t> &columns() const { return m_columns; }

  /** Comparing may raise an error in the session: ask the THD after false.
  @return false: the condition is not true of the row in the table's record
  buffer, whatever its other columns hold, and its warnings are raised */
  bool accepts(THD *thd) {
    for (Term &term : m_terms) {
      if (!std::exchange(term.constants_are_known, true)) {
        if (term.item->val_int() == 0) return false;
        continue;
      }
      const No_warnings no_warnings(thd);
      if (term.item->val_int() == 0) return no_warnings.dropped_any();
    }
    return true;
  }

 private:
  struct Term {
    Item *item;
    bool constants_are_known;
  };

  std::vector<Term> m_terms;
  std::vector<size_t> m_columns;
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
    if (!is_known) m_accepts = m_filter.accepts(m_thd);
    m_decided = true;
    if (m_thd->is_error()) return false;
    if (!m_accepts) return true;
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
    std::visit(Store(m_to->field[column], table.columns[column].length), value);
    m_stored[column] = value;
  }

  THD *const m_thd;
  TABLE *const m_to;
  Row_filter m_filter;
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
