#include "sql/memdiag/parsed_text.h"

#include "my_command.h"
#include "mysys/memdiag/purging/purge.h"
#include "mysys/memdiag/upstream/private_member.h"
#include "sql/item.h"
#include "sql/memdiag/net.h"
#include "sql/parse_tree_helpers.h"
#include "sql/parse_tree_node_base.h"
#include "sql/protocol_classic.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"

namespace memdiag {

struct Current_block {
  friend auto member_of(Current_block);
};
template struct Names_of_private_type<Current_block,
                                      &MEM_ROOT::m_current_block>;

/* A trigger of LOAD DATA LOCAL may be parsed again for each row, while its
statement reads the rows from the buffer. */
Parsed_text::Parsed_text(THD *thd) : m_nodes(thd, &m_root) {
  if (thd->query().length > kept_buffer &&
      thd->m_parser_state->m_lip.get_buf() == thd->query().str)
    end_packet(thd);
}

/* Only attributes of a query point into its packet. The buffer may hold rows of
the statement before this one, which were not sent yet. */
void Parsed_text::end_packet(THD *thd) {
  if (thd->get_command() != COM_QUERY || !thd->is_classic_protocol() ||
      thd->bind_parameter_values_count != 0)
    return;
  NET *const net = thd->get_protocol_classic()->get_net();
  if (net->vio == nullptr || net->write_pos != net->buff) return;
  const size_t length = net->max_packet;
  purging::Freed_blocks packet;
  packet.add(net->buff, length);
  shrink_buffer(false, net, thd->variables.net_buffer_length);
  if (length - net->max_packet >= many) packet.give_back();
}

void Parsed_text::give_back() {
  purging::Freed_blocks blocks;
  const auto *block = m_root.*member_of(Current_block{});
  for (; block != nullptr; block = block->prev)
    blocks.add(block, block->end - reinterpret_cast<const char *>(block));
  m_root.Clear();
  blocks.give_back();
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
