#include "mysys/memdiag/ceiling/taken.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/ceiling/owner.h"

namespace memdiag::ceiling {

constinit thread_local Thread thread;

namespace {

constexpr uint64_t blocks_pause_us = 5'000;

}  // namespace

int64_t untouched_bytes(const Block &block) {
  static const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  constexpr size_t most = 2048;
  unsigned char touched[most];
  const uintptr_t end = block.address + block.size;
  size_t pages = 0;
  for (uintptr_t at = block.address & ~(page - 1); at < end;
       at += most * page) {
    const size_t count = std::min(most, (end - at + page - 1) / page);
    // Freed, and not mapped any more.
    if (mincore(reinterpret_cast<void *>(at), count * page, touched) != 0)
      return 0;
    for (size_t i = 0; i < count; ++i) pages += (touched[i] & 1) == 0;
  }
  return std::min<int64_t>(static_cast<int64_t>(pages * page),
                           block.untouched_bytes);
}

void settle(Thread *self) {
  if (self->promised_bytes == 0) return;
  account.charge(self->promised_bytes);
  account.promise(-self->promised_bytes);
  self->promised_bytes = 0;
}

void promise(Thread *self, int64_t bytes) {
  account.promise(bytes);
  self->promised_bytes += bytes;
}

void see_blocks(Thread *self) {
  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  if (now_us - self->blocks_seen_us < blocks_pause_us) return;
  self->blocks_seen_us = now_us;
  size_t left = 0;
  for (size_t i = 0; i < self->block_count; ++i) {
    Block block = self->blocks[i];
    const int64_t now = untouched_bytes(block);
    account.promise(now - block.untouched_bytes);
    account.charge(block.untouched_bytes - now);
    block.untouched_bytes = now;
    if (now != 0) self->blocks[left++] = block;
  }
  self->block_count = left;
}

void drop_block(Thread *self, size_t number) {
  const int64_t bytes = self->blocks[number].untouched_bytes;
  account.promise(-bytes);
  account.charge(bytes);
  self->blocks[number] = self->blocks[--self->block_count];
}

void drop_coming(Thread *self) {
  if (self->coming_bytes == 0) return;
  self->coming_is_loose = false;
  account.promise(-std::exchange(self->coming_bytes, 0) -
                  std::exchange(self->coming_later_bytes, 0));
}

void promise_later(Thread *self) {
  const int64_t grown = self->taker.grown_bytes.load(std::memory_order_relaxed);
  if (ask_owner(&Owner::is_parsing, false))
    self->parsed_bytes = grown + grown / 4;
  const int64_t later = std::max<int64_t>(self->parsed_bytes - grown, 0);
  account.promise(later - std::exchange(self->later_bytes, later));
}

void forget_later(Thread *self) {
  if (self->later_bytes != 0)
    account.promise(-std::exchange(self->later_bytes, 0));
  self->parsed_bytes = 0;
  self->began_late = false;
}

void take_value(Thread *self, int64_t grown) {
  const int64_t taken = std::clamp<int64_t>(grown, 0, self->value_bytes);
  account.promise(-taken);
  self->value_bytes -= taken;
}

void forget_value(Thread *self) {
  account.promise(-std::exchange(self->value_bytes, 0));
}

void see_commit(Thread *self) {
  self->commit_from_bytes = std::min(self->commit_from_bytes, self->net_bytes);
  const int64_t taken = self->net_bytes - self->commit_from_bytes;
  const int64_t rest = std::max<int64_t>(
      self->commit_bytes - taken - self->commit_lapsed_bytes, 0);
  account.promise(rest - std::exchange(self->commit_promised_bytes, rest));
}

void lapse_commit(Thread *self) {
  const int64_t reserve = account.marks().reserve_bytes;
  const int64_t missing =
      std::min(reserve - account.left_bytes(), self->commit_promised_bytes);
  int64_t all = lapsed_bytes.load(std::memory_order_relaxed);
  int64_t bytes;
  do {
    bytes = std::min(missing, 2 * reserve - all);
    if (bytes <= 0) return;
  } while (!lapsed_bytes.compare_exchange_weak(all, all + bytes,
                                               std::memory_order_relaxed));
  self->commit_lapsed_bytes += bytes;
  see_commit(self);
}

void renew_commit(Thread *self) {
  lapsed_bytes.fetch_sub(std::exchange(self->commit_lapsed_bytes, 0),
                         std::memory_order_relaxed);
  see_commit(self);
}

void promise_commit(Thread *self, int64_t bytes) {
  self->commit_bytes = std::max(self->commit_bytes, bytes);
  commit_later(self);
}

void commit_later(Thread *self) {
  self->commit_from_bytes = self->net_bytes;
  see_commit(self);
}

void undo_commit(Thread *self) {
  self->commit_bytes = self->commit_stays_bytes;
  see_commit(self);
}

void forget_commit(Thread *self) {
  self->commit_stays_bytes = 0;
  undo_commit(self);
}

void expect(Thread *self) {
  int64_t rest = self->to_take_bytes - self->peak_bytes;
  if (rest < 0)
    rest = std::min(self->peak_bytes, account.marks().plenty_bytes / 2);
  if (rest == self->expected_bytes) return;
  account.expect(rest - self->expected_bytes);
  self->expected_bytes = rest;
}

}  // namespace memdiag::ceiling
