/*
  Every jemalloc control name this product knows, in one list.

  MEMDIAG_CTL(id, "name", type): `name` as in jemalloc(3), where an index (of
  the arena, then of the size class) is written 0 and replaced at run time. A
  unit test resolves each of them against the library that is linked, so a
  misspelt or retired name fails the build's tests and never reads as 0.

  Units: as in jemalloc(3). Sizes are bytes; pactive, pdirty and pmuzzy are
  pages; decay times are milliseconds; uptime and run_interval are nanoseconds.

  To read arenas.create or tcache.create makes an arena or a cache, which the
  reader owns. tcache.destroy frees a cache. The layer never destroys an arena.

  No include guard: included with different definitions of MEMDIAG_CTL.
*/
// clang-format off
MEMDIAG_CTL(version,                  "version",                                const char *)
MEMDIAG_CTL(epoch,                    "epoch",                                  uint64_t)
MEMDIAG_CTL(background_thread,        "background_thread",                      bool)
MEMDIAG_CTL(config_prof,              "config.prof",                            bool)

MEMDIAG_CTL(prof_active,              "prof.active",                            bool)
MEMDIAG_CTL(hook_prof_backtrace,      "experimental.hooks.prof_backtrace",      mallctl::Backtrace_hook)
MEMDIAG_CTL(hook_prof_sample,         "experimental.hooks.prof_sample",         mallctl::Sample_hook)
MEMDIAG_CTL(hook_prof_sample_free,    "experimental.hooks.prof_sample_free",    mallctl::Sample_free_hook)
MEMDIAG_CTL(hook_thread_event,        "experimental.hooks.thread_event",        mallctl::Thread_event)
MEMDIAG_CTL(opt_prof,                 "opt.prof",                               bool)
MEMDIAG_CTL(opt_prof_active,          "opt.prof_active",                        bool)
MEMDIAG_CTL(opt_background_thread,    "opt.background_thread",                  bool)
MEMDIAG_CTL(opt_max_background_threads, "opt.max_background_threads",           size_t)
MEMDIAG_CTL(opt_narenas,              "opt.narenas",                            unsigned)
MEMDIAG_CTL(opt_percpu_arena,         "opt.percpu_arena",                       const char *)
MEMDIAG_CTL(opt_dirty_decay_ms,       "opt.dirty_decay_ms",                     ssize_t)
MEMDIAG_CTL(opt_muzzy_decay_ms,       "opt.muzzy_decay_ms",                     ssize_t)
MEMDIAG_CTL(opt_tcache,               "opt.tcache",                             bool)
MEMDIAG_CTL(opt_tcache_max,           "opt.tcache_max",                         size_t)
MEMDIAG_CTL(opt_oversize_threshold,   "opt.oversize_threshold",                 size_t)
MEMDIAG_CTL(opt_cache_oblivious,      "opt.cache_oblivious",                    bool)
MEMDIAG_CTL(opt_disable_large_size_classes, "opt.disable_large_size_classes",  bool)
MEMDIAG_CTL(opt_retain,               "opt.retain",                             bool)
MEMDIAG_CTL(opt_thp,                  "opt.thp",                                const char *)
MEMDIAG_CTL(opt_metadata_thp,         "opt.metadata_thp",                       const char *)

MEMDIAG_CTL(thread_arena,             "thread.arena",                           unsigned)
MEMDIAG_CTL(thread_tcache_enabled,    "thread.tcache.enabled",                  bool)
MEMDIAG_CTL(thread_tcache_sizes,      "thread.tcache.ncached_max.write",        const char *)
MEMDIAG_CTL(arenas_create,            "arenas.create",                          unsigned)
MEMDIAG_CTL(arenas_narenas,           "arenas.narenas",                         unsigned)
MEMDIAG_CTL(arenas_page,              "arenas.page",                            size_t)
MEMDIAG_CTL(arenas_dirty_decay_ms,    "arenas.dirty_decay_ms",                  ssize_t)
MEMDIAG_CTL(arenas_muzzy_decay_ms,    "arenas.muzzy_decay_ms",                  ssize_t)

MEMDIAG_CTL(arenas_nbins,             "arenas.nbins",                           unsigned)
MEMDIAG_CTL(arenas_bin_size,          "arenas.bin.0.size",                      size_t)
MEMDIAG_CTL(arenas_bin_nregs,         "arenas.bin.0.nregs",                     uint32_t)
MEMDIAG_CTL(arenas_bin_slab_size,     "arenas.bin.0.slab_size",                 size_t)
MEMDIAG_CTL(arenas_nlextents,         "arenas.nlextents",                       unsigned)
MEMDIAG_CTL(arenas_lextent_size,      "arenas.lextent.0.size",                  size_t)

MEMDIAG_CTL(tcache_create,            "tcache.create",                          unsigned)
MEMDIAG_CTL(tcache_destroy,           "tcache.destroy",                         unsigned)

MEMDIAG_CTL(arena_initialized,        "arena.0.initialized",                    bool)
MEMDIAG_CTL(arena_dirty_decay_ms,     "arena.0.dirty_decay_ms",                 ssize_t)
MEMDIAG_CTL(arena_muzzy_decay_ms,     "arena.0.muzzy_decay_ms",                 ssize_t)
MEMDIAG_CTL(arena_name,               "arena.0.name",                           char *)

