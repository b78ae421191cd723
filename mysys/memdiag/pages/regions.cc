#include "mysys/memdiag/pages/regions.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <iterator>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>

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
#include "mysys/memdiag/pages/region_list.h"
#undef MEMDIAG_REGION
};

using regions::Region;

constinit std::mutex regions_mutex;
/** The first `used` of these have been used; one without bytes is free. */
constinit Region table[regions::max_regions]{};
constinit size_t used = 0;
constinit uint64_t untracked[region_kinds];
/** How many regions lie in reserved pages. Written under the mutex. */
constinit std::atomic<size_t> reserved[region_kinds]{};

/** A thread's stack, in a ring with all others. */
struct Stack {
  Address_range range{0, 0};
  Stack *next = nullptr;
  Stack *previous = nullptr;
};
constinit std::mutex stacks_mutex;
constinit Stack *first_stack = nullptr;
constinit regions::Total all_stacks{0, 0, 0};

/** The most of the first thread's stack that is looked at. Its range ends at
the limit of the stack, and without a limit (ulimit -s unlimited) at whatever is
mapped below. 8 MiB is Linux's default limit. */
constexpr size_t max_first_stack = size_t{8} << 20;

/** Empty while the thread's stack is not linked. It needs no construction: the
profiler reads it in the middle of an allocation. */
constinit thread_local Address_range stack_of_thread{0, 0};

/** Links the thread's stack for as long as the thread lives. */
class Stack_of_thread {
 public:
  Stack_of_thread() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    void *address;
    size_t bytes;
    if (pthread_attr_getstack(&attributes, &address, &bytes) == 0) {
      const auto end = reinterpret_cast<uintptr_t>(address) + bytes;
      if (getpid() == gettid()) bytes = std::min(bytes, max_first_stack);
      m_stack.range = {end - bytes, end};
    }
    (void)pthread_attr_destroy(&attributes);
    const std::lock_guard<std::mutex> guard(stacks_mutex);
    m_stack.next = first_stack;
    if (first_stack != nullptr) first_stack->previous = &m_stack;
    first_stack = &m_stack;
    ++all_stacks.count;
    all_stacks.mapped_bytes += m_stack.range.bytes();
    m_linked = true;
    stack_of_thread = m_stack.range;
  }
  ~Stack_of_thread() {
    if (!m_linked) return;
    stack_of_thread = {0, 0};
    const std::lock_guard<std::mutex> guard(stacks_mutex);
    if (m_stack.next != nullptr) m_stack.next->previous = m_stack.previous;
    (m_stack.previous != nullptr ? m_stack.previous->next : first_stack) =
        m_stack.next;
    --all_stacks.count;
    all_stacks.mapped_bytes -= m_stack.range.bytes();
  }
  Stack_of_thread(const Stack_of_thread &) = delete;
  Stack_of_thread &operator=(const Stack_of_thread &) = delete;

  /** In the child of a fork() only the calling thread lives; what the others
  linked lies in memory that new threads will have. */
  static void stay_alone() {
    const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    Stack *own = first_stack;
    while (own != nullptr && !own->range.has(here, 1)) own = own->next;
    first_stack = own;
    all_stacks = {0, 0, 0};
    if (own == nullptr) return;
    own->next = own->previous = nullptr;
    all_stacks = {1, own->range.bytes(), 0};
  }

 private:
  Stack m_stack;
  bool m_linked = false;
};

/** The entry of a region that begins there, or nullptr. Caller holds the
mutex. */
Region *find(uintptr_t begin) {
  Region *const end = table + used;
  Region *const found = std::find_if(table, end, [begin](const Region &region) {
    return region.range.bytes() != 0 && region.range.begin == begin;
  });
  return found == end ? nullptr : found;
}

void count_reserved(const Region &region, size_t by) {
  if (region.range.bytes() != 0 && region.pages == regions::Pages::reserved)
    reserved[static_cast<size_t>(region.kind)].fetch_add(
        by, std::memory_order_relaxed);
}

static_assert(std::size(declared_kinds) == region_kinds);
static_assert(declared_kinds[region_kinds - 1].instrument.empty());

}  // namespace

