#include "sql/memdiag/sp_lexes.h"

#include <cstddef>
#include <memory>
#include <new>
#include <typeinfo>

#include "my_alloc.h"
#include "sql/item.h"
#include "sql/item_cmpfunc.h"
#include "sql/item_func.h"
#include "sql/item_strfunc.h"
#include "sql/memdiag/program_blocks.h"
#include "sql/parse_tree_items.h"
#include "sql/sp_head.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/sql_list.h"

namespace memdiag {

namespace {

/** A program has few kinds of expressions for each of its scopes. */
constexpr int compared_lexes = 16;

template <class... Classes>
bool is_exactly_one_of(const Item &item) {
  const std::type_info &its_class = typeid(item);
  return ((its_class == typeid(Classes)) || ...);
}

/**
  An item that neither refers to a LEX, a query expression or a query block, nor
  needs anything of them but what a new one has. The exception is a NEW or OLD
  column, which has a name resolution context that it never uses.

  A class that is not named here may do the same; its expressions do not share.
*/
bool is_plain(const Item &item) {
  return is_exactly_one_of<
             Item_splocal, Item_case_expr, Item_trigger_field, Item_null,
             Item_int, Item_int_0, Item_uint, Item_float, Item_decimal,
             Item_string, Item_hex_string, Item_bin_string,
             PTI_text_literal_text_string, PTI_text_literal_nchar_string,
             PTI_text_literal_underscore_charset, PTI_text_literal_concat,
             Item_func_true, Item_func_false>(item) ||
         is_exactly_one_of<
             Item_func_eq, Item_func_equal, Item_func_ne, Item_func_lt,
             Item_func_le, Item_func_gt, Item_func_ge, Item_func_isnull,
             Item_func_isnotnull, Item_func_truth, Item_func_not, Item_func_xor,
             Item_cond_and, Item_cond_or, Item_func_between, Item_func_in,
             Item_func_like, Item_func_if, Item_func_ifnull, Item_func_nullif,
             Item_func_coalesce, Item_func_case, Item_func_min, Item_func_max>(
             item) ||
         is_exactly_one_of<
             Item_func_plus, Item_func_minus, Item_func_mul, Item_func_div,
             Item_func_div_int, Item_func_mod, Item_func_neg, Item_func_abs,
             Item_func_sign, Item_func_ceiling, Item_func_floor,
             Item_func_round, Item_func_bit_or, Item_func_bit_and,
             Item_func_bit_xor, Item_func_bit_neg, Item_func_shift_left,
             Item_func_shift_right, Item_typecast_signed,
             Item_typecast_unsigned, Item_typecast_decimal, Item_typecast_real>(
             item) ||
         is_exactly_one_of<
             Item_func_concat, Item_func_concat_ws, Item_func_lower,
             Item_func_upper, Item_func_left, Item_func_right, Item_func_substr,
             Item_func_trim, Item_func_ltrim, Item_func_rtrim,
             Item_func_replace, Item_func_insert, Item_func_repeat,
             Item_func_reverse, Item_func_space, Item_func_lpad, Item_func_rpad,
             Item_func_elt, Item_func_field, Item_func_hex, Item_func_length,
             Item_func_char_length, Item_func_ascii, Item_func_locate,
             Item_func_instr, Item_typecast_char>(item);
}

/** All items that `thd` has parsed and that no instruction has are plain, and
the contexts of NEW and OLD columns are `context`. */
bool are_plain(const THD *thd, const Name_resolution_context *context) {
  for (Item *item = thd->item_list(); item != nullptr; item = item->next_free) {
    if (!is_plain(*item)) return false;
    if (item->type() == Item::TRIGGER_FIELD_ITEM &&
        static_cast<Item_trigger_field *>(item)->context != context)
      return false;
  }
  return true;
}

/** Parsing left the query expression and the query block as they were made,
except for numbers of items, which only a query needs. */
bool is_plain(Query_expression *expression, Query_block *block) {
  return expression->first_query_block() == block &&
         expression->next_query_expression() == nullptr &&
         expression->outer_query_block() == nullptr &&
         expression->query_term() == block && expression->uncacheable == 0 &&
         expression->query_result() == nullptr && !expression->is_prepared() &&
         block->next_query_block() == nullptr &&
         block->first_inner_query_expression() == nullptr &&
         block->fields.empty() && block->get_table_list() == nullptr &&
         block->leaf_tables == nullptr && block->where_cond() == nullptr &&
         block->having_cond() == nullptr && block->group_list.elements == 0 &&
         block->order_list.elements == 0 && block->m_windows.elements == 0 &&
         block->ftfunc_list->elements == 0 &&
         block->inner_sum_func_list == nullptr &&
         block->opt_hints_qb == nullptr && block->select_limit == nullptr &&
         block->offset_limit == nullptr && block->uncacheable == 0 &&
         block->active_options() == 0 && block->first_execution;
}

/** The LEX is that of an expression and uses nothing which can change. */
bool is_plain(LEX *lex) {
  return (lex->sql_command == SQLCOM_END ||
          lex->sql_command == SQLCOM_SET_OPTION) &&
         lex->m_sql_cmd == nullptr && lex->result == nullptr &&
         lex->opt_hints_global == nullptr && lex->in_sum_func == nullptr &&
         !lex->is_metadata_used() && lex->query_tables_own_last == nullptr &&
         lex->is_single_level_stmt() && lex->var_list.is_empty() &&
         lex->set_var_list.is_empty() && lex->param_list.is_empty() &&
         lex->plugins.empty() && !lex->has_values_map() &&
         lex->get_stmt_unsafe_flags() == 0 && !lex->is_stmt_row_injection() &&
         !lex->is_ignore() && !lex->is_explain() && !lex->is_broken() &&
         !lex->contains_plaintext_password && lex->statement_options() == 0 &&
         lex->context_stack.elements == 1 &&
         lex->current_context() == &lex->query_block->context &&
         is_plain(lex->unit, lex->query_block);
}

class Room;

/** A LEX that the parser made for a part of a program. */
class Program_lex final : public st_lex_local {
 public:
  explicit Program_lex(Room *room) : m_room(room) {}
  Room *room() const { return m_room; }

