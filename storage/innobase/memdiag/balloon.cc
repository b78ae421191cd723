#include "storage/innobase/memdiag/balloon.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <mutex>

#include "buf0buf.h"
#include "buf0flu.h"
#include "buf0lru.h"
#include "mysys/memdiag/pages/regions.h"
#include "os0event.h"
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

using Blocks = UT_LIST_BASE_NODE_T(buf_page_t, list);

struct Parked {
  std::mutex mutex;
  /** Each instance has a list. It uses the list node of InnoDB's block, which
  InnoDB does not use for a block in state MEMORY. Threads read the length
  without the mutex. */
  std::array<Blocks, MAX_BUFFER_POOLS> blocks;
  /** The instance that gave pages last. */
  ulint instance{0};
  /** Chunks that were told to have no huge pages. */
  ulint chunks{0};
};

/** Never destroyed: the server may exit without a shutdown. */
Parked &parked() {
  static Parked *const instance = new Parked;
  return *instance;
}

Blocks &parked_of(const buf_pool_t *pool) {
  return parked().blocks[pool->instance_no];
}

ulint parked_frames(const buf_pool_t *pool) {
  return UT_LIST_GET_LEN(parked_of(pool));
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
  const ulint rest = UT_LIST_GET_LEN(pool->free) + pages + parked_frames(pool);
  const ulint size = pool->curr_size;
  return size - std::min(size, rest) + std::min(pages, floor_of(pool));
}

/** Of those that are parked. 0: they are few. */
uint64_t missing_frames(const buf_pool_t *pool) {
  const int64_t missing = -over_floor(pool);
  if (missing <= static_cast<int64_t>(pool->curr_size / few_of_a_pool))
    return 0;
  return std::min<uint64_t>(missing, parked_frames(pool));
}

/** The kernel would make a huge page of frames around one that was given back,
and that one would have memory again. Caller holds the mutex. */
void forbid_huge_pages(Parked *self) {
  ulint chunks = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i)
    chunks += buf_pool_from_array(i)->n_chunks;
  // A resize while nothing is parked may replace chunks, and leave as many.
  if (chunks == self->chunks && parked_bytes() != 0) return;
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

/** @return nullptr: each frame is in use, has a page, or is below the floor */
buf_block_t *take_free_frame(buf_pool_t *pool) {
  if (above_floor(pool) == 0) return nullptr;
  buf_block_t *const block = buf_LRU_get_free_only(pool);
  if (block != nullptr) buf_block_set_state(block, BUF_BLOCK_MEMORY);
  return block;
}

/** @return nullptr: each frame is in use, dirty, or below the floor */
buf_block_t *take_frame(buf_pool_t *pool) {
  // Other threads may take the frame that was just freed.
  for (int tries = 0; tries < 4 && above_floor(pool) != 0; ++tries) {
    if (buf_block_t *const block = take_free_frame(pool); block != nullptr)
      return block;
    if (!buf_LRU_scan_and_free_block(pool, false)) {
      // The page cleaner makes clean pages of dirty ones.
      os_event_set(buf_flush_event);
      return nullptr;
    }
  }
  return nullptr;
}

/** Finds the instance with the largest amount. */
buf_pool_t *instance_with_most(int64_t (*amount)(const buf_pool_t *)) {
  buf_pool_t *found = buf_pool_from_array(0);
  for (ulint i = 1; i < srv_buf_pool_instances; ++i) {
    buf_pool_t *const pool = buf_pool_from_array(i);
    if (amount(pool) > amount(found)) found = pool;
  }
  return found;
}

int64_t free_above_floor(const buf_pool_t *pool) {
  return std::min(static_cast<int64_t>(UT_LIST_GET_LEN(pool->free)),
                  over_floor(pool));
}

/** Orders instances for instance_with_most(): the one with the fewest free
frames comes first. Those without parked frames come last. */
int64_t lack_of_free(const buf_pool_t *pool) {
  const auto free = static_cast<int64_t>(UT_LIST_GET_LEN(pool->free));
  return parked_frames(pool) == 0 ? INT64_MIN : -free;
}

using Batch = std::array<buf_block_t *, batch_frames>;

size_t take_frames(buf_pool_t *pool, buf_block_t *(*take)(buf_pool_t *),
                   size_t most, Batch *batch) {
  size_t count = 0;
  while (count < most && ((*batch)[count] = take(pool)) != nullptr) ++count;
  return count;
}

/** @param with_pages  also frames of clean pages, where no instance has free
                       ones: of each instance in turn
@return how many */
size_t take_batch(Parked *self, bool with_pages, size_t most, Batch *batch) {
  size_t count = take_frames(instance_with_most(free_above_floor),
                             take_free_frame, most, batch);
  for (ulint i = 0; with_pages && count == 0 && i < srv_buf_pool_instances;
       ++i) {
    self->instance = (self->instance + 1) % srv_buf_pool_instances;
    count = take_frames(buf_pool_from_array(self->instance), take_frame, most,
                        batch);
  }
  return count;
}

