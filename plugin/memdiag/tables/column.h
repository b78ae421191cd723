/*
  The vocabulary of the table specs: table, column, value.

  A table is one constexpr object (pools_table is an example). Each column
  names a member of the row's struct. The SQL type and whether NULL is possible
  follow from the member's C++ type, so that the declaration cannot contradict
  the value. The server's field definitions (server/tables/table_fields.h), the
  writing of rows (server/tables/information_schema.cc) and the reference page
  (reference_main.cc) are made from the spec.

  Free of the server's headers. No state, no threads, no errors; a Value refers
  into the row it was taken from and lives as long as that.
*/

#ifndef MEMDIAG_COLUMN_H
#define MEMDIAG_COLUMN_H

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "plugin/memdiag/base/reading.h"
#include "plugin/memdiag/base/unit.h"

namespace memdiag {

/** One cell of a row; monostate is NULL. */
using Value = std::variant<std::monostate, uint64_t, int64_t, double, bool,
                           std::string_view, Timestamp>;

enum class Sql_type : uint8_t {
  unsigned_bigint,
  bigint,
  double_precision,
  /** VARCHAR(3) that holds YES or NO, as INFORMATION_SCHEMA writes booleans. */
  yes_no,
  varchar,
  timestamp
};

template <typename Row>
struct Column {
  const char *name;
  Sql_type type;
  /** Characters of a varchar, 0 for other types. */
  uint32_t length;
  Unit unit;
  /** True for each timestamp. The server makes one that is not nullable with a
  default of 0, which CREATE TABLE ... AS SELECT refuses in the default
  sql_mode. */
  bool nullable;
  const char *comment;
  Value (*value)(const Row &);
  /** The name of the row's member, as the compiler spells it. A column whose
  name differs from it is declared in columns_test.cc, so that a column that
  reads its neighbour fails a test. */
  std::string_view member;
};

template <typename Row_type, size_t column_count>
struct Table {
  using Row = Row_type;
  static constexpr size_t size = column_count;

  /** Name in INFORMATION_SCHEMA, and of the plugin that provides it. */
  const char *name;
  const char *summary;
  /** The server records columns in its data dictionary together with this, and
  records them anew only when it differs: raise it with any change that moves
  the fingerprint. Shown as major.minor by SHOW PLUGINS. */
  unsigned version;
  /** fingerprint_of() of the columns. Where it differs, the compiler shows the
  new one: columns cannot change while the version stays. */
  uint32_t fingerprint;
  std::array<Column<Row_type>, column_count> columns;
};

/** A hash (FNV-1a, 32 bits, over letters and numbers) of what the data
dictionary records of a table. */
template <typename Row, size_t n>
constexpr uint32_t fingerprint_of(const Table<Row, n> &table) {
  uint32_t hash = 2166136261u;
  const auto add = [&hash](uint32_t byte) { hash = (hash ^ byte) * 16777619u; };
  for (const Column<Row> &column : table.columns) {
    for (const char *c = column.name; *c != '\0'; ++c)
      add(static_cast<unsigned char>(*c));
    add(static_cast<uint32_t>(column.type));
    add(column.length);
    add(column.nullable ? 1 : 0);
  }
  return hash;
}

namespace detail {

template <typename T>
struct Strip_optional {
  using type = T;
  static constexpr bool nullable = false;
};
template <typename T>
struct Strip_optional<std::optional<T>> {
  using type = T;
  static constexpr bool nullable = true;
};

template <typename T>
constexpr Sql_type sql_type() {
  if constexpr (std::is_same_v<T, bool>)
    return Sql_type::yes_no;
  else if constexpr (std::is_floating_point_v<T>)
    return Sql_type::double_precision;
  else if constexpr (std::is_integral_v<T> && std::is_unsigned_v<T>)
    return Sql_type::unsigned_bigint;
  else if constexpr (std::is_integral_v<T>)
    return Sql_type::bigint;
  else if constexpr (std::is_same_v<T, Timestamp>)
    return Sql_type::timestamp;
  else if constexpr (std::is_same_v<T, std::string> ||
                     std::is_same_v<T, const char *>)
    return Sql_type::varchar;
  else
    static_assert(sizeof(T) == 0, "no column type for this member");
}

template <typename T>
Value to_value(const T &member) {
  if constexpr (Strip_optional<T>::nullable)
    return member.has_value() ? to_value(*member) : Value{};
  else if constexpr (sql_type<T>() == Sql_type::unsigned_bigint)
    return static_cast<uint64_t>(member);
  else if constexpr (sql_type<T>() == Sql_type::bigint)
    return static_cast<int64_t>(member);
  else if constexpr (sql_type<T>() == Sql_type::varchar)
    return std::string_view{member};
  else
    return member;
}

template <typename Row, auto member>
Value value_of(const Row &row) {
  return to_value(std::invoke(member, row));
}

/** "x" for &Row::x. The compiler's own spelling of this function ends with the
argument. */
template <auto member>
constexpr std::string_view member_name() {
  std::string_view text = __PRETTY_FUNCTION__;
  text = text.substr(text.find("member = "));
  text = text.substr(0, text.find_first_of(";]"));
  return text.substr(text.rfind(':') + 1);
}

template <typename Row, auto member>
struct Member {
  using Type =
      std::remove_cvref_t<std::invoke_result_t<decltype(member), const Row &>>;
  using Stripped = Strip_optional<Type>;
  static constexpr Sql_type type = sql_type<typename Stripped::type>();
  static constexpr bool nullable =
      Stripped::nullable || type == Sql_type::timestamp;
};

}  // namespace detail

/** A column that prints a member which is no text, of Row or a base of it. */
template <typename Row, auto member>
constexpr Column<Row> column(const char *name, Unit unit, const char *comment) {
  using Info = detail::Member<Row, member>;
  static_assert(Info::type != Sql_type::varchar, "use text_column()");
  return {name,
          Info::type,
          0,
          unit,
          Info::nullable,
          comment,
          detail::value_of<Row, member>,
          detail::member_name<member>()};
}

/** A column that prints a member of microseconds since the epoch. */
template <typename Row, auto member>
constexpr Column<Row> moment_column(const char *name, const char *comment) {
  return {name,
          Sql_type::timestamp,
          0,
          Unit::none,
          true,
          comment,
          [](const Row &row) { return Value{Timestamp{row.*member}}; },
          detail::member_name<member>()};
}

/** A column that prints a text member, or a literal that a method returns.
@param length  characters that the column holds; the table shows of each text
what utf8::fitting() leaves of it */
template <typename Row, auto member>
constexpr Column<Row> text_column(const char *name, uint32_t length,
                                  const char *comment) {
  using Info = detail::Member<Row, member>;
  static_assert(Info::type == Sql_type::varchar, "use column()");
  return {name,
          Info::type,
          length,
          Unit::none,
          Info::nullable,
          comment,
          detail::value_of<Row, member>,
          detail::member_name<member>()};
}

}  // namespace memdiag

#endif  // MEMDIAG_COLUMN_H
