#include "mysys/memdiag/accounting/sessions.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <utility>

#include "mysys/memdiag/accounting/block_events.h"
#include "mysys/memdiag/base/clock.h"

constinit std::atomic<bool> memdiag_counts_intervals{false};

namespace memdiag {
namespace {

using sessions::Digest;
using sessions::Nets;

/** The times that counting was begun, from 1. Written under both mutexes. */
constinit std::atomic<uint32_t> generation{1};

/** Bytes that the running statement took. */
struct Statement {
  uint64_t taken = 0;
  /** Taken less freed, and the most that this was: since the statement began,
  or the innermost interval. Other threads read the first. */
  std::atomic<int64_t> growth{0};
  int64_t peak = 0;
};

struct Ended_statement {
  uint64_t taken;
  int64_t peak;
};

/** A thread's own: written by it alone, so that plain adding will do. */
struct Thread {
  /** The generation of `nets`; 0: the thread is not linked. */
  std::atomic<uint32_t> generation{0};
  std::array<std::atomic<int64_t>, pool_count> nets{};
  Statement statement{};
  /** The running statement's number, by which an interval knows its own. */
  uint64_t statement_number = 0;
  pthread_t id{};
  Thread *next = nullptr;
  Thread *previous = nullptr;
  bool linked = false;
  /** Its last destructors run: who reads it later finds other memory here. */
  bool ending = false;

  /** The next statement begins. @return the one that ended */
  Ended_statement end_statement() {
    ++statement_number;
    statement.growth.store(0, std::memory_order_relaxed);
    return {std::exchange(statement.taken, 0),
            std::exchange(statement.peak, 0)};
  }