 private:
  Room *const m_room;
};

/** Memory for one LEX with its query expression and its query block. It lies in
the program's memory root. */
class Room {
 public:
  explicit Room(MEM_ROOT *root) : m_root(root) {}
  Room(const Room &) = delete;
  Room &operator=(const Room &) = delete;

  static Room *of(LEX *lex) {
    if (lex == nullptr || typeid(*lex) != typeid(Program_lex)) return nullptr;
    return static_cast<Program_lex *>(lex)->room();
  }

  /** Upstream has destroyed the LEX of a room that is used again. */
  LEX *make() {
    if (m_query_made) {
      std::destroy_at(m_block);
      std::destroy_at(m_expression);
      m_query_made = false;
    }
    is_replaceable = true;
    return lex = ::new (static_cast<void *>(m_lex_memory)) Program_lex(this);
  }

  /** The work of lex_start(). */
  void start(THD *thd) {
    make_query();
    lex->thd = thd;
    lex->new_static_query(m_expression, m_block);
    m_expression->set_query_term(m_block);
    thd->init_cost_model();
  }

  /** The query expression and the query block are as after parsing. The stack
  of contexts and NEW and OLD columns still refer to the block's context. */
  void renew_query() {
    std::destroy_at(m_block);
    std::destroy_at(m_expression);
    make_query();
    // As LEX::new_static_query().
    m_block->parent_lex = lex;
    lex->select_number = 0;
    m_block->include_down(lex, m_expression);
    lex->all_query_blocks_list = nullptr;
    m_block->include_in_global(&lex->all_query_blocks_list);
    m_block->context.query_block = m_block;
    m_block->context.resolve_in_select_list = true;
    m_expression->set_query_term(m_block);
  }

  /** It is one of `rooms`. The pointers there may be those of a program whose
  parsing has ended. */
  bool is_being_parsed() const;

  Name_resolution_context *context() const { return &m_block->context; }

  Room *next{nullptr};  // in one of the lists
  LEX *lex{nullptr};
  bool is_replaceable{true};  // all that was parsed since make() was plain
  int users{0};  // instructions that keep the LEX; 0: it is not to be shared

 private:
  void make_query() {
    m_expression = ::new (static_cast<void *>(m_expression_memory))
        Query_expression(CTX_NONE);
    m_block = ::new (static_cast<void *>(m_block_memory))
        Query_block(m_root, nullptr, nullptr);
    m_query_made = true;
  }

