#include "sql/memdiag/parse_nodes.h"

#include <cstddef>
#include <new>

#include "mysys/memdiag/upstream/root_blocks.h"
#include "sql/memdiag/program_blocks.h"
#include "sql/memdiag/sp_lexes.h"
#include "sql/psi_memory_key.h"
#include "sql/sp_head.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/thr_malloc.h"

namespace memdiag {
namespace {

/** Bytes of a statement that is not prepared. */
constexpr ptrdiff_t long_text = 64 * 1024;

}  // namespace

void begin_parse_nodes(MEM_ROOT *program) {
  begin_lexes(program);
  if (root_blocks::is_limited(program->get_max_capacity())) return;
  // The program's key: a connection's memory limit counts neither. Without
  // memory for it, placeholders stay in the program's root.
  auto *const placeholders =
      new (program) MEM_ROOT(key_memory_sp_head_main_root, 14 * 1024);
  if (placeholders != nullptr) parse_roots = {program, placeholders};
}

void end_body(const THD *thd) {
  end_parse_nodes(thd->mem_root);
  const sp_head *const program = thd->lex->sphead;
  if (program != nullptr && program->m_type == enum_sp_type::TRIGGER)
    note_trigger(thd->mem_root);
}

void end_program(sp_head *program) {
  const MEM_ROOT *const root = program->get_persistent_mem_root();
  end_parse_nodes(root);
  if (program->m_type == enum_sp_type::TRIGGER) forget_trigger(root);
}

/* Called when a text is about to be parsed, with an empty root. Small
statements are parsed so often that a block for them would cost more than it
saves. Texts without a digest are those of views, triggers and columns. */
Parse_nodes::Parse_nodes(const THD *thd, MEM_ROOT *root) {
  const Parser_state &state = *thd->m_parser_state;
  const Lex_input_stream &text = state.m_lip;
  const ptrdiff_t length = text.get_end_of_query() - text.get_buf();
  if (!state.m_input.m_has_digest ||
      (!text.stmt_prepare_mode && length < long_text) ||
      root_blocks::is_limited(thd->variables.parser_max_mem_size))
    return;
  init_sql_alloc(key_memory_thd_main_mem_root, root, 8 * 1024);
  parse_roots = {thd->mem_root, root};
}

}  // namespace memdiag
