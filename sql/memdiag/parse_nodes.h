/*
  Memory of the parser that ends with parsing: that for a stored program, a
  prepared statement, or a long text (patches/diets/0044-parse-nodes.patch).

  For each name, function call and comparison the parser first makes a
  placeholder, a Parse_tree_item of 200 bytes, and later an item in its stead.
  It makes three nodes for a SET, and a list of arguments for a call. A memory
  root frees nothing before its end, so a program or a statement kept all of
  this for as long as a session caches it. Now it comes from another root:

  parsed               root
  -------------------  --------------------------------------------------------
  stored program       one of its own, which ends with the parsing of the body
  prepared statement,  one of its own, which ends when the text is parsed
  text of 64 KB and
  more

  Nothing uses this memory by then. No placeholder can be resolved or evaluated,
  so its itemize() has put the item in its place wherever it stood.
  GROUP_CONCAT copies its ORDER BY before that, so the patch corrects the copy.
  Upstream's list of items to destroy no longer contains placeholders. The nodes
  of a SET have made its instruction, and a call has copied its list. None owns
  anything that would need a destructor.

  Towards parser_max_mem_size all of it counts. So where that is set, it comes
  from the root that is kept, as in stock.

  Threads: each has its own text to parse. Errors: without memory as in stock,
  where an allocation is nullptr.
*/

#ifndef MEMDIAG_PARSE_NODES_H
#define MEMDIAG_PARSE_NODES_H

#include "my_alloc.h"

class THD;

/** In a class whose objects end with parsing. */
#define MEMDIAG_ENDS_WITH_PARSING                                             \
  static void *operator new(size_t size, MEM_ROOT *root = *THR_MALLOC,        \
                            const std::nothrow_t & = std::nothrow) noexcept { \
    return memdiag::parse_root(root)->Alloc(size);                            \
  }

namespace memdiag {

struct Parse_roots {
  const MEM_ROOT *kept{nullptr};
  MEM_ROOT *placeholders{nullptr};
};
inline constinit thread_local Parse_roots parse_roots;

/** The root for a placeholder that the parser would allocate from `root`. */
inline MEM_ROOT *parse_root(MEM_ROOT *root) {
  return root == parse_roots.kept ? parse_roots.placeholders : root;
}

/** The body of a program has been parsed, or its parsing was given up. */
inline void end_parse_nodes(const MEM_ROOT *program) {
  if (program != parse_roots.kept) return;
  parse_roots.placeholders->Clear();
  parse_roots = {};
}

/** While it lives, `thd` parses a statement that is kept in thd->mem_root, and
its placeholders come from `root`, which must live longer. An event's body may
be a part of the statement; placeholders behind the body are kept. */
class Parse_nodes {
 public:
  Parse_nodes(const THD *thd, MEM_ROOT *root);
  Parse_nodes(const Parse_nodes &) = delete;
  Parse_nodes &operator=(const Parse_nodes &) = delete;
  ~Parse_nodes() { parse_roots = m_before; }

 private:
  const Parse_roots m_before{parse_roots};
};

}  // namespace memdiag

#endif  // MEMDIAG_PARSE_NODES_H
