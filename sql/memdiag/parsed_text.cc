#include "sql/memdiag/parsed_text.h"

#include "mysys/memdiag/purging/purge.h"
#include "sql/item.h"
#include "sql/parse_tree_helpers.h"
#include "sql/parse_tree_node_base.h"
#include "sql/sql_class.h"

namespace memdiag {

void Parsed_text::give_back() {
  m_root.Clear();
  (void)purging::purge(Pool::statement);
}

}  // namespace memdiag

/* A placeholder counts as an item while it is itemized. The list of items to
destroy is left without it: it would lead into memory that has ended. */
bool Parse_tree_item::do_itemize(Parse_context *pc, Item **res) {
  if (Item::do_itemize(pc, res)) return true;
  THD *const thd = pc->thd;
  if (thd->item_list() == this) thd->set_item_list(next_free);
  next_free = nullptr;
  return false;
}