namespace regions {

Region_kind kind_of(std::string_view instrument) {
  size_t i = 0;
  while (!instrument.starts_with(declared_kinds[i].instrument)) ++i;
  return static_cast<Region_kind>(i);
}

void add(Region_kind kind, void *address, size_t bytes, Pages pages) noexcept {
  const auto begin = reinterpret_cast<uintptr_t>(address);
  if (bytes == 0) return;
  bytes = (bytes + page_size() - 1) / page_size() * page_size();
  const std::lock_guard<std::mutex> guard(regions_mutex);
  Region *entry = find(begin);
  if (entry == nullptr)
    entry = std::find_if(table, table + used, [](const Region &region) {
      return region.range.bytes() == 0;
    });
  if (entry == table + max_regions) {
    ++untracked[static_cast<size_t>(kind)];
    return;
  }
  if (entry == table + used) ++used;
  count_reserved(*entry, size_t{0} - 1);
  *entry = {{begin, begin + bytes}, kind, pages};
  count_reserved(*entry, 1);
}

void remove(void *address) noexcept {
  const std::lock_guard<std::mutex> guard(regions_mutex);
  Region *const entry = find(reinterpret_cast<uintptr_t>(address));
  if (entry == nullptr) return;
  count_reserved(*entry, size_t{0} - 1);
  entry->range.end = entry->range.begin;
  while (used > 0 && table[used - 1].range.bytes() == 0) --used;
}

const char *name(Region_kind kind) {
  return declared_kinds[static_cast<size_t>(kind)].name;
}

std::vector<Region> list(Stacks stacks) {
  std::vector<Region> found;
  // Room is made while no lock is held; more may have come meanwhile.
  do {
    size_t room = 64;
    {
      const std::lock_guard<std::mutex> guard(regions_mutex);
      room += used;
    }
    if (stacks == Stacks::with) {
      const std::lock_guard<std::mutex> guard(stacks_mutex);
      room += all_stacks.count;
    }
    found.clear();
    found.reserve(room);
    const auto has_room = [&found] { return found.size() < found.capacity(); };
    {
      const std::lock_guard<std::mutex> guard(regions_mutex);
      for (size_t i = 0; i < used && has_room(); ++i)
        if (table[i].range.bytes() != 0) found.push_back(table[i]);
    }
    if (stacks == Stacks::with) {
      // A thread that begins or ends waits meanwhile.
      const std::lock_guard<std::mutex> guard(stacks_mutex);
      for (const Stack *stack = first_stack; stack != nullptr && has_room();
           stack = stack->next)
        found.push_back({stack->range, Region_kind::thread_stack});
    }
  } while (found.size() == found.capacity());
  return found;
}

std::array<Total, region_kinds> totals() {
  std::array<Total, region_kinds> found{};
  {
    const std::lock_guard<std::mutex> guard(regions_mutex);
    for (const auto &[range, kind, pages] : std::span{table, used}) {
      if (range.bytes() == 0) continue;
      Total &total = found[static_cast<size_t>(kind)];
      ++total.count;
      total.mapped_bytes += range.bytes();
      if (pages == Pages::reserved) total.reserved_bytes += range.bytes();
    }
  }
  const std::lock_guard<std::mutex> guard(stacks_mutex);
  Total &stacks = found[static_cast<size_t>(Region_kind::thread_stack)];
  stacks.count += all_stacks.count;
  stacks.mapped_bytes += all_stacks.mapped_bytes;
  return found;
}

bool has_reserved(Region_kind kind) noexcept {
  return reserved[static_cast<size_t>(kind)].load(std::memory_order_relaxed) !=
         0;
}

std::array<Row, region_kinds> all(int *error, const Resident &known) {
  *error = 0;
  std::array<Row, region_kinds> rows{};
  const auto now = totals();
  for (size_t i = 0; i < region_kinds; ++i) {
    rows[i] = {declared_kinds[i].name, declared_kinds[i].purpose, 0, 0, 0, 0};
    if (!known[i]) continue;
    rows[i].count = now[i].count;
    rows[i].mapped_bytes = now[i].mapped_bytes;
    rows[i].resident_bytes = std::min(*known[i], now[i].mapped_bytes);
  }
  const bool stacks_known =
      known[static_cast<size_t>(Region_kind::thread_stack)].has_value();
  const Page_scan scan;
  for (const Region &region :
       list(stacks_known ? Stacks::without : Stacks::with)) {
    const auto kind = static_cast<size_t>(region.kind);
    if (known[kind]) continue;
    Row &row = rows[kind];
    ++row.count;
    row.mapped_bytes += region.range.bytes();
    const auto resident = resident_bytes(region, &scan);
    if (!resident && *error == 0) *error = errno;
    if (!resident || !row.resident_bytes)
      row.resident_bytes.reset();
    else
      *row.resident_bytes += *resident;
  }
  const std::lock_guard<std::mutex> guard(regions_mutex);
  for (size_t i = 0; i < region_kinds; ++i) rows[i].untracked = untracked[i];
  return rows;
}

std::optional<uint64_t> resident_bytes(Address_range range, Region_kind kind,
                                       const Page_scan *scan) {
  if (kind != Region_kind::thread_stack)
    return Presence(range, scan).bytes(range);
  constexpr size_t step = 128 << 10;
  uint64_t sum = 0;
  for (uintptr_t end = range.end; end > range.begin;) {
    const Address_range part{end - std::min(step, end - range.begin), end};
    const auto bytes = Presence(part).bytes(part);
    if (!bytes) return std::nullopt;
    if (*bytes == 0) break;
    sum += *bytes;
    end = part.begin;
  }
  return sum;
}

std::optional<uint64_t> resident_bytes(const Region &region,
                                       const Page_scan *scan) {
  if (region.pages == Pages::reserved) return 0;
  return resident_bytes(region.range, region.kind, scan);
}

std::optional<uint64_t> resident_bytes(Region_kind kind) {
  uint64_t sum = 0;
  const Stacks stacks =
      kind == Region_kind::thread_stack ? Stacks::with : Stacks::without;
  for (const Region &region : list(stacks)) {
    if (region.kind != kind) continue;
    const auto resident = resident_bytes(region);
    if (!resident) return std::nullopt;
    sum += *resident;
  }
  return sum;
}

void add_stack_of_thread() noexcept { thread_local Stack_of_thread stack; }

Address_range stack_of_this_thread() noexcept { return stack_of_thread; }

void give_back_unused_stack() noexcept {
  const Address_range stack = stack_of_this_thread();
  const auto frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  if (!stack.has(frame, 1)) return;
  // This function and madvise() use what lies just below the frame.
  constexpr uintptr_t own = 2048;
  const size_t page = page_size();
  const uintptr_t end = (frame - own) / page * page;
  if (end > stack.begin)
    (void)madvise(reinterpret_cast<void *>(stack.begin), end - stack.begin,
                  MADV_DONTNEED);
}

void hold() noexcept {
  regions_mutex.lock();
  stacks_mutex.lock();
}

void let_go(bool in_child) noexcept {
  if (in_child) Stack_of_thread::stay_alone();
  stacks_mutex.unlock();
  regions_mutex.unlock();
}

}  // namespace regions
}  // namespace memdiag
