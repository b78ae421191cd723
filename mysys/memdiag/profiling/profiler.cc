#include "mysys/memdiag/profiling/profiler.h"

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <new>
#include <optional>

#include "mysys/memdiag/base/clock.h"
#include "mysys/memdiag/jemalloc/mallctl.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/arenas.h"
#include "mysys/memdiag/pools/attention.h"
#include "mysys/memdiag/profiling/code_ranges.h"
#include "mysys/memdiag/profiling/statement_stacks.h"
#include "mysys/memdiag/profiling/unwind.h"

namespace memdiag::profiling {

/** One profile, at the begin of the memory that it lies in. */
struct Profile {
  Profile(void *memory, const Settings &settings, size_t places,
          size_t bytes_for_sites)
      : since_us(clock_us(CLOCK_REALTIME)),
        settings(settings),
        samples(memory, places),
        sites(static_cast<char *>(memory) + Sample_table::bytes_of(places),
              bytes_for_sites) {}

  const uint64_t since_us;
  const Settings settings;
  Sample_table samples;
  Site_table sites;
  std::atomic<uint64_t> dropped_samples{0};
  std::atomic<uint64_t> dropped_stacks{0};
  /** The next one in `given_up`. */
  Profile *next{nullptr};
};

namespace {

/** Serialises switching on and off. */
constinit std::mutex switch_mutex;
constinit std::atomic<Profile *> current{nullptr};
/** A list of profiles that have ended and that users kept for too long. Changed
under the mutex. */
constinit std::atomic<Profile *> given_up{nullptr};
/** Hooks and views at work. Counted before they look at `current`. */
constinit std::atomic<uint32_t> users{0};
/** The number of profiles that were begun. */
constinit std::atomic<uint32_t> runs{0};
constinit std::atomic<Context_reader> context_reader{nullptr};
/** jemalloc's own, which the first switch_on() replaces. */
constinit mallctl::Backtrace_hook jemallocs_backtrace = nullptr;

/** The longest time that switch_off() waits for hooks and views. */
constexpr uint64_t longest_wait_us = 1000000;

/** The calling thread's running statement, as samples saw it. */
struct Running_statement {
  static constexpr size_t room = 64;
  /** The number in `runs`; the members below are of that run. */
  uint32_t run;
  /** Samples that have no digest yet: those that were taken while the statement
  was parsed. Later ones than there is room for stay without. */
  uint32_t pending_count;
  Sample_table::Handle pending[room];
  Statement_stacks stacks;
};
constinit thread_local Running_statement running_statement{0, 0, {}, {}};

/** The running statement of the current run. */
Running_statement &of_this_run() {
  const uint32_t run = runs.load(std::memory_order_relaxed);
  if (running_statement.run != run) {
    running_statement.run = run;
    running_statement.pending_count = 0;
    running_statement.stacks.clear();
  }
  return running_statement;
}

double estimated_bytes(const Profile &profile, uint64_t bytes) {
  return static_cast<double>(bytes) *
         objects_of_sample(bytes, profile.settings.sample_bytes);
}

class Use {
 public:
  Use() {
    users.fetch_add(1);
    m_profile = current.load();
  }
  ~Use() { users.fetch_sub(1, std::memory_order_release); }
  Use(const Use &) = delete;
  Use &operator=(const Use &) = delete;
  Profile *profile() const { return m_profile; }

