/*
  The options that jemalloc starts with in this server. jemalloc reads this
  string, then /etc/malloc.conf, then the environment's MALLOC_CONF, each
  overriding the one before (jemalloc(3), TUNING).
*/

#ifdef MEMDIAG_JEMALLOC_PREFIXED
#define malloc_conf je_malloc_conf
#endif

extern "C" {
extern const char *malloc_conf;

const char *malloc_conf =
    // Unused pages are given back by jemalloc's own threads: an idle server
    // has no thread that would do it, and a busy query should not.
    "background_thread:true"
    // malloc()'s arenas. jemalloc has four for each processor, and makes one
    // for each thread while it may: 1,000 connections on 256 processors would
    // have 1,024. Threads of connections take from arenas of their own
    // (Pool::connection), and the other threads take little from malloc(). Each
    // arena takes 130 KB, and 20 us of each reading of the statistics
    // (bench/processors.py). With fewer than four on two processors, the start
    // of the server often left 18 MB of RSS behind.
    ",narenas:16"
    // One second: RSS follows the load within the time a monitoring system
    // samples in, for less than 1% of throughput (bench/).
    ",dirty_decay_ms:1000"
    // MADV_FREE pages stay in RSS until the kernel needs them, and the OOM
    // killer counts them: go straight to MADV_DONTNEED.
    ",muzzy_decay_ms:0"
    // A block of zeros from here on gets pages that the kernel fills with zeros
    // when they are written. jemalloc fills those below 8 MB itself, unless
    // their pages were never used. Performance Schema and InnoDB write little
    // of their arrays of zeros: 12 to 16 MB of RSS at start
    // (bench/processors.py). Under oltp_read_write, no more calls of madvise()
    // follow.
    ",calloc_madvise_threshold:65536"
    // If the system's transparent huge pages are 'always', one small block
    // keeps 2 MB, arrays of zeros are written as a whole, and a purge has to
    // break what the kernel put together (bench/run.py --workloads triggers
    // --surroundings plain,huge-pages). The buffer pool is not the allocator's
    // and has them. InnoDB's large hash tables are the allocator's and go
    // without: those of the page hash, the adaptive hash index and the locks.
    // A look-up there takes 0.1 us more; with huge pages, few look-ups would
    // make the whole table resident (mysys/memdiag/README.md).
    ",thp:never"
    // Heap profiles can be switched on in the running server (prof.active). A
    // restart would end the growth that is to be examined. Ready but inactive,
    // they cost 0.02% of the instructions of a point select
    // (bench/instructions.py --arms dev,dev-prof-off).
    ",prof:true,prof_active:false";
}
