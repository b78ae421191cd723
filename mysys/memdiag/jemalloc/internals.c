// A header of jemalloc's includes none that it needs: this one comes first.
#include "jemalloc/internal/jemalloc_preamble.h"

#include "jemalloc/internal/jemalloc_internal_includes.h"

#include "jemalloc/internal/prof_data.h"

#include "mysys/memdiag/jemalloc/internals.h"

/** The extent's metadata, by the map of pages that free() asks; NULL: none. The
map bears any address but NULL. */
static edata_t *extent_of(const void *address) {
  emap_full_alloc_ctx_t found;
  if (address == NULL || emap_full_alloc_ctx_try_lookup(
                             tsdn_fetch(), &arena_emap_global, address, &found))
    return NULL;
  return found.edata;
}

static bool arena_of_extent(edata_t *extent, unsigned *arena) {
  if (extent == NULL || arena_get_from_edata(extent) == NULL) return false;
  *arena = edata_arena_ind_get(extent);
  return true;
}

bool memdiag_arena_of(const void *block, unsigned *arena) {
  return arena_of_extent(extent_of(block), arena);
}

static enum memdiag_pages pages_of(const edata_t *extent) {
  switch (edata_state_get(extent)) {
    case extent_state_active:
      return memdiag_pages_used;
    case extent_state_muzzy:
    case extent_state_retained:
      return memdiag_pages_given_back;
    default:
      /* Also on its way to another state. */
      return memdiag_pages_dirty;
  }
}

bool memdiag_extent_at(const void *address, struct memdiag_extent *extent) {
  edata_t *const found = extent_of(address);
  if (!arena_of_extent(found, &extent->arena)) return false;
  extent->bytes = edata_size_get(found);
  extent->regions = 1;
  extent->free_regions = 0;
  extent->pages = pages_of(found);
  /* A free extent that was a slab keeps the mark, but has no size class. The
  bits need not agree while another thread allocates, so they are read without
  jemalloc's assertions. */
  const szind_t size_class = edata_szind_get_maybe_invalid(found);
  if (edata_slab_get(found) && size_class < SC_NBINS) {
    extent->regions = bin_infos[size_class].nregs;
    extent->free_regions =
        (found->e_bits & EDATA_BITS_NFREE_MASK) >> EDATA_BITS_NFREE_SHIFT;
  }
  return extent->bytes != 0;
}

size_t memdiag_no_extents_from(const void *address) {
  rtree_ctx_t nothing_known;
  rtree_ctx_data_init(&nothing_known);
  const uintptr_t key = (uintptr_t)address;
  if (rtree_leaf_elm_lookup(tsdn_fetch(), &arena_emap_global.rtree,
                            &nothing_known, key, false, false) != NULL)
    return 0;
  return rtree_leafkey(key) + ((size_t)1 << rtree_leaf_maskbits()) - key;
}

static arena_t *arena_at(tsdn_t *thread, unsigned arena) {
  return arena < narenas_total_get() ? arena_get(thread, arena, false) : NULL;
}

bool memdiag_arena_pages(unsigned arena, size_t *resident,
                         size_t *dirty_pages) {
  tsdn_t *const thread = tsdn_fetch();
  arena_t *const found = arena_at(thread, arena);
  if (found == NULL) return false;
  size_t metadata;
  size_t not_asked[5];
  base_stats_get(thread, found->base, &not_asked[0], &not_asked[1],
                 &not_asked[2], &metadata, &not_asked[3], &not_asked[4]);
  *dirty_pages = pa_shard_ndirty(&found->pa_shard);
  *resident = metadata +
              ((pa_shard_nactive(&found->pa_shard) + *dirty_pages) << LG_PAGE);
  return true;
}

const void *memdiag_arena_keep_metadata_small(unsigned arena) {
  tsdn_t *const thread = tsdn_fetch();
  arena_t *const found = arena_at(thread, arena);
  if (found == NULL) return NULL;
  base_t *const base = found->base;
  malloc_mutex_lock(thread, &base->mtx);
  const base_block_t *const first = base->blocks;
  for (base_block_t *block = base->blocks;
       block != NULL && opt_thp == thp_mode_never; block = block->next) {
    char *const end = (char *)block + block->size;
    char *const unused = end - PAGE_FLOOR(edata_bsize_get(&block->edata));
    /* A kernel without huge pages refuses it. */
    (void)madvise(block, block->size, MADV_NOHUGEPAGE);
    if (unused != end) (void)madvise(unused, end - unused, MADV_DONTNEED);
  }
  malloc_mutex_unlock(thread, &base->mtx);
  return first;
}

