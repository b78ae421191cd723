/*
  Questions and short cuts that jemalloc's interface lacks. internals.c is
  compiled as a part of jemalloc, because it uses jemalloc's own headers; only
  mallctl.cc calls it.

  The functions are C, and have these names also where jemalloc's own begin with
  je_. Threads: any. None of them takes jemalloc's mutex of controls, which a
  refresh of the statistics holds for milliseconds on a large server. Units:
  bytes, except where a name says pages.
*/

#ifndef MEMDIAG_JEMALLOC_INTERNALS_H
#define MEMDIAG_JEMALLOC_INTERNALS_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Pages that are kept for later are dirty until they are given back. */
enum memdiag_pages {
  memdiag_pages_used,
  memdiag_pages_dirty,
  memdiag_pages_given_back
};

/** An extent: a slab of equal regions, or (1 region) a large block or pages
that are kept for later. */
struct memdiag_extent {
  unsigned arena;
  size_t bytes;
  size_t regions;
  size_t free_regions;
  enum memdiag_pages pages;
};

/** The arena that a block lies in.
@param block  any address
@return false: jemalloc knows no such block */
bool memdiag_arena_of(const void *block, unsigned *arena);

/** The extent that begins at an address, or that has it in a slab. Others may
split or free the extent meanwhile; the answer is then a mixture of before and
after.
@param address  any address
@return false: jemalloc knows none there */
bool memdiag_extent_at(const void *address, struct memdiag_extent *extent);

/** The map of pages has a node for each gigabyte that ever had an extent.
@param address  any but NULL
@return so many bytes from the address on have no node, so no extent begins in
them; 0: there is a node */
size_t memdiag_no_extents_from(const void *address);

/** An arena's pages as they are now; the statistics have them as of the last
refresh. Takes the mutex of the arena's metadata.
@param arena     any number
@param resident  in use, dirty, or the arena's metadata
@return false: no such arena */
bool memdiag_arena_pages(unsigned arena, size_t *resident, size_t *dirty_pages);

/** Ask the kernel for no huge pages in an arena's metadata, and give back what
of it was never used. jemalloc 5.3.1 applies the option thp to the other pages
alone. The metadata of each arena has 2 MB to begin with and uses a tenth of
them. Takes the mutex of the arena's metadata. Where thp is not "never", nothing
is done.
@return the first block of the metadata; nullptr: no such arena */
const void *memdiag_arena_keep_metadata_small(unsigned arena);

/** Purge an arena's unused pages, as arena.<i>.purge does, and tell what that
does not: jemalloc returns at once if another thread is purging the arena, which
may take only the pages that are due.
@param skipped  another thread was purging it
@return false: no such arena */
bool memdiag_arena_purge(unsigned arena, bool *skipped);

/** The heap profiler samples a block for so many bytes from now on. Threads
finish the interval that they have begun. prof.reset sets the rate, too. But it
also discards what the profiler knows of each thread, and jemalloc 5.3.1
discards an ended thread's twice if the thread's last sample is freed meanwhile.
@param lg_bytes  binary logarithm of the bytes; the profiler is compiled in and
                 initialised */
void memdiag_set_sample_interval(size_t lg_bytes);

/** Take a small block from an explicit cache, in about 35 instructions.
mallocx() needs 150 for the same, because it has a short way to the thread's own
cache only.
@param cache  of tcache.create; no other thread uses it at the same time
@param size   not 0
@return nullptr: take the long way, mallocx(). The cache has no block of this
        size, the block is large, or it is jemalloc's turn to do other work. */
void *memdiag_cache_allocate(unsigned cache, size_t size);

/** Put a small block into an explicit cache.
@param size  as asked for at allocation
@return false: take the long way, sdallocx() */
bool memdiag_cache_free(void *block, unsigned cache, size_t size);

#ifdef __cplusplus
}
#endif

#endif  // MEMDIAG_JEMALLOC_INTERNALS_H