  bool is_current() const {
    return generation.load(std::memory_order_relaxed) ==
           memdiag::generation.load(std::memory_order_relaxed);
  }
};

constinit thread_local Thread this_thread;

constinit std::mutex threads_mutex;
constinit Thread *first_thread = nullptr;
constinit Nets gone{};

struct Entry {
  Digest digest;
  /** 0: the entry is free. */
  uint64_t statements;
  uint64_t taken;
  uint64_t peak;
  sessions::Peak_stack peak_stack;
  uint64_t last_us;
};

/** Taken after threads_mutex where both are. */
constinit std::mutex digests_mutex;
/** A digest's entry is the first free one behind the one that it asks for, so
half of them stay free. */
constinit std::array<Entry, 2 * sessions::max_digests> entries{};
constinit size_t used_entries = 0;
constinit Entry entry_of_none{};
constinit uint64_t overflowed = 0;

/** Each mark has 28 bits of a digest. Below them is the number of the digest's
small statements that have ended, up to known_statements, or large_mark. Several
digests ask for one mark, and the last one has it. */
constinit std::array<std::atomic<uint32_t>, 16384> marks{};
constexpr uint32_t tag_bits = ~uint32_t{15};
constexpr uint32_t small_mark = sessions::known_statements;
constexpr uint32_t large_mark = small_mark + 1;

/** @param tag  set to the digest's bits */
std::atomic<uint32_t> &mark_of(const unsigned char *digest, uint32_t *tag) {
  std::array<uint32_t, 2> words;
  memcpy(words.data(), digest, sizeof words);
  *tag = words[1] & tag_bits;
  return marks[words[0] % marks.size()];
}

/** Caller holds the mutex. */
void mark(const Digest &digest, uint64_t peak) {
  uint32_t tag;
  std::atomic<uint32_t> &is = mark_of(digest.data(), &tag);
  const uint32_t now = is.load(std::memory_order_relaxed);
  const uint32_t was = (now & tag_bits) == tag ? now & ~tag_bits : 0;
  if (peak >= sessions::large_statement_bytes)
    is.store(tag | large_mark, std::memory_order_relaxed);
  else if (was < small_mark)
    is.store(tag | (was + 1), std::memory_order_relaxed);
}

/** Counts from now on as gone what the thread holds. Caller holds the mutex. */
void fold(Thread *thread) {
  const bool counts = thread->is_current();
  for (size_t i = 0; i < pool_count; ++i) {
    if (counts) gone[i] += thread->nets[i].load(std::memory_order_relaxed);
    thread->nets[i].store(0, std::memory_order_relaxed);
  }
}

void end_of_thread(void *) {
  Thread &mine = this_thread;
  const std::lock_guard<std::mutex> guard(threads_mutex);
  fold(&mine);
  if (mine.next != nullptr) mine.next->previous = mine.previous;
  (mine.previous != nullptr ? mine.previous->next : first_thread) = mine.next;
  mine.linked = false;
  mine.ending = true;
  mine.generation.store(0, std::memory_order_relaxed);
}

/** Makes the calling thread count from 0, for all to see.
@return false: it ends, or the system has no room for its end to be noted */
bool begin(Thread *mine) {
  static const std::optional<pthread_key_t> key = [] {
    pthread_key_t made;
    return pthread_key_create(&made, end_of_thread) == 0
               ? std::optional<pthread_key_t>(made)
               : std::nullopt;
  }();
  if (mine->ending || !key) return false;
  if (!mine->linked && pthread_setspecific(*key, mine) != 0) return false;
  (void)mine->end_statement();
  const std::lock_guard<std::mutex> guard(threads_mutex);
  for (auto &net : mine->nets) net.store(0, std::memory_order_relaxed);
  mine->generation.store(generation.load(), std::memory_order_relaxed);
  if (mine->linked) return true;
  mine->id = pthread_self();
  mine->previous = nullptr;
  mine->next = first_thread;
  if (first_thread != nullptr) first_thread->previous = mine;
  first_thread = mine;
  mine->linked = true;
  return true;
}

/** The place that a digest asks for. */
size_t first_place_of(const Digest &digest) {
  uint64_t hash;
  memcpy(&hash, digest.data(), sizeof hash);
  return hash % entries.size();
}

/** The digest's place among the entries, which may be free. Caller holds the
mutex. */
size_t place_of(const Digest &digest) {
  size_t i = first_place_of(digest);
  while (entries[i].statements != 0 && entries[i].digest != digest)
    i = (i + 1) % entries.size();
  return i;
}

/** A digest's entry, or nullptr. Caller holds the mutex. */
const Entry *find_entry(const Digest &digest) {
  const Entry &entry = entries[place_of(digest)];
  return entry.statements != 0 ? &entry : nullptr;
}

/** true: the table loses less with `a` than with `b`. Small digests go first,
the oldest of them before the others; then the smallest goes. */
bool matters_less(const Entry &a, const Entry &b) {
  const bool a_is_small = a.peak < sessions::large_statement_bytes;
  const bool b_is_small = b.peak < sessions::large_statement_bytes;
  if (a_is_small != b_is_small) return a_is_small;
  if (!a_is_small && a.peak != b.peak) return a.peak < b.peak;
  return a.last_us < b.last_us;
}

/** Takes an entry out. Those behind it move up, so that each can be reached
from the place that it asks for. Caller holds the mutex. */
void remove_entry(size_t place) {
  constexpr size_t all = 2 * sessions::max_digests;
  size_t hole = place;
  for (size_t i = (hole + 1) % all; entries[i].statements != 0;
       i = (i + 1) % all) {
    const size_t first = first_place_of(entries[i].digest);
    if ((i + all - first) % all < (i + all - hole) % all) continue;
    entries[hole] = entries[i];
    hole = i;
  }
  entries[hole] = {};
  --used_entries;
}

/** Makes room in a full table. The row without a digest counts the statements
of the digest that goes. Caller holds the mutex. */
void replace_one() {
  size_t least = entries.size();
  for (size_t i = 0; i < entries.size(); ++i)
    if (entries[i].statements != 0 &&
        (least == entries.size() || matters_less(entries[i], entries[least])))
      least = i;
  const Entry gone = entries[least];
  remove_entry(least);
  overflowed += gone.statements;
  Entry &rest = entry_of_none;
  rest.statements += gone.statements;
  rest.taken += gone.taken;
  if (gone.peak > rest.peak) {
    rest.peak = gone.peak;
    rest.peak_stack = gone.peak_stack;
  }
  rest.last_us = std::max(rest.last_us, gone.last_us);
}

/** The entry of a digest, one of whose statements had that peak. In a full
table only a large one makes room for itself: of small ones the marks are all
that admission needs. Caller holds the mutex. */
Entry *entry_of(const Digest &digest, uint64_t peak) {
  if (digest == Digest{}) return &entry_of_none;
  size_t i = place_of(digest);
  if (entries[i].statements != 0) return &entries[i];
  if (used_entries == sessions::max_digests) {
    if (peak < sessions::large_statement_bytes) {
      ++overflowed;
      return &entry_of_none;
    }
    replace_one();
    i = place_of(digest);
  }
  ++used_entries;
  entries[i].digest = digest;
  return &entries[i];
}

}  // namespace

namespace sessions {

void track(bool on) {
  const std::scoped_lock guard(threads_mutex, digests_mutex);
  if (on) {
    generation.fetch_add(1);
    gone.fill(0);
    entries.fill({});
    used_entries = 0;
    entry_of_none = {};
    overflowed = 0;
    for (auto &mark : marks) mark.store(0, std::memory_order_relaxed);
  }
  block_events::set(block_events::sessions, on ? note : nullptr);
  memdiag_counts_intervals.store(on, std::memory_order_relaxed);
}

void note(Pool pool, pools::Account, int64_t bytes) noexcept {
  Thread &mine = this_thread;
  const auto i = static_cast<size_t>(pool);
  if (!mine.is_current() && !begin(&mine)) [[unlikely]] {
    const std::lock_guard<std::mutex> guard(threads_mutex);
    gone[i] += bytes;
    return;
  }
  mine.nets[i].store(mine.nets[i].load(std::memory_order_relaxed) + bytes,
                     std::memory_order_relaxed);
  Statement &statement = mine.statement;
  if (bytes > 0) statement.taken += static_cast<uint64_t>(bytes);
  const int64_t growth =
      statement.growth.load(std::memory_order_relaxed) + bytes;
  statement.growth.store(growth, std::memory_order_relaxed);
  statement.peak = std::max(statement.peak, growth);
}

void session_began() noexcept { (void)this_thread.end_statement(); }

void session_ended() noexcept {
  const std::lock_guard<std::mutex> guard(threads_mutex);
  fold(&this_thread);
}

void statement_ended(unsigned char *digest, Peak_stack top) noexcept {
  Thread &mine = this_thread;
  if (!mine.is_current() && !begin(&mine)) return;
  Digest of;
  memcpy(of.data(), digest, of.size());
  memset(digest, 0, of.size());
  const Ended_statement ended = mine.end_statement();
  const uint64_t now = clock_us(CLOCK_REALTIME);
  const std::lock_guard<std::mutex> guard(digests_mutex);
  if (!mine.is_current()) return;
  // Below 0 if the statement ends within an interval that freed older memory.
  const auto peak = static_cast<uint64_t>(std::max<int64_t>(ended.peak, 0));
  Entry &entry = *entry_of(of, peak);
  ++entry.statements;
  entry.taken += ended.taken;
  if (peak > entry.peak) {
    entry.peak = peak;
    entry.peak_stack = top;
  }
  if (of != Digest{}) mark(of, peak);
  entry.last_us = std::max(entry.last_us, now);
}

// The peak of the statement is that of the innermost interval meanwhile.
// The end of an interval passes it to the next outer one.

void interval_begins(Interval *interval) noexcept {
  Thread &mine = this_thread;
  if (!mine.is_current() && !begin(&mine)) return;
  Statement &statement = mine.statement;
  const int64_t growth = statement.growth.load(std::memory_order_relaxed);
  *interval = {mine.statement_number, statement.taken, growth, statement.peak};
  statement.peak = growth;
}

bool interval_so_far(const Interval &interval,
                     Interval_memory *memory) noexcept {
  const Thread &mine = this_thread;
  if (interval.statement == 0 || interval.statement != mine.statement_number ||
      !mine.is_current())
    return false;
  const Statement &now = mine.statement;
  *memory = {now.taken - interval.taken,
             now.growth.load(std::memory_order_relaxed) - interval.growth,
             now.peak - interval.growth};
  return true;
}

void interval_ends(const Interval &interval) noexcept {
  Thread &mine = this_thread;
  if (interval.statement == 0 || interval.statement != mine.statement_number)
    return;
  mine.statement.peak = std::max(mine.statement.peak, interval.outer_peak);
}

Holdings holdings() {
  Holdings found;
  // Room is made while the mutex is not held; more may have come meanwhile.
  for (size_t room = 256;; room *= 2) {
    found.threads.reserve(room);
    const std::lock_guard<std::mutex> guard(threads_mutex);
    found.threads.clear();
    found.gone = {};
    if (!block_events::is_on(block_events::sessions)) return found;
    found.gone = gone;
    const Thread *thread = first_thread;
    for (; thread != nullptr; thread = thread->next) {
      if (!thread->is_current()) continue;
      if (found.threads.size() == found.threads.capacity()) break;
      Thread_nets &copy = found.threads.emplace_back();
      copy.thread = thread->id;
      for (size_t i = 0; i < pool_count; ++i)
        copy.nets[i] = thread->nets[i].load(std::memory_order_relaxed);
    }
    if (thread == nullptr) return found;
  }
}

std::optional<std::string> text_of(const Digest &digest) {
  if (digest == Digest{}) return std::nullopt;
  std::string text;
  for (const unsigned char byte : digest)
    for (const int digit : {byte >> 4, byte & 15})
      text += "0123456789abcdef"[digit];
  return text;
}

std::vector<Digest_row> digests() {
  std::vector<Entry> copies;
  copies.reserve(max_digests + 1);
  uint64_t without_room;
  {
    const std::lock_guard<std::mutex> guard(digests_mutex);
    const auto copy = [&copies](const Entry &entry) {
      if (entry.statements != 0) copies.push_back(entry);
    };
    copy(entry_of_none);
    std::for_each(entries.begin(), entries.end(), copy);
    without_room = overflowed;
  }
  std::vector<Digest_row> rows;
  rows.reserve(copies.size());
  for (const Entry &entry : copies) {
    const auto digest = text_of(entry.digest);
    rows.push_back({digest, entry.statements, entry.taken, entry.peak,
                    entry.peak_stack, entry.last_us,
                    digest ? 0 : without_room});
  }
  return rows;
}

bool may_be_large(const unsigned char *digest) noexcept {
  uint32_t tag;
  const std::atomic<uint32_t> &is = mark_of(digest, &tag);
  return is.load(std::memory_order_relaxed) != (tag | small_mark);
}

Past past_of(const Digest &digest) noexcept {
  const std::lock_guard<std::mutex> guard(digests_mutex);
  const Entry *const entry = find_entry(digest);
  return entry == nullptr ? Past{} : Past{entry->statements, entry->peak};
}

const std::atomic<int64_t> &held_by_statement() noexcept {
  return this_thread.statement.growth;
}

void hold() noexcept {
  threads_mutex.lock();
  digests_mutex.lock();
}

// The child does not have the other threads: what they held has gone.
void let_go(bool in_child) noexcept {
  if (in_child) {
    Thread *const mine = &this_thread;
    for (Thread *other = first_thread; other != nullptr; other = other->next)
      if (other != mine) fold(other);
    mine->next = mine->previous = nullptr;
    first_thread = mine->linked ? mine : nullptr;
  }
  digests_mutex.unlock();
  threads_mutex.unlock();
}

}  // namespace sessions
}  // namespace memdiag
