#include "sql/memdiag/calls.h"

#include <algorithm>
#include <cstddef>
#include <typeinfo>

#include "my_alloc.h"
#include "my_sys.h"
#include "my_tree.h"
#include "mysql/service_mysql_alloc.h"
#include "sql-common/json_path.h"
#include "sql/field.h"
#include "sql/item.h"
#include "sql/memdiag/parse_nodes.h"
#include "sql/parse_tree_helpers.h"
#include "sql/parse_tree_items.h"
#include "sql/parse_tree_node_base.h"
#include "sql/psi_memory_key.h"
#include "sql/sql_class.h"
#include "sql/sql_lex.h"
#include "sql/table.h"

namespace memdiag {
namespace {

/** Upstream's types that itemize() leaves as they are. */
bool is_number(const Item &item) {
  const std::type_info &type = typeid(item);
  return type == typeid(Item_int) || type == typeid(Item_uint) ||
         type == typeid(Item_decimal) || type == typeid(Item_float);
}

void set_name(Item *item, const Symbol_location &text, const THD *thd) {
  item->item_name.copy(text.start, text.length(), thd->charset());
}

/** A call that becomes the argument's name as PTI_udf_expr would, if it is an
argument. Its wrappers live while it is itemized: by then each has put the item
in its place. */
class Call final : public PTI_function_call_generic_ident_sys {
 public:
  Call(const POS &pos, const LEX_STRING &name, PT_item_list *arguments)
      : PTI_function_call_generic_ident_sys(pos, name, arguments),
        m_arguments(arguments) {}

  /** A placeholder has no value, so this has room for the place of the text. */
  void becomes_argument(const Symbol_location &text) {
    str_value.set(text.start, text.length(), &my_charset_bin);
  }
  bool is_argument() const { return str_value.ptr() != nullptr; }

  bool do_itemize(Parse_context *pc, Item **res) override;

 private:
  bool wrap_arguments(Parse_context *pc, MEM_ROOT *root);

  Symbol_location text() const {
    return {str_value.ptr(), str_value.ptr() + str_value.length()};
  }

  PT_item_list *const m_arguments;
};

bool Call::wrap_arguments(Parse_context *pc, MEM_ROOT *root) {
  uint without = 0;
  for (Item *&value : m_arguments->value) {
    if (typeid(*value) == typeid(PTI_udf_expr)) continue;
    const auto *const call = dynamic_cast<const Call *>(value);
    if (is_number(*value) || (call != nullptr && call->is_argument())) {
      ++without;
      continue;
    }
    value = new (root)
        PTI_udf_expr(value->m_pos, value, NULL_STR, value->m_pos.cpp);
    if (value == nullptr) return true;
  }
  // Upstream counts a wrapper as an item, and makes room for so many.
  if (pc->select == nullptr) return false;
  switch (pc->select->parsing_place) {
    case CTX_SELECT_LIST:
    case CTX_HAVING:
    case CTX_QUALIFY:
    case CTX_ORDER_BY:
      pc->select->select_n_having_items += without;
      break;
    default:
      break;
  }
  return false;
}

bool Call::do_itemize(Parse_context *pc, Item **res) {
  constexpr size_t most = 64 * 1024;  // of a block
  const size_t arguments = m_arguments == nullptr ? 0 : m_arguments->elements();
  MEM_ROOT wrappers(
      key_memory_thd_main_mem_root,
      std::clamp(arguments * sizeof(PTI_udf_expr), sizeof(PTI_udf_expr), most));
  if (arguments != 0 && wrap_arguments(pc, &wrappers)) return true;
  if (PTI_function_call_generic_ident_sys::do_itemize(pc, res)) return true;
  if (is_argument() && (*res)->type() != FIELD_ITEM &&
      (*res)->type() != REF_ITEM)
    set_name(*res, text(), pc->thd);
  return false;
}

}  // namespace

/* Where placeholders are kept with the items, parser_max_mem_size counts them,
or the statement is short: then it is as in stock. */
Item *call(MEM_ROOT *root, const POS &pos, const LEX_STRING &name,
           PT_item_list *arguments) {
  if (parse_root(root) == root)
    return new (root) PTI_function_call_generic_ident_sys(pos, name, arguments);
  return new (root) Call(pos, name, arguments);
}

Item *argument(THD *thd, const POS &pos, Item *value, const LEX_STRING &alias,
               const Symbol_location &text) {
  if (value == nullptr) return nullptr;
  if (alias.str == nullptr && parse_root(thd->mem_root) != thd->mem_root) {
    if (auto *const call = dynamic_cast<Call *>(value)) {
      call->becomes_argument(text);
      return value;
    }
    if (is_number(*value)) {
      set_name(value, text, thd);
      return value;
    }
    const Symbol_location &own = value->m_pos.cpp;
    if (own.start == text.start && own.end == text.end) return value;
  }
  return new (thd->mem_root) PTI_udf_expr(pos, value, alias, text);
}

/* The tree copies as many bytes as it has for an element. It compares and reads
fields alone, and a VARCHAR only as far as its length says. */
TREE_ELEMENT *insert_row(TREE *tree, const TABLE *table) {
  uchar *const begin = table->record[0] + table->s->null_bytes;
  const uchar *const end = table->record[0] + table->s->reclength;
  // A row of constants has no field.
  const Field *const last =
      table->s->fields == 0 ? nullptr : table->field[table->s->fields - 1];
  if (last != nullptr && last->real_type() == MYSQL_TYPE_VARCHAR &&
      last->field_ptr() + last->pack_length() == end) {
    const uchar *const used =
        last->field_ptr() + last->get_length_bytes() + last->data_length();
    const size_t pointer = tree->offset_to_key == 0 ? sizeof(void *) : 0;
    tree->size_of_element = static_cast<uint>(used - begin + pointer);
  }
  return tree_insert(tree, begin, 0, tree->custom_arg);
}

}  // namespace memdiag

