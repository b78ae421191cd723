#include "sql/memdiag/parse_nodes.h"

#include "mysys/memdiag/upstream/root_blocks.h"
#include "sql/sql_class.h"

namespace memdiag {

Parse_nodes::Parse_nodes(const THD *thd, MEM_ROOT *root) {
  if (!root_blocks::is_limited(thd->variables.parser_max_mem_size))
    parse_roots = {thd->mem_root, root};
}

}  // namespace memdiag
