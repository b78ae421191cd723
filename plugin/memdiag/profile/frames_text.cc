#include "plugin/memdiag/profile/frames_text.h"

#include <algorithm>
#include <vector>

namespace memdiag::profile {
namespace {

/** Names, or beginnings of names where a '*' follows. */
constexpr std::string_view allocator_frames[] = {
    // jemalloc: its functions begin with je_, its static ones have many names.
    "je_*", "prof_*", "arena_*", "tcache_*", "imalloc*", "large_*",
    "do_rallocx", "malloc_init_*", "mallocx", "rallocx", "xallocx", "malloc",
    "calloc", "realloc", "reallocarray", "aligned_alloc", "memalign",
    "posix_memalign", "valloc", "pvalloc", "__libc_*alloc", "operator new",
    "operator new[]", "fallbackNewImpl", "handleOOM",
    // Our layer.
    "memdiag_*", "memdiag::pools::*", "memdiag::profiling::*",
    "memdiag::mallctl::*", "memdiag::routes::*", "memdiag::block_events::*",
    "memdiag::scopes::*", "memdiag::tracking::*", "memdiag::purging::*"};

/** Those of them that take a sample. */
constexpr std::string_view profiler_frames[] = {"memdiag::profiling::*",
                                                "je_prof_*", "prof_*"};

constexpr std::string_view helper_frames[] = {
    // mysys
    "my_malloc", "my_internal_malloc", "my_realloc", "my_multi_malloc",
    "my_strdup", "my_strndup", "my_memdup", "MEM_ROOT::*", "multi_alloc_root",
    "strdup_root", "safe_strdup_root", "strmake_root", "memdup_root",
    "my_init_dynamic_array", "insert_dynamic", "alloc_dynamic",
    "init_dynamic_string", "dynstr_*", "Prealloced_array::*",
    "Malloc_allocator::*", "Mem_root_allocator::*", "Mem_root_array::*",
    "Mem_root_array_YY::*", "mem_root_deque::*", "malloc_unordered_map::*",
    "malloc_unordered_multimap::*", "malloc_unordered_set::*",
    "mem_root_unordered_map::*", "mem_root_unordered_set::*",
    "collation_unordered_map::*", "ankerl::unordered_dense::*",
    // sql
    "thd_alloc", "thd_calloc", "thd_memdup", "thd_strdup", "thd_strmake",
    "Query_arena::alloc*", "String::real_alloc", "String::reserve",
    "String::mem_realloc", "String::mem_realloc_exp", "String::append*",
    "String::copy", "StringBuffer::*", "base_list::push_*", "List::push_*",
    "BaseString::append*", "BaseString::assign",
    // InnoDB
    "mem_heap_*", "mem_strdup*", "ut::*", "ut_allocator::*", "ib_heap_*",
    "ib_vector_*",
    // Performance Schema, TempTable
    "pfs_malloc*", "PFS_buffer_scalable_container::allocate",
    "temptable::Allocator::*", "temptable::Block::*", "temptable::Chunk::*",
    "temptable::Block_PSI_*",
    // libraries
    "std::*", "__gnu_cxx::*", "google::protobuf::internal::*",
    "google::protobuf::Arena::*", "CRYPTO_malloc", "CRYPTO_zalloc",
    "CRYPTO_realloc", "CRYPTO_strdup", "CRYPTO_memdup",
    // where threads and processes begin
    "start_thread", "clone", "clone3", "pfs_spawn_thread", "_start",
    "__libc_start_*", "Detached_thread::*"};

/** A name that is not demangled may have more bytes than FRAMES, whose other
functions would have no room. */
constexpr size_t max_linkage_name = 96;

std::string readable_name(const std::string &name) {
  return name.starts_with("_Z") && name.size() > max_linkage_name
             ? name.substr(0, max_linkage_name) + "..."
             : name;
}

/** @param pattern  with '*' at most once
@return true: the pattern describes the name */
bool matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return name == pattern;
  const std::string_view end = pattern.substr(star + 1);
  return name.size() >= star + end.size() &&
         name.starts_with(pattern.substr(0, star)) && name.ends_with(end);
}

template <size_t n>
bool is_among(const std::string_view (&patterns)[n], std::string_view name) {
  return std::any_of(
      std::begin(patterns), std::end(patterns),
      [name](std::string_view pattern) { return matches(pattern, name); });
}

}  // namespace

Frame_kind kind_of_frame(std::string_view name) {
  if (is_among(allocator_frames, name)) return Frame_kind::allocator;
  if (is_among(helper_frames, name)) return Frame_kind::helper;
  return Frame_kind::code;
}

std::span<const uint64_t> without_allocator(std::span<const uint64_t> addresses,
                                            const Symbols &symbols) {
  size_t skipped = 0;
  for (size_t i = 0; i < addresses.size(); ++i) {
    const Symbol &symbol = symbols[addresses[i]];
    if (kind_of_frame(symbol.name) == Frame_kind::allocator)
      skipped = i + 1;
    else if (symbol.is_known())
      break;
  }
  if (skipped != addresses.size()) return addresses.subspan(skipped);
  // The caller is not known. The profiler, which comes first, is not it.
  size_t profiler = 0;
  for (size_t i = 0; i < addresses.size(); ++i)
    if (is_among(profiler_frames, symbols[addresses[i]].name)) profiler = i + 1;
  return addresses.subspan(profiler);
}

std::string readable_frames(std::span<const uint64_t> addresses,
                            const Symbols &symbols, size_t count) {
  for (const Frame_kind least :
       {Frame_kind::code, Frame_kind::helper, Frame_kind::allocator}) {
    std::string text;
    std::string_view last;
    size_t frames = 0;
    for (const uint64_t address : addresses) {
      const std::string &name = symbols[address].name;
      if (kind_of_frame(name) < least || name == last ||
          is_among(profiler_frames, name))
        continue;
      if (frames++ == count) break;
      if (!text.empty()) text += " < ";
      text += readable_name(name);
      last = name;
    }
    if (!text.empty()) return text;
  }
  return "";
}

std::string folded_name(std::string_view name) {
  std::string text(name);
  for (char &c : text)
    if (c == ';')
      c = ':';
    else if (static_cast<unsigned char>(c) < ' ' || c == 0x7f)
      c = '?';
  return text;
}

std::string folded_stack(std::span<const uint64_t> addresses,
                         const Symbols &symbols) {
  const std::span<const uint64_t> frames =
      without_allocator(addresses, symbols);
  std::string text;
  for (auto i = frames.rbegin(); i != frames.rend(); ++i) {
    if (!text.empty()) text += ';';
    text += folded_name(symbols[*i].name);
  }
  return text.empty() ? "?" : text;
}

}  // namespace memdiag::profile
