#include "plugin/memdiag/server/tables/row_filter.h"

#include <algorithm>

#include "sql/field.h"
#include "sql/item.h"
#include "sql/item_cmpfunc.h"
#include "sql/item_func.h"
#include "sql/table.h"

namespace memdiag {
namespace {

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

}  // namespace

Row_filter::Row_filter(Item *condition, const TABLE *table) {
  if (condition != nullptr) collect(condition, table, &m_terms);
  for (Item *term : m_terms) collect_columns(term, &m_columns);
}

bool Row_filter::accepts() const {
  for (Item *term : m_terms)
    if (term->val_int() == 0) return false;
  return true;
}

}  // namespace memdiag