struct Json_path_cache::Paths {
  struct Path {
    Json_path value{key_memory_JSON};
    enum { unknown, null, parsed } state{unknown};
  };

  /** Holds the text of an argument that has none of its own. */
  String text;
  /** One for each argument. */
  Path **of;
  uint size;
};

void Json_path_cache::Free::operator()(Paths *paths) const {
  for (uint i = 0; i < paths->size; ++i) {
    if (paths->of[i] == nullptr) continue;
    std::destroy_at(paths->of[i]);
    my_free(paths->of[i]);
  }
  std::destroy_at(paths);
  my_free(paths);
}

bool Json_path_cache::parse_and_cache_path(const THD *thd, Item **args,
                                           uint arg_idx,
                                           bool forbid_wildcards) {
  using Path = Paths::Path;
  if (m_paths == nullptr) {
    void *const memory =
        my_malloc(key_memory_JSON, sizeof(Paths) + m_size * sizeof(Path *),
                  MYF(MY_WME | MY_ZEROFILL));
    if (memory == nullptr) return true;
    auto *const paths = ::new (memory) Paths;
    paths->of = reinterpret_cast<Path **>(paths + 1);
    paths->size = m_size;
    m_paths.reset(paths);
  }
  Item *const argument = args[arg_idx];
  Path *&path = m_paths->of[arg_idx];
  if (path == nullptr) {
    void *const memory = my_malloc(key_memory_JSON, sizeof(Path), MYF(MY_WME));
    if (memory == nullptr) return true;
    path = ::new (memory) Path;
  } else {
    if (path->state != Path::unknown && argument->const_for_execution())
      return false;
    path->value.clear();
  }
  const String *const text = argument->val_str(&m_paths->text);
  if (thd->is_error()) return true;
  if (argument->null_value) {
    path->state = Path::null;
    return false;
  }
  if (parse_path(*text, forbid_wildcards, &path->value)) return true;
  path->state = Path::parsed;
  return false;
}

const Json_path *Json_path_cache::get_path(uint arg_idx) const {
  if (m_paths == nullptr) return nullptr;
  const Paths::Path *const path = m_paths->of[arg_idx];
  return path != nullptr && path->state == Paths::Path::parsed ? &path->value
                                                               : nullptr;
}