MEMDIAG_CTL(stats_allocated,          "stats.allocated",                        size_t)
MEMDIAG_CTL(stats_active,             "stats.active",                           size_t)
MEMDIAG_CTL(stats_metadata,           "stats.metadata",                         size_t)
MEMDIAG_CTL(stats_resident,           "stats.resident",                         size_t)
MEMDIAG_CTL(stats_mapped,             "stats.mapped",                           size_t)
MEMDIAG_CTL(stats_retained,           "stats.retained",                         size_t)
MEMDIAG_CTL(stats_background_threads, "stats.background_thread.num_threads",    size_t)
MEMDIAG_CTL(stats_background_runs,    "stats.background_thread.num_runs",       uint64_t)
MEMDIAG_CTL(stats_background_run_interval, "stats.background_thread.run_interval", uint64_t)

MEMDIAG_CTL(stats_arena_nthreads,     "stats.arenas.0.nthreads",                unsigned)
MEMDIAG_CTL(stats_arena_uptime,       "stats.arenas.0.uptime",                  uint64_t)
MEMDIAG_CTL(stats_arena_pactive,      "stats.arenas.0.pactive",                 size_t)
MEMDIAG_CTL(stats_arena_pdirty,       "stats.arenas.0.pdirty",                  size_t)
MEMDIAG_CTL(stats_arena_pmuzzy,       "stats.arenas.0.pmuzzy",                  size_t)
MEMDIAG_CTL(stats_arena_mapped,       "stats.arenas.0.mapped",                  size_t)
MEMDIAG_CTL(stats_arena_retained,     "stats.arenas.0.retained",                size_t)
MEMDIAG_CTL(stats_arena_resident,     "stats.arenas.0.resident",                size_t)
MEMDIAG_CTL(stats_arena_base,         "stats.arenas.0.base",                    size_t)
MEMDIAG_CTL(stats_arena_internal,     "stats.arenas.0.internal",                size_t)
MEMDIAG_CTL(stats_arena_tcache_bytes, "stats.arenas.0.tcache_bytes",            size_t)
MEMDIAG_CTL(stats_arena_dirty_npurge, "stats.arenas.0.dirty_npurge",            uint64_t)
MEMDIAG_CTL(stats_arena_dirty_nmadvise, "stats.arenas.0.dirty_nmadvise",        uint64_t)
MEMDIAG_CTL(stats_arena_dirty_purged, "stats.arenas.0.dirty_purged",            uint64_t)
MEMDIAG_CTL(stats_arena_muzzy_npurge, "stats.arenas.0.muzzy_npurge",            uint64_t)
MEMDIAG_CTL(stats_arena_muzzy_nmadvise, "stats.arenas.0.muzzy_nmadvise",        uint64_t)
MEMDIAG_CTL(stats_arena_muzzy_purged, "stats.arenas.0.muzzy_purged",            uint64_t)
MEMDIAG_CTL(stats_arena_small_allocated, "stats.arenas.0.small.allocated",      size_t)
MEMDIAG_CTL(stats_arena_small_nmalloc,   "stats.arenas.0.small.nmalloc",        uint64_t)
MEMDIAG_CTL(stats_arena_small_ndalloc,   "stats.arenas.0.small.ndalloc",        uint64_t)
MEMDIAG_CTL(stats_arena_large_allocated, "stats.arenas.0.large.allocated",      size_t)
MEMDIAG_CTL(stats_arena_large_nmalloc,   "stats.arenas.0.large.nmalloc",        uint64_t)
MEMDIAG_CTL(stats_arena_large_ndalloc,   "stats.arenas.0.large.ndalloc",        uint64_t)

MEMDIAG_CTL(stats_bin_nmalloc,        "stats.arenas.0.bins.0.nmalloc",          uint64_t)
MEMDIAG_CTL(stats_bin_ndalloc,        "stats.arenas.0.bins.0.ndalloc",          uint64_t)
MEMDIAG_CTL(stats_bin_nrequests,      "stats.arenas.0.bins.0.nrequests",        uint64_t)
MEMDIAG_CTL(stats_bin_nfills,         "stats.arenas.0.bins.0.nfills",           uint64_t)
MEMDIAG_CTL(stats_bin_nflushes,       "stats.arenas.0.bins.0.nflushes",         uint64_t)
MEMDIAG_CTL(stats_bin_curregs,        "stats.arenas.0.bins.0.curregs",          size_t)
MEMDIAG_CTL(stats_bin_curslabs,       "stats.arenas.0.bins.0.curslabs",         size_t)
MEMDIAG_CTL(stats_bin_nonfull_slabs,  "stats.arenas.0.bins.0.nonfull_slabs",    size_t)
MEMDIAG_CTL(stats_lextent_nmalloc,    "stats.arenas.0.lextents.0.nmalloc",      uint64_t)
MEMDIAG_CTL(stats_lextent_ndalloc,    "stats.arenas.0.lextents.0.ndalloc",      uint64_t)
MEMDIAG_CTL(stats_lextent_nrequests,  "stats.arenas.0.lextents.0.nrequests",    uint64_t)
MEMDIAG_CTL(stats_lextent_curlextents, "stats.arenas.0.lextents.0.curlextents", size_t)
MEMDIAG_CTL(stats_extents_ndirty,     "stats.arenas.0.extents.0.ndirty",        size_t)
MEMDIAG_CTL(stats_extents_dirty_bytes, "stats.arenas.0.extents.0.dirty_bytes",  size_t)
MEMDIAG_CTL(stats_extents_nmuzzy,     "stats.arenas.0.extents.0.nmuzzy",        size_t)
MEMDIAG_CTL(stats_extents_muzzy_bytes, "stats.arenas.0.extents.0.muzzy_bytes",  size_t)
MEMDIAG_CTL(stats_extents_nretained,  "stats.arenas.0.extents.0.nretained",     size_t)
MEMDIAG_CTL(stats_extents_retained_bytes, "stats.arenas.0.extents.0.retained_bytes", size_t)
// clang-format on