  MEM_ROOT *const m_root;
  bool m_query_made{false};
  Query_expression *m_expression{nullptr};
  Query_block *m_block{nullptr};
  alignas(Program_lex) std::byte m_lex_memory[sizeof(Program_lex)];
  alignas(Query_expression) std::byte
      m_expression_memory[sizeof(Query_expression)];
  alignas(Query_block) std::byte m_block_memory[sizeof(Query_block)];
};

/** The rooms of the program that this thread parses. */
struct Rooms {
  const MEM_ROOT *program{nullptr};
  Room *open{nullptr};    // being parsed, the innermost first
  Room *spare{nullptr};   // nothing refers to their LEXes
  Room *shared{nullptr};  // the last one first
};
constinit thread_local Rooms rooms;

bool Room::is_being_parsed() const { return m_root == rooms.program; }

LEX *new_lex(THD *thd, const sp_head *program) {
  if (!program->m_parser_data.is_parsing_sp_body())
    return new (thd->mem_root) st_lex_local;
  size_blocks(thd->mem_root);
  if (rooms.program != thd->mem_root) return new (thd->mem_root) st_lex_local;
  Room *room = rooms.spare;
  if (room != nullptr) {
    rooms.spare = room->next;
  } else {
    void *const memory = thd->mem_root->Alloc(sizeof(Room));
    if (memory == nullptr) return nullptr;
    room = ::new (memory) Room(thd->mem_root);
  }
  room->next = rooms.open;
  rooms.open = room;
  return room->make();
}

}  // namespace

void begin_lexes(const MEM_ROOT *program) { rooms = {.program = program}; }

LEX *open_lex(THD *thd, const sp_head *program) {
  LEX *const lex = new_lex(thd, program);
  if (lex == nullptr) return nullptr;
  thd->lex = lex;
  Room *const room = Room::of(lex);
  if (room != nullptr)
    room->start(thd);
  else
    lex_start(thd);
  return lex;
}

LEX *lex_to_keep(LEX *lex) {
  Room *const room = Room::of(lex);
  if (room == nullptr || !room->is_being_parsed()) return lex;
  // Other instructions of the same DECLARE may keep it already.
  if (room != rooms.open || lex->sp_lex_in_use || !is_plain(lex) ||
      !are_plain(lex->thd, room->context())) {
    for (Room *open = rooms.open; open != nullptr; open = open->next)
      open->is_replaceable = false;
    return lex;
  }
  int compared = 0;
  for (Room *other = rooms.shared;
       other != nullptr && compared < compared_lexes;
       other = other->next, ++compared) {
    if (other->users == 0 || other->lex->sql_command != lex->sql_command ||
        other->lex->option_type != lex->option_type ||
        other->lex->get_sp_current_parsing_ctx() !=
            lex->get_sp_current_parsing_ctx())
      continue;
    for (Item *item = lex->thd->item_list(); item != nullptr;
         item = item->next_free) {
      if (item->type() == Item::TRIGGER_FIELD_ITEM)
        static_cast<Item_trigger_field *>(item)->context = other->context();
    }
    ++other->users;
    return other->lex;
  }
  room->users = 1;
  return lex;
}

bool others_keep(LEX **lex) {
  Room *const room = Room::of(*lex);
  if (room == nullptr || room->users == 0 || --room->users == 0) return false;
  *lex = nullptr;
  return true;
}

void end_lex(const THD *thd) {
  Room *const room = Room::of(thd->lex);
  if (room == nullptr || !room->is_being_parsed() || room != rooms.open) return;
  rooms.open = room->next;
  Room **list = nullptr;
  if (room->users != 0)
    list = &rooms.shared;
  else if (!thd->lex->sp_lex_in_use && room->is_replaceable &&
           thd->item_list() == nullptr)
    list = &rooms.spare;
  if (list == nullptr) return;
  room->next = *list;
  *list = room;
}

void before_expression(LEX *lex, const Query_arena &arena) {
  Room *const room = Room::of(lex);
  if (room == nullptr || room->users == 0) return;
  if (arena.get_state() == Query_arena::STMT_INITIALIZED_FOR_SP) {
    room->renew_query();
    lex->reset_crossed_memory_status_limit();
  } else {
    if (!lex->unit->is_prepared()) lex->unit->set_prepared();
    lex->query_block->first_execution = false;
  }
}

}  // namespace memdiag
