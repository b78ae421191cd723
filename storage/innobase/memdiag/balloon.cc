#include "storage/innobase/memdiag/balloon.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <new>

#include "buf0buf.h"
#include "buf0flu.h"
#include "buf0lru.h"
#include "os0event.h"
#include "os0proc.h"
#include "srv0shutdown.h"
#include "srv0srv.h"
#include "srv0start.h"
#include "univ.i"

namespace memdiag::balloon {
namespace {

/** Frames whose memory goes back together. */
constexpr size_t batch_frames = 256;
/** Other threads hold some frames for a moment. So a missing part of the pool
is worth a step only if it is larger than this one. */
constexpr ulint few_of_a_pool = 50;

struct Parked {
  std::mutex mutex;
  /** Frames of all instances: a million in 16 GB. A vector would have to move
  them while memory is short. */
  std::deque<buf_block_t *> blocks;
  /** The instance that the next search begins with. */
  ulint instance{0};
  /** Chunks that were told to have no huge pages. */
  ulint chunks{0};
};

/** Never destroyed: the server may exit without a shutdown. */
Parked &parked() {
  static Parked *const instance = new Parked;
  return *instance;
}

/** Of each instance. */
std::array<std::atomic<uint64_t>, MAX_BUFFER_POOLS> parked_frames{};

std::atomic<uint64_t> &parked_frames_of(const buf_pool_t *pool) {
  return parked_frames[pool->instance_no];
}

bool is_resized() {
  const auto status = buf_pool_resize_status_code.load();
  if (status != BUF_POOL_RESIZE_COMPLETE && status != BUF_POOL_RESIZE_FAILED)
    return true;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i) {
    buf_pool_t *const pool = buf_pool_from_array(i);
    if (pool->curr_size != pool->old_size || buf_get_withdraw_depth(pool) != 0)
      return true;
  }
  return false;
}

/** Frames with pages. Lengths are read without a mutex, as InnoDB's monitor
reads them. A page in LRU may have no frame, only a compressed copy in a part of
one. So the list may be longer than the pool. */
ulint frames_with_pages(const buf_pool_t *pool) {
  return UT_LIST_GET_LEN(pool->unzip_LRU) +
         pool->stat.LRU_bytes / UNIV_PAGE_SIZE;
}

ulint floor_of(const buf_pool_t *pool) {
  return (pool->curr_size * floor_percent + 99) / 100;
}

/** Frames above the floor; negative: below it. */
int64_t over_floor(const buf_pool_t *pool) {
  const ulint rest = UT_LIST_GET_LEN(pool->free) + frames_with_pages(pool);
  return static_cast<int64_t>(rest) - static_cast<int64_t>(floor_of(pool));
}

/** Frames that could be parked. */
uint64_t above_floor(const buf_pool_t *pool) {
  return static_cast<uint64_t>(std::max<int64_t>(over_floor(pool), 0));
}

/** Written frames that stay when all others are parked. */
uint64_t staying_frames(const buf_pool_t *pool) {
  const ulint pages = frames_with_pages(pool);
  const ulint rest = UT_LIST_GET_LEN(pool->free) + pages +
                     parked_frames_of(pool).load(std::memory_order_relaxed);
  const ulint size = pool->curr_size;
  return size - std::min(size, rest) + std::min(pages, floor_of(pool));
}

/** Of those that are parked. 0: they are few. */
uint64_t missing_frames(const buf_pool_t *pool) {
  const int64_t missing = -over_floor(pool);
  if (missing <= static_cast<int64_t>(pool->curr_size / few_of_a_pool))
    return 0;
  return std::min(static_cast<uint64_t>(missing),
                  parked_frames_of(pool).load(std::memory_order_relaxed));
}

/** Half of a huge page that was given back would leave the use unchanged.
Caller holds the mutex. */
void forbid_huge_pages(Parked *self) {
  ulint chunks = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i)
    chunks += buf_pool_from_array(i)->n_chunks;
  // A resize while nothing is parked may replace chunks, and leave as many.
  if (chunks == self->chunks && !self->blocks.empty()) return;
  self->chunks = chunks;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i) {
    buf_pool_t *const pool = buf_pool_from_array(i);
    // A resize may have begun since state() was asked. It frees the array.
    mutex_enter(&pool->chunks_mutex);
    for (ulint c = 0; c < pool->n_chunks; ++c) {
      const buf_chunk_t &chunk = pool->chunks[c];
      (void)madvise(chunk.blocks[0].frame, chunk.size * UNIV_PAGE_SIZE,
                    MADV_NOHUGEPAGE);
    }
    mutex_exit(&pool->chunks_mutex);
  }
}

/** @return nullptr: each frame is in use, dirty, or below the floor */
buf_block_t *take_frame(buf_pool_t *pool) {
  // Other threads may take the frame that was just freed.
  for (int tries = 0; tries < 4 && above_floor(pool) != 0; ++tries) {
    if (buf_block_t *const block = buf_LRU_get_free_only(pool);
        block != nullptr) {
      buf_block_set_state(block, BUF_BLOCK_MEMORY);
      return block;
    }
    if (!buf_LRU_scan_and_free_block(pool, false)) {
      // The page cleaner makes clean pages of dirty ones.
      os_event_set(buf_flush_event);
      return nullptr;
    }
  }
  return nullptr;
}

