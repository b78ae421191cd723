#include "sql/memdiag/sp_lexes.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <type_traits>

#include "my_alloc.h"
#include "mysys/memdiag/upstream/root_blocks.h"
#include "sql/item.h"
#include "sql/memdiag/parse_nodes.h"
#include "sql/psi_memory_key.h"
#include "sql/sp_head.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/sql_list.h"

namespace memdiag {

namespace {

using Word = uintptr_t;

/** A program has few kinds of expressions, for each of its scopes. */
constexpr int COMPARED = 16;

/** A size class of jemalloc without the page that it adds to larger ones. */
constexpr size_t BLOCK_SIZE = 14 * 1024;
/** That of a program's first blocks: a small program leaves less empty. */
constexpr size_t FIRST_BLOCK_SIZE = 8 * 1024;
constexpr size_t FIRST_BLOCKS = 4 * FIRST_BLOCK_SIZE;

/** Most statements take less. More would write pages of the last block that no
statement uses. */
constexpr size_t ZEROED_AHEAD = 4096;

constexpr size_t rounded(size_t size) {
  return (size + sizeof(Word) - 1) & ~(sizeof(Word) - 1);
}

constexpr size_t EXPRESSION_AT = rounded(sizeof(st_lex_local));
constexpr size_t BLOCK_AT = EXPRESSION_AT + rounded(sizeof(Query_expression));
constexpr size_t OBJECTS_SIZE = BLOCK_AT + rounded(sizeof(Query_block));
/** The query expression and the query block. */
constexpr size_t RESOLVED_SIZE = OBJECTS_SIZE - EXPRESSION_AT;

// As a memory root aligns.
static_assert(alignof(st_lex_local) <= sizeof(Word) &&
              alignof(Query_expression) <= sizeof(Word) &&
              alignof(Query_block) <= sizeof(Word));

Word word_at(const void *place) {
  Word word;
  memcpy(&word, place, sizeof(word));
  return word;
}

/** The LEXes of one program. Its functions are those of the header. */
class Sp_lexes {
 public:
  struct Room;

  /** `root` is the program's. No expression of it has been parsed. */
  explicit Sp_lexes(MEM_ROOT *root);
  Sp_lexes(const Sp_lexes &) = delete;
  Sp_lexes &operator=(const Sp_lexes &) = delete;
  ~Sp_lexes();

  /** That of a program; nullptr before its body is parsed. */
  static Sp_lexes *of(const sp_head *program) {
    return static_cast<Sp_lexes *>(program->m_spare_lex);
  }

  LEX *make(THD *thd);
  void start(THD *thd);
  LEX *keep(LEX *lex, bool *is_owner);
  void end(const THD *thd);

 private:
  /** The position of a memory root. */
  struct Mark {
    Mark() = default;
    explicit Mark(const MEM_ROOT &root);
    bool is_in_same_block(const Mark &earlier) const {
      return block_end == earlier.block_end && blocks == earlier.blocks;
    }
    char *at{nullptr};
    char *block_end{nullptr};
    size_t blocks{0};  // bytes of all blocks
  };

  struct Memory {
    const char *begin;
    const char *end;
  };

  void statement_ended(MEM_ROOT *root);
  bool is_unreferenced(const MEM_ROOT &root, const Room &room) const;

  Room *m_open{nullptr};    // being parsed, the innermost first
  Room *m_spare{nullptr};   // nothing refers to their LEXes
  Room *m_shared{nullptr};  // the last one first
  Mark m_last_end;          // of the last statement, or of what is before all
  char *m_zeroed_to{nullptr};  // in the block of m_last_end
  size_t m_block_room{0};      // of the root's next block; 0: not known
  // The program's key: a connection's memory limit counts neither.
  MEM_ROOT m_placeholders{key_memory_sp_head_main_root, BLOCK_SIZE};
};

/** Calls use(field) for the NEW and OLD columns in the items of the expression
that is being parsed. */
template <class Use>
void for_trigger_fields(const THD *thd, Use use) {
  for (Item *item = thd->item_list(); item != nullptr; item = item->next_free) {
    if (item->type() == Item::TRIGGER_FIELD_ITEM)
      use(static_cast<Item_trigger_field *>(item));
  }
}

bool is_context_of_trigger_field(const THD *thd, const char *place) {
  bool found = false;
  for_trigger_fields(thd, [&](Item_trigger_field *field) {
    found |= reinterpret_cast<const char *>(&field->context) == place;
  });
  return found;
}

/** One LEX with its query expression and its query block. */
struct Sp_lexes::Room {
  Room *next{nullptr};
  bool to_share{false};
  // The traces of parsing in the query expression and block, if to_share.
  std::byte *parsed{nullptr};
  Mark made;
  // The element of upstream's stack that points to the enclosing LEX.
  char *stacked{nullptr};
  size_t stacked_size{0};
  alignas(Word) std::byte objects[OBJECTS_SIZE];

