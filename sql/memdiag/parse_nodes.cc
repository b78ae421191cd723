#include "sql/memdiag/parse_nodes.h"

#include "mysys/memdiag/upstream/root_blocks.h"
#include "sql/memdiag/program_blocks.h"
#include "sql/memdiag/sp_lexes.h"
#include "sql/psi_memory_key.h"
#include "sql/sql_class.h"

namespace memdiag {

void begin_parse_nodes(MEM_ROOT *program) {
  begin_lexes(program);
  if (root_blocks::is_limited(program->get_max_capacity())) return;
  // The program's key: a connection's memory limit counts neither. Without
  // memory for it, placeholders stay in the program's root.
  auto *const placeholders =
      new (program) MEM_ROOT(key_memory_sp_head_main_root, 14 * 1024);
  if (placeholders != nullptr) parse_roots = {program, placeholders};
}

Parse_nodes::Parse_nodes(const THD *thd, MEM_ROOT *root) {
  if (!root_blocks::is_limited(thd->variables.parser_max_mem_size))
    parse_roots = {thd->mem_root, root};
}

}  // namespace memdiag
