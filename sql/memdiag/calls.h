/*
  Memory of calls of functions (patches/diets/0052-calls.patch).

  upstream, for each                here
  --------------------------------  -------------------------------------------
  argument of a call by name: a     a call knows the text of itself; a wrapper
  wrapper of 216 bytes, until the   of another argument lives while its call is
  text is parsed, with the text     itemized; a number has its name at once
  that becomes the argument's name
  call of a JSON function: room     room for a pointer to paths, which the
  for eight paths, 1.4 KB           first path makes
  row of a GROUP_CONCAT with ORDER  a last VARCHAR takes its own length
  BY: its largest length

  Threads: a statement's own. Units: bytes. Errors: without memory as in stock,
  true or nullptr.
*/

#ifndef MEMDIAG_CALLS_H
#define MEMDIAG_CALLS_H

#include <memory>

#include "lex_string.h"
#include "my_inttypes.h"
#include "sql/parse_location.h"

class Item;
class Json_path;
class PT_item_list;
class THD;
struct MEM_ROOT;
struct TABLE;
struct TREE;
struct TREE_ELEMENT;

namespace memdiag {

/** The node for a call by name. @param arguments  of argument(); or nullptr */
Item *call(MEM_ROOT *root, const POS &pos, const LEX_STRING &name,
           PT_item_list *arguments);

/** The node for an argument of a call().
@param alias  its str is nullptr if there is none
@param text   of `value`, parentheses included */
Item *argument(THD *thd, const POS &pos, Item *value, const LEX_STRING &alias,
               const Symbol_location &text);

/** Inserts record[0] into the tree of a GROUP_CONCAT, without NULL bits. */
TREE_ELEMENT *insert_row(TREE *tree, const TABLE *table);

}  // namespace memdiag

/** The paths among the arguments of a JSON function, each parsed once if it is
constant. It owns them until reset_cache(). */
class Json_path_cache {
 public:
  /** @param size  number of arguments */
  Json_path_cache(THD *, uint size) : m_size(size) {}

  /** Parses an argument that is not NULL as a literal.
  @return true: it is wrong, or has wildcards that are forbidden; raised */
  bool parse_and_cache_path(const THD *thd, Item **args, uint arg_idx,
                            bool forbid_wildcards);

  /** @return nullptr: the argument was not parsed, or is NULL. The path lives
  until its argument is parsed again. */
  const Json_path *get_path(uint arg_idx) const;

  /** To be called between executions: constants may change. */
  void reset_cache() { m_paths.reset(); }

 private:
  struct Paths;
  struct Free {
    void operator()(Paths *paths) const;
  };

  const uint m_size;
  std::unique_ptr<Paths, Free> m_paths;
};

#endif  // MEMDIAG_CALLS_H