 private:
  Profile *m_profile;
};

void give_digest_to_pending(Running_statement *statement, Profile *profile,
                            const Digest &digest) {
  for (uint32_t i = 0; i < statement->pending_count; ++i)
    profile->samples.set_digest(statement->pending[i], digest);
  statement->pending_count = 0;
}

/** Counts a sample for the statement that the session runs. */
void add_to_statement(Profile *profile, const Sample &sample,
                      Sample_table::Handle handle) {
  Running_statement &statement = of_this_run();
  if (sample.site != 0)
    statement.stacks.add(sample.site, estimated_bytes(*profile, sample.bytes));
  if (sample.digest != Digest{})
    give_digest_to_pending(&statement, profile, sample.digest);
  else if (statement.pending_count < Running_statement::room)
    statement.pending[statement.pending_count++] = handle;
}

void on_sample(const void *block, size_t, void **, unsigned, size_t bytes) {
  const Use use;
  Profile *const profile = use.profile();
  if (profile == nullptr) return;

  uintptr_t frames[max_frames];
  // The stack's code cannot be unloaded meanwhile, because it runs.
  const uint32_t look = code_looks();
  uint32_t youngest = 0;
  const size_t depth = walk_stack(frames, &youngest);
  const auto arena = mallctl::arena_of(block);
  const Pool pool =
      arena ? pools::owner_of_arena(arena.value()) : Pool::general;
  const pools::Request &request = pools::request_of_thread;
  const pools::Account account =
      !uses_malloc(pool) && request.pool == pool ? request.account : 0;
  Sample sample{};
  sample.site = profile->sites.add(
      pool, account, {{frames, depth}, youngest, std::max(look, youngest)},
      bytes, objects_of_sample(bytes, profile->settings.sample_bytes));
  if (sample.site == 0)
    profile->dropped_stacks.fetch_add(1, std::memory_order_relaxed);

  Context context{};
  if (const auto reader = context_reader.load(std::memory_order_acquire);
      reader != nullptr)
    reader(&context);
  sample.block = reinterpret_cast<uintptr_t>(block);
  sample.bytes = bytes;
  sample.time_us = clock_us(CLOCK_MONOTONIC);
  sample.session = context.session;
  sample.digest = context.digest;
  const auto added = profile->samples.add(sample);
  if (!added) {
    profile->dropped_samples.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (context.session != 0) add_to_statement(profile, sample, *added);
}

void on_free_of_sample(const void *block, size_t) {
  const Use use;
  Profile *const profile = use.profile();
  if (profile == nullptr) return;
  const auto removed =
      profile->samples.remove(reinterpret_cast<uintptr_t>(block));
  if (removed && removed->site != 0)
    of_this_run().stacks.remove(removed->site,
                                estimated_bytes(*profile, removed->bytes));
}

/** The same stack for all samples. */
void one_backtrace(void **frames, unsigned *count, unsigned) {
  frames[0] = reinterpret_cast<void *>(&on_sample);
  *count = 1;
}

/** A profile in memory of its own; nullptr: there is none. */
Profile *make_profile(const Settings &settings) {
  void *const memory =
      mmap(nullptr, settings.memory_bytes, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  // Samples lie scattered: a huge page would come for each of the first.
  (void)madvise(memory, settings.memory_bytes, MADV_NOHUGEPAGE);
  const size_t room = settings.memory_bytes - sizeof(Profile);
  const size_t places = Sample_table::places_in(room / 2);
  regions::add(Region_kind::profile, memory, settings.memory_bytes);
  return new (memory)
      Profile(static_cast<char *>(memory) + sizeof(Profile), settings, places,
              room - Sample_table::bytes_of(places));
}

void unmap(Profile *profile) {
  const size_t bytes = profile->settings.memory_bytes;
  regions::remove(profile);
  (void)munmap(profile, bytes);
}

/** Without users no profile but the current one is used any more. Caller holds
the mutex. */
void unmap_given_up() {
  if (users.load() != 0) return;
  for (Profile *profile = given_up.exchange(nullptr); profile != nullptr;) {
    Profile *const next = profile->next;
    unmap(profile);
    profile = next;
  }
}

/** Caller holds the mutex. */
void end_profile() {
  (void)mallctl::write<Ctl::prof_active>(false);
  pools::set_attention(pools::Attention::profiler, false);
  Profile *const profile = current.exchange(nullptr);
  (void)mallctl::write<Ctl::hook_prof_sample>(nullptr);
  (void)mallctl::write<Ctl::hook_prof_sample_free>(nullptr);
  if (profile != nullptr) {
    const uint64_t until = system_clock_us(CLOCK_MONOTONIC) + longest_wait_us;
    while (users.load() != 0 && system_clock_us(CLOCK_MONOTONIC) <= until)
      sched_yield();
    profile->next = given_up.load();
    given_up.store(profile);
  }
  // A View that ends later does. A hook never does, nor does a View before the
  // mutex is released: those leave it to a later View or switch.
  unmap_given_up();
}

/** The first that fails ends it. Caller holds the mutex. */
Switched set_controls(const Settings &settings) {
  if (jemallocs_backtrace == nullptr) {
    const auto own = mallctl::read<Ctl::hook_prof_backtrace>();
    if (!own) return {own.error(), mallctl::name(Ctl::hook_prof_backtrace)};
    jemallocs_backtrace = own.value();
  }
#define MEMDIAG_WRITE(ctl, value)                                             \
  if (const int error = mallctl::write<Ctl::ctl>(value); error != 0) return { \
      error, mallctl::name(Ctl::ctl)                                          \
    }
  MEMDIAG_WRITE(hook_prof_backtrace, settings.stacks_for_jemalloc
                                         ? jemallocs_backtrace
                                         : one_backtrace);
  MEMDIAG_WRITE(hook_prof_sample, on_sample);
  MEMDIAG_WRITE(hook_prof_sample_free, on_free_of_sample);
  if (const int error = mallctl::set_sample_interval(settings.sample_bytes);
      error != 0)
    return {error, "sample_bytes"};
  pools::set_attention(pools::Attention::profiler, true);
  MEMDIAG_WRITE(prof_active, true);
#undef MEMDIAG_WRITE
  return {0, nullptr};
}

}  // namespace

Switched switch_on(const Settings &settings) noexcept {
  if (!std::has_single_bit(settings.sample_bytes) ||
      settings.sample_bytes > most_sample_bytes)
    return {EINVAL, "sample_bytes"};
  if (settings.memory_bytes < least_memory_bytes ||
      settings.memory_bytes > most_memory_bytes)
    return {EINVAL, "memory_bytes"};
  note_code();
  const std::lock_guard<std::mutex> guard(switch_mutex);
  end_profile();
  Profile *const profile = make_profile(settings);
  if (profile == nullptr) return {ENOMEM, "mmap"};
  runs.fetch_add(1);
  current.store(profile);
  const Switched switched = set_controls(settings);
  if (switched.error != 0) end_profile();
  return switched;
}

void switch_off() noexcept {
  const std::lock_guard<std::mutex> guard(switch_mutex);
  if (current.load() != nullptr)
    end_profile();
  else
    unmap_given_up();
}

bool is_on() noexcept {
  return current.load(std::memory_order_relaxed) != nullptr;
}

void set_context_reader(Context_reader reader) noexcept {
  context_reader.store(reader, std::memory_order_release);
}

Site_of_run statement_ended(const unsigned char *digest) noexcept {
  Running_statement &statement = of_this_run();
  const Site_of_run top{statement.run, statement.stacks.top_at_peak()};
  if (top.site != 0) statement.stacks.clear();
  if (statement.pending_count == 0) return top;
  const Use use;
  Digest known;
  memcpy(known.data(), digest, known.size());
  if (use.profile() != nullptr && known != Digest{})
    give_digest_to_pending(&statement, use.profile(), known);
  statement.pending_count = 0;
  return top;
}

uint32_t current_site(Site_of_run site) noexcept {
  return is_on() && site.run == runs.load() ? site.site : 0;
}

View::View() noexcept {
  users.fetch_add(1);
  m_profile = current.load();
}

View::~View() {
  if (users.fetch_sub(1) != 1 || given_up.load() == nullptr) return;
  // The thread that has the mutex unmaps them, or a later View does.
  const std::unique_lock<std::mutex> guard(switch_mutex, std::try_to_lock);
  if (guard) unmap_given_up();
}

const Sample_table &View::samples() const { return m_profile->samples; }
const Site_table &View::sites() const { return m_profile->sites; }

Status View::status() const {
  return {m_profile->since_us, m_profile->settings.sample_bytes,
          m_profile->settings.memory_bytes, m_profile->dropped_samples.load(),
          m_profile->dropped_stacks.load()};
}

void hold() noexcept { switch_mutex.lock(); }

void let_go(bool in_child) noexcept {
  // The other threads' hooks do not go on in the child.
  if (in_child) users.store(0);
  switch_mutex.unlock();
}

}  // namespace memdiag::profiling