/** InnoDB has the parked frame again. */
void free_frame(buf_block_t *block) {
  parked_frames_of(buf_pool_from_block(block))
      .fetch_sub(1, std::memory_order_relaxed);
  buf_block_free(block);
}

using Batch = std::array<buf_block_t *, batch_frames>;

/** The memory of these frames goes back to the system.
@return false: it could not be given back */
bool release(buf_block_t **begin, buf_block_t **end) {
  std::sort(begin, end, [](const buf_block_t *a, const buf_block_t *b) {
    return a->frame < b->frame;
  });
  bool released = true;
  for (buf_block_t **first = begin; first != end;) {
    buf_block_t **next = first + 1;
    while (next != end && (*next)->frame == next[-1]->frame + UNIV_PAGE_SIZE)
      ++next;
    const size_t bytes = static_cast<size_t>(next - first) * UNIV_PAGE_SIZE;
    if (madvise((*first)->frame, bytes, MADV_DONTNEED) != 0) released = false;
    first = next;
  }
  return released;
}

/** The frames are parked. @return false: no memory */
bool keep(Parked *self, buf_block_t **begin, buf_block_t **end) try {
  self->blocks.insert(self->blocks.end(), begin, end);
  return true;
} catch (const std::bad_alloc &) {
  return false;
}

}  // namespace

State state() {
  if (buf_pool_ptr == nullptr || srv_is_being_started ||
      srv_shutdown_state.load() >= SRV_SHUTDOWN_CLEANUP)
    return State::not_up;
  if (os_use_large_pages) return State::large_pages;
  if (static_cast<ulint>(sysconf(_SC_PAGESIZE)) > UNIV_PAGE_SIZE)
    return State::small_frames;
  return is_resized() ? State::resizing : State::works;
}

namespace {

/** Adds the frames of all instances. @return 0 while the balloon does nothing
 */
uint64_t bytes_of_all(uint64_t (*frames_of)(const buf_pool_t *)) {
  if (state() != State::works) return 0;
  uint64_t frames = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i)
    frames += frames_of(buf_pool_from_array(i));
  return frames * UNIV_PAGE_SIZE;
}

}  // namespace

uint64_t parkable_bytes() { return bytes_of_all(above_floor); }

uint64_t staying_bytes() {
  const uint64_t frames = bytes_of_all([](const buf_pool_t *pool) {
                            return uint64_t{pool->curr_size};
                          }) /
                          UNIV_PAGE_SIZE;
  return bytes_of_all(staying_frames) + frames * sizeof(buf_block_t);
}

uint64_t missing_bytes() { return bytes_of_all(missing_frames); }

uint64_t park(uint64_t bytes) {
  Parked &self = parked();
  const std::lock_guard<std::mutex> guard(self.mutex);
  if (state() != State::works) return 0;
  forbid_huge_pages(&self);
  const uint64_t wanted = (bytes + UNIV_PAGE_SIZE - 1) / UNIV_PAGE_SIZE;
  uint64_t taken = 0;
  ulint without = 0;
  while (taken < wanted && without < srv_buf_pool_instances) {
    Batch batch;
    const size_t most = std::min<uint64_t>(batch.size(), wanted - taken);
    buf_pool_t *const pool = buf_pool_from_array(self.instance);
    size_t count = 0;
    while (count < most && (batch[count] = take_frame(pool)) != nullptr)
      ++count;
    if (count < most) {
      ++without;
      self.instance = (self.instance + 1) % srv_buf_pool_instances;
    }
    if (count == 0) continue;
    buf_block_t **const end = batch.data() + count;
    if (!release(batch.data(), end) || !keep(&self, batch.data(), end)) {
      std::for_each(batch.data(), end, buf_block_free);
      break;
    }
    parked_frames_of(pool).fetch_add(count, std::memory_order_relaxed);
    taken += count;
  }
  return taken * UNIV_PAGE_SIZE;
}

uint64_t give_back(uint64_t bytes) {
  Parked &self = parked();
  const std::lock_guard<std::mutex> guard(self.mutex);
  const uint64_t wanted =
      bytes / UNIV_PAGE_SIZE + (bytes % UNIV_PAGE_SIZE != 0 ? 1 : 0);
  uint64_t given = 0;
  for (; given < wanted && !self.blocks.empty(); ++given) {
    free_frame(self.blocks.back());
    self.blocks.pop_back();
  }
  return given * UNIV_PAGE_SIZE;
}

uint64_t give_back_missing() {
  Parked &self = parked();
  const std::lock_guard<std::mutex> guard(self.mutex);
  uint64_t given = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i) {
    buf_pool_t *const pool = buf_pool_from_array(i);
    uint64_t missing = missing_frames(pool);
    if (missing == 0) continue;
    given += std::erase_if(self.blocks, [&missing, pool](buf_block_t *block) {
      if (missing == 0 || buf_pool_from_block(block) != pool) return false;
      free_frame(block);
      --missing;
      return true;
    });
  }
  return given * UNIV_PAGE_SIZE;
}

uint64_t parked_bytes() {
  uint64_t frames = 0;
  for (const std::atomic<uint64_t> &each : parked_frames)
    frames += each.load(std::memory_order_relaxed);
  return frames * UNIV_PAGE_SIZE;
}

}  // namespace memdiag::balloon