  st_lex_local *lex() const {
    return std::launder(
        reinterpret_cast<st_lex_local *>(const_cast<std::byte *>(objects)));
  }

  void clear() {
    memset(objects, 0, sizeof(objects));
    // The constructors leave padding and some members as they are. Without this
    // the compiler may leave out the memset().
    asm volatile("" : : "r"(objects) : "memory");
  }

  static Room *of(LEX *lex) {
    static_assert(std::is_standard_layout_v<Room>);
    return reinterpret_cast<Room *>(reinterpret_cast<char *>(lex) -
                                    offsetof(Room, objects));
  }

  /** Without memory, true. */
  bool share(MEM_ROOT *root) {
    parsed = static_cast<std::byte *>(root->Alloc(RESOLVED_SIZE));
    if (parsed == nullptr) return true;
    memcpy(parsed, objects + EXPRESSION_AT, RESOLVED_SIZE);
    to_share = true;
    return false;
  }

  void forget_resolution() {
    if (parsed == nullptr) return;
    memcpy(objects + EXPRESSION_AT, parsed, RESOLVED_SIZE);
    // Otherwise only the first expression would count when it crosses a limit.
    lex()->reset_crossed_memory_status_limit();
  }

  bool points_into(Word word) const {
    return word - reinterpret_cast<Word>(objects) < sizeof(objects);
  }

  /** No word of this memory points to the objects, except their own, the one
  element of the LEX's list of contexts, and contexts of NEW and OLD columns. */
  bool is_unreferenced(Memory memory) const {
    const auto *const self = reinterpret_cast<const char *>(this);
    const auto *const element =
        reinterpret_cast<const char *>(lex()->context_stack.first_node());
    for (const char *at = memory.begin; at + sizeof(Word) <= memory.end;
         at += sizeof(Word)) {
      if (!points_into(word_at(at)) ||
          (at >= self && at < self + sizeof(*this)))
        continue;
      if (at >= element && at < element + sizeof(list_node)) continue;
      if (!is_context_of_trigger_field(lex()->thd, at)) return false;
    }
    return true;
  }

  /** The expression that was parsed here takes the LEX of `other`. */
  void yield_to(const Room &other) {
    lex()->sp_lex_in_use = false;
    for_trigger_fields(lex()->thd, [&](Item_trigger_field *field) {
      if (field->context == &lex()->query_block->context)
        field->context = &other.lex()->query_block->context;
    });
  }

  /** After that, the element does not point to the next user's context. */
  void forget_context() {
    if (!lex()->context_stack.is_empty())
      memset(static_cast<void *>(lex()->context_stack.first_node()), 0,
             sizeof(list_node));
  }

  /** An expression that uses nothing which can change. */
  bool is_plain() const {
    LEX *const of = lex();
    return (of->sql_command == SQLCOM_END ||
            of->sql_command == SQLCOM_SET_OPTION) &&
           of->m_sql_cmd == nullptr && of->result == nullptr &&
           of->var_list.is_empty() && of->plugins.empty() &&
           !of->is_metadata_used() && of->is_single_level_stmt() &&
           of->unit->first_query_block() == of->query_block &&
           of->context_stack.elements == 1 &&
           of->current_context() == &of->query_block->context;
  }

