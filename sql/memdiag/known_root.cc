#include "sql/memdiag/known_root.h"

#include <functional>
#include <string_view>

#include "mysys/memdiag/upstream/root_sizes.h"
#include "sql/psi_memory_key.h"
#include "sql/sql_class.h"
#include "sql/sql_prepare.h"

namespace memdiag {

namespace {

static_assert(sizeof(Prepared_statement) <= 512, "patches/diets/0049");

constinit Root_sizes sizes;

size_t hash(std::string_view text) {
  return std::hash<std::string_view>()(text);
}

size_t hash(const THD *thd, std::string_view text) {
  const auto [name, length] = thd->db();
  return name == nullptr ? hash(text) : hash(text) ^ hash({name, length}) * 31;
}

}  // namespace

Known_root::Known_root(const THD *thd, MEM_ROOT *root, const char *text,
                       size_t length)
    : m_thd(thd), m_root(root), m_text(hash(thd, {text, length})) {
  const bool is_limited =
      root_blocks::is_limited(thd->variables.parser_max_mem_size);
  const size_t bytes = is_limited ? 0 : sizes.find(m_text);
  root_blocks::expected = {key_memory_prepared_statement_main_mem_root, bytes};
  // PREPARE in SQL has put the statement's name there already.
  const size_t has = root->allocated_size();
  if (bytes > has) root->set_block_size(root_blocks::size_towards(bytes - has));
}

Known_root::~Known_root() {
  if (root_blocks::expected.bytes != 0)
    m_root->set_block_size(root_blocks::beyond_least);
  root_blocks::expected = m_before;
  // An error may have ended the preparation before the root was complete.
  if (m_thd->is_error()) return;
  const auto [begin, end] = m_root->Peek();
  sizes.note(m_text, m_root->allocated_size() - (end - begin));
}

}  // namespace memdiag