/** Gives InnoDB the frame again. buf_LRU_block_free_non_file_page() would write
into the frame, and the kernel would give it memory at once. This function only
adds it to the end of the list. InnoDB takes free frames from the begin. */
void free_frame(buf_block_t *block) {
  buf_pool_t *const pool = buf_pool_from_block(block);
  UNIV_MEM_FREE(block->frame, UNIV_PAGE_SIZE);
  buf_block_set_state(block, BUF_BLOCK_NOT_USED);
  mutex_enter(&pool->free_list_mutex);
  if (buf_get_withdraw_depth(pool) != 0 &&
      buf_block_will_withdrawn(pool, block)) {
    UT_LIST_ADD_LAST(pool->withdraw, &block->page);
    ut_d(block->in_withdraw_list = true);
  } else {
    UT_LIST_ADD_LAST(pool->free, &block->page);
    ut_d(block->page.in_free_list = true);
  }
  mutex_exit(&pool->free_list_mutex);
}

/** Gives frames of an instance back. @return how many */
uint64_t free_parked(buf_pool_t *pool, uint64_t most) {
  Blocks &blocks = parked_of(pool);
  uint64_t count = 0;
  for (; count < most && UT_LIST_GET_LEN(blocks) != 0; ++count) {
    buf_page_t *const page = UT_LIST_GET_LAST(blocks);
    UT_LIST_REMOVE(blocks, page);
    free_frame(reinterpret_cast<buf_block_t *>(page));
  }
  return count;
}

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
    // MADV_DONTNEED does not split a huge page of which only a part goes. The
    // control group then counts all of it. MADV_COLD splits it since Linux 5.4.
    (void)madvise((*first)->frame, bytes, MADV_COLD);
    if (madvise((*first)->frame, bytes, MADV_DONTNEED) != 0) released = false;
    first = next;
  }
  return released;
}

}  // namespace

State state() {
  if (buf_pool_ptr == nullptr || srv_is_being_started ||
      srv_shutdown_state.load() >= SRV_SHUTDOWN_CLEANUP)
    return State::not_up;
  // InnoDB takes ordinary pages for each chunk that finds too few reserved
  // ones.
  if (regions::has_reserved(Region_kind::buffer_pool))
    return State::large_pages;
  if (static_cast<ulint>(sysconf(_SC_PAGESIZE)) > UNIV_PAGE_SIZE)
    return State::small_frames;
  return is_resized() ? State::resizing : State::works;
}

namespace {

/** Adds the bytes of all instances. @return 0 while the balloon does nothing */
uint64_t bytes_of_all(uint64_t (*bytes_of)(const buf_pool_t *)) {
  if (state() != State::works) return 0;
  uint64_t bytes = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i)
    bytes += bytes_of(buf_pool_from_array(i));
  return bytes;
}

}  // namespace

uint64_t parkable_bytes() {
  return bytes_of_all([](const buf_pool_t *pool) {
    return above_floor(pool) * UNIV_PAGE_SIZE;
  });
}

uint64_t floor_bytes() {
  return bytes_of_all([](const buf_pool_t *pool) {
    return floor_of(pool) * UNIV_PAGE_SIZE +
           pool->curr_size * sizeof(buf_block_t);
  });
}

uint64_t staying_bytes() {
  return bytes_of_all([](const buf_pool_t *pool) {
    return staying_frames(pool) * UNIV_PAGE_SIZE +
           pool->curr_size * sizeof(buf_block_t);
  });
}

uint64_t missing_bytes() {
  return bytes_of_all([](const buf_pool_t *pool) {
    return missing_frames(pool) * UNIV_PAGE_SIZE;
  });
}

uint64_t park(uint64_t bytes, bool with_pages) {
  Parked &self = parked();
  const std::lock_guard<std::mutex> guard(self.mutex);
  if (state() != State::works) return 0;
  forbid_huge_pages(&self);
  const uint64_t wanted = (bytes + UNIV_PAGE_SIZE - 1) / UNIV_PAGE_SIZE;
  uint64_t taken = 0;
  while (taken < wanted) {
    Batch batch;
    const size_t count =
        take_batch(&self, with_pages,
                   std::min<uint64_t>(batch.size(), wanted - taken), &batch);
    if (count == 0) break;
    buf_block_t **const end = batch.data() + count;
    if (!release(batch.data(), end)) {
      std::for_each(batch.data(), end, free_frame);
      break;
    }
    for (buf_block_t **each = batch.data(); each != end; ++each)
      UT_LIST_ADD_LAST(parked_of(buf_pool_from_block(*each)), &(*each)->page);
    taken += count;
  }
  return taken * UNIV_PAGE_SIZE;
}

uint64_t give_back(uint64_t bytes) {
  const std::lock_guard<std::mutex> guard(parked().mutex);
  const uint64_t wanted =
      bytes / UNIV_PAGE_SIZE + (bytes % UNIV_PAGE_SIZE != 0 ? 1 : 0);
  uint64_t given = 0;
  while (given < wanted && parked_bytes() != 0)
    given += free_parked(instance_with_most(lack_of_free),
                         std::min<uint64_t>(batch_frames, wanted - given));
  return given * UNIV_PAGE_SIZE;
}

uint64_t give_back_missing() {
  const std::lock_guard<std::mutex> guard(parked().mutex);
  uint64_t given = 0;
  for (ulint i = 0; i < srv_buf_pool_instances; ++i) {
    buf_pool_t *const pool = buf_pool_from_array(i);
    given += free_parked(pool, missing_frames(pool));
  }
  return given * UNIV_PAGE_SIZE;
}

uint64_t parked_bytes() {
  uint64_t frames = 0;
  for (const Blocks &each : parked().blocks) frames += UT_LIST_GET_LEN(each);
  return frames * UNIV_PAGE_SIZE;
}

}  // namespace memdiag::balloon