  /** Both have the same values; `other` is plain, too. */
  bool equals(const Room &other) const {
    // The only element is the query block's: is_plain().
    const auto *const skipped =
        reinterpret_cast<const std::byte *>(&lex()->context_stack);
    const size_t skipped_at = skipped - objects;
    const auto begin = reinterpret_cast<Word>(objects);
    const auto other_begin = reinterpret_cast<Word>(other.objects);
    for (size_t at = 0; at < OBJECTS_SIZE; at += sizeof(Word)) {
      if (at - skipped_at < sizeof(lex()->context_stack)) continue;
      const Word word = word_at(objects + at);
      const Word other_word = word_at(other.objects + at);
      if (word == other_word) continue;
      if (!points_into(word) || word - begin != other_word - other_begin)
        return false;
    }
    return true;
  }
};

Sp_lexes::Sp_lexes(MEM_ROOT *root) {
  // Towards a limit, placeholders count.
  if (!root_blocks::is_limited(root->get_max_capacity()))
    parse_roots = {root, &m_placeholders};
  // So the first expressions share a LEX, too.
  statement_ended(root);
}

Sp_lexes::~Sp_lexes() {
  if (parse_roots.placeholders == &m_placeholders) parse_roots = {};
  // As sp_lex_instr::free_lex() does it.
  for (Room *room = m_shared; room != nullptr; room = room->next) {
    st_lex_local *const lex = room->lex();
    lex->sphead = nullptr;
    lex_end(lex);
    lex->destroy();
    std::destroy_at(lex);
  }
}

Sp_lexes::Mark::Mark(const MEM_ROOT &root)
    : at(root.Peek().first),
      block_end(root.Peek().second),
      blocks(root.allocated_size()) {}

LEX *Sp_lexes::make(THD *thd) {
  Room *room = m_spare;
  if (room != nullptr) {
    m_spare = room->next;
  } else {
    void *const memory = thd->mem_root->Alloc(sizeof(Room));
    if (memory == nullptr) return nullptr;
    room = ::new (memory) Room;
  }
  room->clear();
  room->to_share = false;
  room->parsed = nullptr;
  room->made = Mark(*thd->mem_root);
  room->next = m_open;
  m_open = room;
  return ::new (static_cast<void *>(room->objects)) st_lex_local;
}

void Sp_lexes::start(THD *thd) {
  LEX *const lex = thd->lex;
  Room *const room = m_open;
  if (room == nullptr || room->lex() != lex) {
    lex_start(thd);
    return;
  }
  const Mark now(*thd->mem_root);
  room->stacked = room->made.at;
  room->stacked_size =
      now.is_in_same_block(room->made) ? now.at - room->made.at : 0;
  lex->thd = thd;
  thd->init_cost_model();
  auto *const expression =
      ::new (static_cast<void *>(room->objects + EXPRESSION_AT))
          Query_expression(CTX_NONE);
  auto *const block = ::new (static_cast<void *>(room->objects + BLOCK_AT))
      Query_block(thd->mem_root, nullptr, nullptr);
  lex->new_static_query(expression, block);
  expression->set_query_term(block);
}

/**
  Whether nothing refers to the objects.

  The parser makes the items of an expression partly before its LEX, and then
  stores pointers to the LEX in them. All of them are younger than the statement
  before. Those of the first DECLARE ... DEFAULT are older than any statement,
  but its LEX is the first one and has no other that it could yield to.
*/
bool Sp_lexes::is_unreferenced(const MEM_ROOT &root, const Room &room) const {
  const Mark now(root);
  if (now.is_in_same_block(m_last_end))
    return room.is_unreferenced({m_last_end.at, now.at});
  // Only if the root has taken one other block, of the size that
  // statement_ended() chose, is it known where that begins.
  if (now.block_end == m_last_end.block_end || m_block_room == 0 ||
      now.blocks - m_last_end.blocks != m_block_room)
    return false;
  return room.is_unreferenced({m_last_end.at, m_last_end.block_end}) &&
         room.is_unreferenced({now.block_end - m_block_room, now.at});
}

void Sp_lexes::statement_ended(MEM_ROOT *root) {
  // Blocks that grow leave a part of a program's memory unused.
  if (!root_blocks::is_limited(root->get_max_capacity())) {
    const size_t size =
        root->allocated_size() < FIRST_BLOCKS ? FIRST_BLOCK_SIZE : BLOCK_SIZE;
    root->set_block_size(size);
    // MEM_ROOT::AllocBlock() leaves so much of it (patches/0024).
    m_block_room = root_blocks::room(0, 0, size, 0);
  }
  const Mark now(*root);
  // Holes in what comes next would have words of the block's last user. To
  // is_unreferenced() some would look like pointers.
  char *const from = now.block_end == m_last_end.block_end
                         ? std::max(now.at, m_zeroed_to)
                         : now.at;
  m_zeroed_to = now.at + std::min<size_t>(now.block_end - now.at, ZEROED_AHEAD);
  if (m_zeroed_to > from) memset(from, 0, m_zeroed_to - from);
  m_last_end = now;
}

LEX *Sp_lexes::keep(LEX *lex, bool *is_owner) {
  Room *const room = m_open;
  if (room == nullptr || room->lex() != lex) return lex;
  if (lex->sp_lex_in_use) {
    // Another instruction of the same DECLARE keeps it already.
    if (room->to_share) *is_owner = false;
    return lex;
  }
  if (!room->is_plain() || !is_unreferenced(*lex->thd->mem_root, *room))
    return lex;
  lex->sp_lex_in_use = true;  // as those that it is compared with
  int compared = 0;
  for (Room *other = m_shared; other != nullptr && compared < COMPARED;
       other = other->next, ++compared) {
    if (room->equals(*other)) {
      room->yield_to(*other);
      *is_owner = false;
      return other->lex();
    }
  }
  if (!room->share(lex->thd->mem_root)) *is_owner = false;
  return lex;
}

void Sp_lexes::end(const THD *thd) {
  const LEX *const lex = thd->lex;
  Room *const room = m_open;
  if (room == nullptr || room->lex() != lex) return;
  m_open = room->next;
  // The element is no longer in use. To is_unreferenced() it would look as if
  // something referred to the enclosing LEX.
  memset(room->stacked, 0, room->stacked_size);
  Room **list = nullptr;
  if (lex->sp_lex_in_use) {
    if (room->to_share) list = &m_shared;
  } else if (is_unreferenced(*thd->mem_root, *room)) {
    list = &m_spare;
    room->forget_context();
  }
  if (list != nullptr) {
    room->next = *list;
    *list = room;
  }
  if (m_open == nullptr) statement_ended(thd->mem_root);
}

}  // namespace

LEX *new_lex(THD *thd, sp_head *program) {
  if (!program->m_parser_data.is_parsing_sp_body())
    return new (thd->mem_root) st_lex_local;
  if (program->m_spare_lex == nullptr)
    program->m_spare_lex = new (thd->mem_root) Sp_lexes(thd->mem_root);
  Sp_lexes *const lexes = Sp_lexes::of(program);
  return lexes == nullptr ? nullptr : lexes->make(thd);
}

void start_lex(THD *thd, const sp_head *program) {
  Sp_lexes *const lexes = Sp_lexes::of(program);
  if (lexes != nullptr)
    lexes->start(thd);
  else
    lex_start(thd);
}

LEX *lex_to_keep(LEX *lex, bool *is_owner) {
  if (lex == nullptr || lex->sphead == nullptr) return lex;
  Sp_lexes *const lexes = Sp_lexes::of(lex->sphead);
  return lexes == nullptr ? lex : lexes->keep(lex, is_owner);
}

void end_lex(const THD *thd, const sp_head *program) {
  Sp_lexes *const lexes = Sp_lexes::of(program);
  if (lexes != nullptr) lexes->end(thd);
}

void before_expression(LEX *lex, const Query_arena &arena) {
  // Only a LEX that the parser made may be another instruction's, and all of
  // those lie in rooms.
  if (arena.get_state() == Query_arena::STMT_INITIALIZED_FOR_SP)
    Sp_lexes::Room::of(lex)->forget_resolution();
}

void destroy_lexes(const sp_head *program) {
  Sp_lexes *const lexes = Sp_lexes::of(program);
  if (lexes != nullptr) std::destroy_at(lexes);
}

}  // namespace memdiag
