/*
  The memory of the parser's placeholders in a stored program
  (patches/0044-parse-nodes.patch).

  For each name, function call and comparison the parser first makes a
  placeholder, a Parse_tree_item of 200 bytes, and later an item in its stead.
  A memory root frees nothing before its end, so a program kept the placeholders
  for as long as a session caches it. Now they have a root of their own, which
  ends with the parsing of the body.

  Nothing uses a placeholder by then. No placeholder can be resolved or
  evaluated, so its itemize() has put the item in its place wherever it stood.
  Upstream's list of items to destroy no longer contains placeholders. They own
  nothing that would need a destructor.

  Ownership: the placeholders' root belongs to Sp_lexes
  (sql/memdiag_sp_lexes.cc). Threads: each has its own program to parse. Errors:
  without memory as in stock, where an allocation is nullptr.
*/

#ifndef MEMDIAG_PARSE_NODES_H
#define MEMDIAG_PARSE_NODES_H

#include "my_alloc.h"

namespace memdiag {

struct Parse_roots {
  const MEM_ROOT *program{nullptr};
  MEM_ROOT *placeholders{nullptr};
};
inline constinit thread_local Parse_roots parse_roots;

/** The root for a placeholder that the parser would allocate from `root`. */
inline MEM_ROOT *parse_root(MEM_ROOT *root) {
  return root == parse_roots.program ? parse_roots.placeholders : root;
}

/** The body of a program has been parsed, or its parsing was given up. */
inline void end_parse_nodes(const MEM_ROOT *program) {
  if (program != parse_roots.program) return;
  parse_roots.placeholders->Clear();
  parse_roots = {};
}

}  // namespace memdiag

#endif  // MEMDIAG_PARSE_NODES_H