/** @return false: another thread is at it */
static bool purge_all(tsdn_t *thread, pac_t *pac, decay_t *decay,
                      pac_decay_stats_t *stats, ecache_t *pages) {
  malloc_mutex_lock(thread, &decay->mtx);
  const bool is_free = !decay->purging;
  if (is_free)
    pac_decay_all(thread, pac, decay, stats, pages, /* fully_decay */ true);
  malloc_mutex_unlock(thread, &decay->mtx);
  return is_free;
}

bool memdiag_arena_purge(unsigned arena, bool *skipped) {
  tsdn_t *const thread = tsdn_fetch();
  arena_t *const found = arena_at(thread, arena);
  if (found == NULL) return false;
  pa_shard_t *const shard = &found->pa_shard;
  pac_t *const pac = &shard->pac;
  pa_shard_flush(thread, shard);
  *skipped = !purge_all(thread, pac, &pac->decay_dirty,
                        &pac->stats->decay_dirty, &pac->ecache_dirty);
  if (!pa_shard_dont_decay_muzzy(shard) &&
      !purge_all(thread, pac, &pac->decay_muzzy, &pac->stats->decay_muzzy,
                 &pac->ecache_muzzy))
    *skipped = true;
  return true;
}

void memdiag_set_sample_interval(size_t lg_bytes) {
  tsdn_t *const thread = tsdn_fetch();
  malloc_mutex_lock(thread, &prof_dump_mtx);
  lg_prof_sample = lg_bytes;
  prof_unbias_map_init();
  malloc_mutex_unlock(thread, &prof_dump_mtx);
}

/* The two functions below read the same thread-local counters as the short ways
of malloc() and free(). The limit of a counter is 0 while a thread begins or
ends, before jemalloc is initialised, and where an option asks for more than the
short way does. A sample of the profiler is due at the limit. */

void *memdiag_cache_allocate(unsigned cache, size_t size) {
  if (tsd_get_allocates() && !malloc_initialized()) return NULL;
  tsd_t *const thread = tsd_get(false);
  if (thread == NULL || size > SC_LOOKUP_MAXCLASS) return NULL;
  szind_t size_class;
  size_t usable;
  sz_size2index_usize_fastpath(size, &size_class, &usable);
  uint64_t allocated;
  uint64_t limit;
  te_malloc_fastpath_ctx(thread, &allocated, &limit);
  allocated += usable;
  if (unlikely(allocated >= limit)) return NULL;
  tcache_t *const found = tcaches_get(thread, cache);
  if (unlikely(found == NULL)) return NULL;
  cache_bin_t *const blocks = &found->bins[size_class];
  bool is_there;
  void *block = cache_bin_alloc_easy(blocks, &is_there);
  if (unlikely(!is_there)) block = cache_bin_alloc(blocks, &is_there);
  if (unlikely(!is_there)) return NULL;
  fastpath_success_finish(thread, allocated, blocks, block);
  return block;
}

bool memdiag_cache_free(void *block, unsigned cache, size_t size) {
  tsd_t *const thread = tsd_get(false);
  /* A block on a page's boundary may be a sample of the profiler. */
  if (thread == NULL || size > SC_LOOKUP_MAXCLASS ||
      free_fastpath_nonfast_aligned(block, /* check_prof */ true))
    return false;
  emap_alloc_ctx_t known = {0};
  size_t usable;
  sz_size2index_usize_fastpath(size, &known.szind, &usable);
  known.slab = true;
  uint64_t freed;
  uint64_t limit;
  te_free_fastpath_ctx(thread, &freed, &limit);
  freed += usable;
  if (unlikely(freed >= limit)) return false;
  /* Has reported a wrong size, if options ask for that; the block is lost. */
  if (maybe_check_alloc_ctx(thread, block, &known)) return true;
  tcache_t *const found = tcaches_get(thread, cache);
  if (unlikely(found == NULL)) return false;
  if (!cache_bin_dalloc_easy(&found->bins[known.szind], block)) return false;
  *tsd_thread_deallocatedp_get(thread) = freed;
  return true;
}
