#include "memdiag_regions.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <string_view>
#include <utility>

#include "memdiag_routes.h"

namespace memdiag {
namespace {

struct Declared_kind {
  const char *name;
  std::string_view instrument;
  const char *purpose;
};
constexpr Declared_kind declared_kinds[] = {
#define MEMDIAG_REGION(kind, name, instrument, purpose) \
  {name, instrument, purpose},
#include "memdiag_region_list.h"
#undef MEMDIAG_REGION
};

struct Region {
  uintptr_t begin;
  /** 0: this entry is free. */
  size_t bytes;
  Region_kind kind;
};

constinit std::mutex regions_mutex;
/** Of these, the first `used` have been used. */
constinit Region table[regions::max_regions];
constinit size_t used = 0;
constinit uint64_t untracked[region_kinds];

/** A thread's stack, in a ring with all others. */
struct Stack {
  uintptr_t begin = 0;
  size_t bytes = 0;
  Stack *next = nullptr;
  Stack *previous = nullptr;
};
constinit std::mutex stacks_mutex;
constinit Stack *first_stack = nullptr;

constinit std::atomic<bool> reads_fail{false};

/** Links the thread's stack for as long as the thread lives. */
class Stack_of_thread {
 public:
  Stack_of_thread() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void *begin;
    if (pthread_attr_getstack(&attributes, &begin, &m_stack.bytes) == 0)
      m_stack.begin = reinterpret_cast<uintptr_t>(begin);
    (void)pthread_attr_destroy(&attributes);
    const std::lock_guard<std::mutex> guard(stacks_mutex);
    m_stack.next = first_stack;
    if (first_stack != nullptr) first_stack->previous = &m_stack;
    first_stack = &m_stack;
    m_linked = true;
  }
  ~Stack_of_thread() {
    if (!m_linked) return;
    const std::lock_guard<std::mutex> guard(stacks_mutex);
    if (m_stack.next != nullptr) m_stack.next->previous = m_stack.previous;
    (m_stack.previous != nullptr ? m_stack.previous->next : first_stack) =
        m_stack.next;
  }
  Stack_of_thread(const Stack_of_thread &) = delete;
  Stack_of_thread &operator=(const Stack_of_thread &) = delete;

 private:
  Stack m_stack;
  bool m_linked = false;
};

/** fork() waits for both: the child would find them locked for ever. */
[[gnu::constructor]] void keep_locks_out_of_fork() {
  (void)pthread_atfork(
      [] {
        regions_mutex.lock();
        stacks_mutex.lock();
      },
      [] {
        stacks_mutex.unlock();
        regions_mutex.unlock();
      },
      [] {
        stacks_mutex.unlock();
        regions_mutex.unlock();
      });
}

size_t page_size() {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return page;
}

/** The entry of a region that begins there, or nullptr. Caller holds the
mutex. */
Region *find(uintptr_t begin) {
  Region *const end = table + used;
  Region *const found = std::find_if(table, end, [begin](const Region &region) {
    return region.bytes != 0 && region.begin == begin;
  });
  return found == end ? nullptr : found;
}

Region_kind kind_of(std::string_view instrument) {
  size_t i = 0;
  while (!instrument.starts_with(declared_kinds[i].instrument)) ++i;
  return static_cast<Region_kind>(i);
}
static_assert(std::size(declared_kinds) == region_kinds);
static_assert(declared_kinds[region_kinds - 1].instrument.empty());

/** What is to be asked about, a few at a time: the system is not asked while a
mutex is held. */
struct Range {
  uintptr_t begin;
  size_t bytes;
  Region_kind kind;
};
constexpr size_t ranges_at_once = 256;

/** Copies regions from the `from`th entry on. @return where to go on */
size_t copy_regions(size_t from, Range *ranges, size_t *count) {
  const std::lock_guard<std::mutex> guard(regions_mutex);
  for (*count = 0; from < used && *count < ranges_at_once; ++from)
    if (table[from].bytes != 0)
      ranges[(*count)++] = {table[from].begin, table[from].bytes,
                            table[from].kind};
  return from;
}

}  // namespace

