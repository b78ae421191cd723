#include "mysys/memdiag/accounting/digests.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "mysys/memdiag/accounting/thread_bytes.h"
#include "mysys/memdiag/base/clock.h"

namespace memdiag::sessions {
namespace {

struct Entry {
  Digest digest;
  /** 0: the entry is free. */
  uint64_t statements;
  uint64_t taken;
  uint64_t peak;
  Peak_stack peak_stack;
  uint64_t last_us;
};

constinit std::mutex digests_mutex;
/** A digest's entry is the first free one behind the one that it asks for, so
half of them stay free. */
constinit std::array<Entry, 2 * max_digests> entries{};
constinit size_t used_entries = 0;
constinit Entry entry_of_none{};
constinit uint64_t overflowed = 0;

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

/** true: the table loses less with `a` than with `b`. Small digests go first,
the oldest of them before the others; then the smallest goes. */
bool matters_less(const Entry &a, const Entry &b) {
  const bool a_is_small = a.peak < large_statement_bytes;
  const bool b_is_small = b.peak < large_statement_bytes;
  if (a_is_small != b_is_small) return a_is_small;
  if (!a_is_small && a.peak != b.peak) return a.peak < b.peak;
  return a.last_us < b.last_us;
}

/** Takes an entry out. Those behind it move up, so that each can be reached
from the place that it asks for. Caller holds the mutex. */
void remove_entry(size_t place) {
  constexpr size_t all = 2 * max_digests;
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
table only a large one makes room for itself. Caller holds the mutex. */
Entry *entry_of(const Digest &digest, uint64_t peak) {
  if (digest == Digest{}) return &entry_of_none;
  size_t i = place_of(digest);
  if (entries[i].statements != 0) return &entries[i];
  if (used_entries == max_digests) {
    if (peak < large_statement_bytes) {
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

void forget_digests() noexcept {
  const std::lock_guard<std::mutex> guard(digests_mutex);
  entries.fill({});
  used_entries = 0;
  entry_of_none = {};
  overflowed = 0;
}

void statement_ended(unsigned char *digest, Peak_stack top) noexcept {
  if (!count_thread()) return;
  Digest of;
  memcpy(of.data(), digest, of.size());
  memset(digest, 0, of.size());
  const Statement_bytes ended = end_statement();
  const uint64_t now = clock_us(CLOCK_REALTIME);
  const std::lock_guard<std::mutex> guard(digests_mutex);
  // Counting began anew meanwhile.
  if (!statement_bytes()) return;
  // Below 0 if the statement ends within an interval that freed older memory.
  const auto peak = static_cast<uint64_t>(std::max<int64_t>(ended.peak, 0));
  Entry &entry = *entry_of(of, peak);
  ++entry.statements;
  entry.taken += ended.taken;
  if (peak > entry.peak) {
    entry.peak = peak;
    entry.peak_stack = top;
  }
  entry.last_us = std::max(entry.last_us, now);
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

void hold_digests() noexcept { digests_mutex.lock(); }

void let_go_of_digests() noexcept { digests_mutex.unlock(); }

}  // namespace memdiag::sessions