namespace regions {

void add(Region_kind kind, void *address, size_t bytes) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (bytes == 0) return;
  bytes = (bytes + page_size() - 1) / page_size() * page_size();
  const std::lock_guard<std::mutex> guard(regions_mutex);
  Region *entry = find(begin);
  if (entry == nullptr)
    entry = std::find_if(table, table + used, [](const Region &region) {
      return region.bytes == 0;
    });
  if (entry == table + max_regions) {
    ++untracked[static_cast<size_t>(kind)];
    return;
  }
  if (entry == table + used) ++used;
  *entry = {begin, bytes, kind};
}

void remove(void *address) noexcept {
  const std::lock_guard<std::mutex> guard(regions_mutex);
  Region *const entry = find(reinterpret_cast<uintptr_t>(address));
  if (entry == nullptr) return;
  entry->bytes = 0;
  while (used > 0 && table[used - 1].bytes == 0) --used;
}

std::optional<uint64_t> resident_bytes(const void *address, size_t bytes) {
  if (reads_fail.load(std::memory_order_relaxed)) {
    errno = EIO;
    return std::nullopt;
  }
  const size_t page = page_size();
  unsigned char present[1024];
  // mincore() takes whole pages.
  uintptr_t at = reinterpret_cast<uintptr_t>(address) / page * page;
  const uintptr_t end = reinterpret_cast<uintptr_t>(address) + bytes;
  uint64_t pages = 0;
  while (at < end) {
    size_t ask = std::min((end - at + page - 1) / page, std::size(present));
    int error;
    // A part of the range may not be mapped: the main thread's stack grows.
    while ((error = mincore(reinterpret_cast<void *>(at), ask * page,
                            present)) != 0 &&
           errno == ENOMEM && ask > 1)
      ask /= 2;
    if (error == 0)
      pages += std::count_if(present, present + ask,
                             [](unsigned char one) { return one & 1; });
    else if (errno != ENOMEM)
      return std::nullopt;
    at += ask * page;
  }
  return pages * page;
}

std::array<Row, region_kinds> all(int *error) {
  *error = 0;
  std::array<Row, region_kinds> rows{};
  for (size_t i = 0; i < region_kinds; ++i)
    rows[i] = {declared_kinds[i].name, declared_kinds[i].purpose, 0, 0, 0, 0};
  const auto count_in = [&rows, error](const Range &range) {
    Row &row = rows[static_cast<size_t>(range.kind)];
    ++row.count;
    row.mapped_bytes += range.bytes;
    const auto resident = resident_bytes(
        reinterpret_cast<const void *>(range.begin), range.bytes);
    if (!resident && *error == 0) *error = errno;
    if (!resident || !row.resident_bytes)
      row.resident_bytes.reset();
    else
      *row.resident_bytes += *resident;
  };

  Range ranges[ranges_at_once];
  size_t count;
  for (size_t from = 0;;) {
    from = copy_regions(from, ranges, &count);
    if (count == 0) break;
    std::for_each(ranges, ranges + count, count_in);
  }
  {
    const std::lock_guard<std::mutex> guard(regions_mutex);
    for (size_t i = 0; i < region_kinds; ++i) rows[i].untracked = untracked[i];
  }
  {
    // Held on the way: a list cannot be gone on with where it was left. It
    // takes some microseconds for a stack, and only threads that begin or end
    // wait for it.
    const std::lock_guard<std::mutex> guard(stacks_mutex);
    for (const Stack *stack = first_stack; stack != nullptr;
         stack = stack->next)
      count_in({stack->begin, stack->bytes, Region_kind::thread_stack});
  }
  return rows;
}

void fail_reads_for_test(bool fail) { reads_fail.store(fail); }

}  // namespace regions
}  // namespace memdiag

void memdiag_region_add(uint32_t key, void *address, size_t bytes) {
  memdiag::Region_kind kind = memdiag::Region_kind::other;
  try {
    kind = memdiag::kind_of(memdiag::routes::name_of_key(key));
  } catch (const std::bad_alloc &) {
    // Counted as any other's then.
  }
  memdiag::regions::add(kind, address, bytes);
}

void memdiag_region_remove(void *address) { memdiag::regions::remove(address); }

void memdiag_thread_begins() { thread_local memdiag::Stack_of_thread stack; }
