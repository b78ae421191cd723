#include "plugin/memdiag/server/threads/ceiling_state.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "mutex_lock.h"
#include "my_sys.h"
#include "my_thread.h"
#include "mysys/memdiag/pages/regions.h"
#include "mysys/memdiag/pools/pools.h"
#include "mysys/memdiag/purging/purge.h"
#include "mysys/memdiag/upstream/private_member.h"
#include "plugin/memdiag/ledger/process_memory.h"
#include "plugin/memdiag/server/bridge/error_log.h"
#include "plugin/memdiag/server/threads/exempt.h"
#include "plugin/memdiag/server/threads/kept_programs.h"
#include "plugin/memdiag/server/threads/unused_tables.h"
#include "scope_guard.h"
#include "sql/mysqld.h"
#include "sql/mysqld_thd_manager.h"
#include "sql/sql_base.h"
#include "sql/sql_class.h"
#include "storage/innobase/memdiag/balloon.h"
#include "storage/innobase/memdiag/innodb.h"

namespace memdiag {

struct Plan_lock {
  using Member = mysql_mutex_t THD::*;
  friend Member member_of(Plan_lock);
};
template struct Names<Plan_lock, &THD::LOCK_query_plan>;

}  // namespace memdiag

namespace memdiag::ceiling {

namespace {

constexpr uint64_t limits_age_us = 1'000'000;
/** A table's full-text cache with less is not worth writing. */
constexpr uint64_t worth_writing_bytes = 64 << 10;
constexpr uint64_t watch_row_us = 1'000'000;
/** Statements at the gate sleep by the wall clock, which may be set back. */
constexpr uint64_t wake_us = 1'000'000;

constinit std::atomic<bool> giver_is_called{false};

void set_spills(State *self, bool spills) {
  if (self->spills.exchange(spills) != spills) kept_programs::call_idle(spills);
}

/** Called within malloc(). */
bool read_kept(int64_t *bytes) {
  State &self = state();
  const Reading kept = self.kept.read(
      monotonic_us(), static_cast<uint64_t>(account.marks().plenty_bytes) / 4);
  if (!kept) return false;
  // It cannot wait until refresh_limits() looks again.
  if (const Reading limit = self.kept.limit_bytes();
      limit && *limit < self.limit_bytes) {
    self.limit_bytes = *limit;
    account.set_marks(marks_of_limit(*limit, self.statements));
  }
  *bytes = static_cast<int64_t>(*kept);
  return true;
}

void say_known(State *self) {
  if (!std::exchange(self->said_unknown, false)) return;
  error_log::note("the ceiling is at work (memdiag_memory_target)");
}

void say_unknown(State *self, bool no_limit, const char *why) {
  if (std::exchange(self->said_unknown, true)) return;
  const std::string text = std::string("the ceiling does nothing now: ") + why +
                           " (memdiag_memory_target)";
  if (no_limit)
    error_log::note(text);
  else
    error_log::warn(text);
}

void say_frames_stay(State *self, balloon::State works) {
  const bool small = works == balloon::State::small_frames;
  const bool stay =
      locked_in_memory || small || works == balloon::State::large_pages;
  if (std::exchange(self->said_frames_stay, stay) || !stay) return;
  error_log::warn(
      small ? "the ceiling gives no memory of the buffer pool back: a page of "
              "the system is larger than innodb_page_size "
              "(memdiag_memory_target)"
            : "the ceiling gives no memory of the buffer pool back: it is "
              "locked in memory, or a part of it lies in reserved huge pages "
              "(memdiag_memory_target)");
}

/** The files of another group, or of the process. Caller holds `round` and the
reading. @throws std::bad_alloc */
void read_from(State *self, const std::string &usage_file,
               const std::string &folder) {
  if (self->kept_file == usage_file) return;
  const bool of_process = folder.empty();
  const int version = usage_file.ends_with("memory.usage_in_bytes") ? 1 : 2;
  const int error = of_process
                        ? self->kept.open_process(usage_file)
                        : self->kept.open_group(
                              usage_file, folder + "/memory.stat",
                              folder + (version == 1 ? "/memory.limit_in_bytes"
                                                     : "/memory.max"),
                              version, process_memory::code_bytes());
  if (error != 0) self->kept.close_all();
  self->kept_file = error == 0 ? usage_file : "";
}

struct Group_limit {
  uint64_t limit_bytes;
  std::string usage_file;
  std::string folder;
};

/** The group that is nearest to its limit: the process's own or one above it,
where other groups take room as well. */
std::optional<Group_limit> group_of(const host::Limit_figures &figures) {
  if (figures.tightest && !figures.tightest->usage_file.empty()) {
    const std::string &file = figures.tightest->usage_file;
    return Group_limit{figures.tightest->limit_bytes, file,
                       file.substr(0, file.rfind('/'))};
  }
  if (!figures.group_limit_bytes || figures.usage_file.empty())
    return std::nullopt;
  return Group_limit{*figures.group_limit_bytes, figures.usage_file,
                     figures.folder};
}

/** Caller holds `round`. @throws std::bad_alloc */
void refresh_limits(State *self, uint64_t now_us) {
  if (self->limits_us && now_us - *self->limits_us < limits_age_us &&
      !self->kept_file.empty())
    return;
  const bool is_new = !self->limits_us;
  self->limits_us = now_us;
  const auto statements = static_cast<uint64_t>(std::max(
      Global_THD_manager::get_instance()->get_num_thread_running(), 0));
  const host::Limit_figures figures = self->limits.read(now_us);
  const bool is_as_before = figures.is_unsure && self->at_work && !is_new;
  // The limit before is better than none. A target in bytes below it goes on:
  // no limit may ever be known.
  if (is_as_before && self->of_group) return;
  const std::optional<Group_limit> group = group_of(figures);
  const bool has_bytes = mode.load() == Target::bytes;
  const uint64_t bytes = wanted_bytes.load();
  std::optional<Marks> of_limit;
  if (group) of_limit = marks_of_limit(group->limit_bytes, statements);
  const bool of_group =
      of_limit &&
      (!has_bytes || static_cast<uint64_t>(of_limit->target_bytes) <= bytes);
  std::optional<Marks> marks;
  if (of_group) {
    marks = of_limit;
  } else if (has_bytes) {
    marks = marks_of_target(bytes, statements);
    if (is_as_before)
      marks->ending_bytes = account.marks().ending_bytes;
    else if (of_limit)
      marks->ending_bytes += of_limit->target_bytes - marks->target_bytes;
    else if (!figures.is_unsure)
      // No limit is known, and the machine has one.
      marks->ending_bytes +=
          std::max(marks->target_bytes,
                   static_cast<int64_t>(self->need_beyond_target.value_or(0)));
    if (self->need_beyond_target)
      marks->beyond_bytes = std::max(
          marks->ending_bytes, static_cast<int64_t>(*self->need_beyond_target) -
                                   marks->target_bytes + marks->beyond_bytes);
  }
  if (!marks) {
    (void)set_at_work(self, false);
    self->kept_file.clear();
    give_all_back();
    say_unknown(self, !figures.is_unsure,
                figures.is_unsure
                    ? "the limit of the control group cannot be read"
                    : "no control group has a memory limit");
    return;
  }
  self->of_group = of_group;
  {
    // read_kept() sets them as well.
    account.hold_reading();
    const auto let_go = create_scope_guard([] { account.let_reading_go(); });
    account.set_marks(*marks);
    self->statements = statements;
    self->limit_bytes = of_group ? group->limit_bytes : 0;
    if (of_group)
      read_from(self, group->usage_file, group->folder);
    else
      read_from(self, "/proc/self/statm", "");
  }
  tokens.set_all(marks->reserve_bytes);
  account.set_reader(read_kept);
  if (set_at_work(self, true) != 0) {
    say_unknown(self, false, "jemalloc tells it of no event");
    account.set_reader(nullptr);
  }
}

/** Of pools where a purge is worth its while. */
std::array<uint64_t, pool_count> unused_bytes(uint64_t *sum) {
  std::array<uint64_t, pool_count> bytes;
  *sum = 0;
  for (size_t i = 0; i < pool_count; ++i) {
    const Result<uint64_t> dirty = purging::dirty_bytes(static_cast<Pool>(i));
    bytes[i] =
        dirty && dirty.value() >= worth_purging_bytes ? dirty.value() : 0;
    *sum += bytes[i];
  }
  return bytes;
}

/** Of one pool, so that a round is short. */
uint64_t purge(const std::array<uint64_t, pool_count> &unused) {
  const auto most = std::max_element(unused.begin(), unused.end());
  (void)purging::purge(static_cast<Pool>(most - unused.begin()),
                       Purge_reason::pressure);
  return *most;
}

uint64_t free_frames_bytes() {
  const auto pool = innodb::buffer_pool();
  return pool ? pool->free_pages * pool->page_size : 0;
}

void note_parked_total() {
  counters.parked_bytes.store(balloon::parked_bytes(),
                              std::memory_order_relaxed);
}

/** KILL has ended the statement. An event's THD may be gone, so the answer for
it is false. Caller holds the mutex, and the statement is in the list. */
bool is_killed(const Running &statement) {
  return !statement.of_event && statement.thd->killed != THD::NOT_KILLED;
}

/** The ceiling may tell the statement to end. The caller is as above. */
bool may_end(const Running &statement) {
  return statement.may_end &&
         (!statement.logged_as_text || (statement.taker->waits.load() &&
                                        !statement.changes_for_good.load()));
}

/** To tell it to end would have no effect. The caller is as above. EXPLAIN FOR
CONNECTION may have the lock of the plan for long, while its client does not
read: where the stage is that of a commit, the statement is left alone then. */
bool commits(const Running &statement) {
  if (statement.of_event || !statement.passed_gate.load()) return false;
  THD *const thd = statement.thd;
  if (!exempt::may_commit(thd)) return false;
  if (mysql_mutex_trylock(&(thd->*member_of(Plan_lock{}))) != 0) return true;
  const auto unlock = create_scope_guard([thd] { thd->unlock_query_plan(); });
  return exempt::commits(thd);
}

/** The caller is as above. An event ends itself; see Running::thd.
Upstream takes a KILL back behind the statement's commit. One that comes later,
and is seen before the statement is left, would end its packet there: the next
statements would not run, and their client would wait for their answers.
EXPLAIN FOR CONNECTION has the lock of the plan while its client reads: the next
round tries again. */
void kill_if_passed(Running *statement) {
  if (statement->of_event || !statement->passed_gate.load()) return;
  THD *const thd = statement->thd;
  if ((thd->server_status & SERVER_MORE_RESULTS_EXISTS) == 0) {
    (void)kill(statement);
    return;
  }
  if (mysql_mutex_trylock(&(thd->*member_of(Plan_lock{}))) != 0) return;
  const auto unlock = create_scope_guard([thd] { thd->unlock_query_plan(); });
  // A routine has more statements, and steps without a plan.
  if (thd->query_plan.get_command() != SQLCOM_END ||
      thd->sp_runtime_ctx != nullptr)
    (void)kill(statement);
}

/** @return false: no statement may be told to end */
bool end_one(State *self, bool all_kept) {
  const uint64_t began_us = monotonic_us();
  Done done = begun(Action::end);
  MUTEX_LOCK(locked, &self->mutex);
  const auto candidate = [](const Running *each) {
    return Candidate{each->taker->wants_bytes(),
                     each->number,
                     may_end(*each) && !commits(*each),
                     each->taker->told_to_end.load() || is_killed(*each),
                     each->may_keep,
                     each->taker->waits_in_malloc.load()};
  };
  Choice choice(all_kept);
  Running *most = nullptr;
  for (Running *each = self->running.first; each != nullptr; each = each->next)
    choice.see_first(candidate(each));
  for (Running *each = self->running.first; each != nullptr; each = each->next)
    if (choice.see_again(candidate(each))) most = each;
  if (most == nullptr) return false;
  most->target_bytes = static_cast<uint64_t>(account.marks().target_bytes);
  most->grown_bytes =
      static_cast<uint64_t>(std::max<int64_t>(most->taker->wants_bytes(), 0));
  most->of_statements = self->running.count;
  most->taker->told_to_end.store(true, std::memory_order_release);
  kill_if_passed(most);
  self->kills_due = true;
  done.processlist_id = most->session_id;
  done.digest = most->digest;
  finish(&done, began_us, most->grown_bytes);
  self->log.add(done);
  counters.ended.fetch_add(1);
  return true;
}

/** The lock was taken, or a routine's handler of an error has begun, with which
upstream takes a KILL back. */
void kill_again(State *self) {
  MUTEX_LOCK(locked, &self->mutex);
  self->kills_due = false;
  for (Running *each = self->running.first; each != nullptr;
       each = each->next) {
    if (!each->taker->told_to_end.load()) continue;
    self->kills_due = true;
    kill_if_passed(each);
  }
}

/** The statements that run, as far as they wait for memory. */
struct Waiting {
  /** Each of them waits that may take much. */
  bool all;
  /** The largest block that one of them waits for, if it may be told to end,
  and its end would take the wish back. */
  int64_t largest_bytes;
  /** All of them have taken so much. */
  int64_t grown_bytes;
};

Waiting waiting(State *self) {
  MUTEX_LOCK(locked, &self->mutex);
  Waiting found{false, 0, 0};
  bool one_goes_on = false;
  for (const Running *each = self->running.first; each != nullptr;
       each = each->next) {
    const Taker &taker = *each->taker;
    if (each->may_take_much())
      (taker.waits.load(std::memory_order_relaxed) ? found.all : one_goes_on) =
          true;
    found.grown_bytes +=
        std::max<int64_t>(taker.grown_bytes.load(std::memory_order_relaxed), 0);
    if (may_end(*each) && !taker.told_to_end.load() &&
        !taker.waits_in_malloc.load(std::memory_order_relaxed))
      found.largest_bytes =
          std::max(found.largest_bytes,
                   taker.asks_bytes.load(std::memory_order_relaxed));
  }
  found.all = found.all && !one_goes_on;
  return found;
}

/** The level, as if the largest block had been had that nothing makes room for.
While its thread waits, nothing of it is promised, and others go on. */
Level level_with(int64_t largest_bytes) {
  const Level level = account.level();
  const int64_t reserve = account.marks().reserve_bytes;
  return level != Level::unknown && largest_bytes > reserve &&
                 account.left_bytes() - largest_bytes < -reserve
             ? Level::red
             : level;
}

/** The gate learns from running statements what others of their digests will
take at least. Of a crowd that began together, no statement has ended yet. */
void learn(State *self) {
  const int64_t plenty = account.marks().plenty_bytes;
  MUTEX_LOCK(locked, &self->mutex);
  for (const Running *each = self->running.first; each != nullptr;
       each = each->next)
    peaks.note_at_least(
        each->hash, each->taker->grown_bytes.load(std::memory_order_relaxed),
        plenty, each->spills.load(std::memory_order_relaxed));
}

/** In WATCH a step is noted once a second. */
void note_only(State *self, Action action, uint64_t bytes, uint64_t now_us) {
  if (now_us - self->watched_us < watch_row_us) return;
  self->watched_us = now_us;
  Done done = begun(action);
  finish(&done, now_us, bytes);
  note(done);
}

/** Caller holds `round`. @return true: another round is worth its while now */
bool take_step(State *self, uint64_t now_us) {
  const bool caches = get_server_state() == SERVER_OPERATING;
  const balloon::State works = balloon::state();
  say_frames_stay(self, works);
  // A resize may end between two rounds, and bring reserved pages.
  if ((works == balloon::State::resizing ||
       works == balloon::State::large_pages) &&
      balloon::parked_bytes() != 0) {
    Done done = begun(Action::give_back);
    finish(&done, now_us, balloon::give_back(UINT64_MAX));
    note_parked_total();
    note(done);
  }
  const int64_t asked_bytes = account.asked_bytes();
  Waiting of{false, 0, 0};
  if (asked_bytes > 0 || account.level() == Level::red) of = waiting(self);
  self->running_bytes.store(of.grown_bytes, std::memory_order_relaxed);
  const Level level = level_with(of.largest_bytes);
  Situation now{level,
                account.left_bytes(),
                account.marks(),
                0,
                locked_in_memory ? 0 : balloon::parkable_bytes(),
                balloon::parked_bytes(),
                balloon::missing_bytes(),
                acts() ? free_frames_bytes() : 0,
                level == Level::red && of.all,
                caches,
                asked_bytes};
  std::array<uint64_t, pool_count> unused{};
  if (now.left_bytes - asked_bytes < now.marks.plenty_bytes * 5 / 4)
    unused = unused_bytes(&now.unused_bytes);
  const Next next = self->giving.next(now, now_us);
  set_spills(self, acts() && self->giving.spills());
  constexpr Action actions[] = {
      Action::wait, Action::purge,     Action::park,     Action::caches,
      Action::end,  Action::give_back, Action::give_back};
  const Action action = actions[static_cast<size_t>(next.step)];
  if (next.step == Step::none) return false;
  const bool gives_back = action == Action::give_back;
  if (!acts() && !gives_back) {
    note_only(self, action, next.bytes, now_us);
    return false;
  }
  if (next.step == Step::end_statement) {
    self->giving.note_ended(now_us);
    return end_one(self, self->giving.all_kept(now, now_us));
  }
  Done done = begun(action);
  uint64_t bytes = 0;
  switch (next.step) {
    case Step::purge:
      bytes = purge(unused);
      break;
    case Step::park:
      bytes = balloon::park(next.bytes, !next.of_credit);
      self->giving.note_parked(next, bytes, now_us);
      break;
    case Step::give_back_frames:
      bytes = balloon::give_back(next.bytes);
      self->giving.note_given_back(next, bytes);
      break;
    case Step::give_back_missing:
      bytes = balloon::give_back_missing();
      break;
    case Step::shrink_caches: {
      bytes = innodb::write_full_text_caches(worth_writing_bytes).value_or(0);
      const uint64_t before = pools::counters(Pool::table_cache).live_bytes;
      close_unused_tables();
      const uint64_t after = pools::counters(Pool::table_cache).live_bytes;
      if (after < before) bytes += before - after;
      self->giving.note_shrunk(bytes);
      break;
    }
    case Step::none:
    case Step::end_statement:
      break;
  }
  note_parked_total();
  if (next.of_credit) return false;
  (void)account.read(monotonic_us());
  if (bytes == 0) return false;
  finish(&done, now_us, bytes);
  note(done);
  return !gives_back;
}

/** Blocks that end with their statements, transactions and sessions, as far as
they were touched. */
uint64_t bytes_of_clients() {
  uint64_t sum = 0;
  for (size_t i = 0; i < pool_count; ++i)
    if (const auto pool = static_cast<Pool>(i); !outlives_clients(pool))
      sum += pools::counters(pool).live_bytes;
  const auto promised =
      static_cast<uint64_t>(std::max<int64_t>(account.promised_bytes(), 0));
  return sum - std::min(sum, promised);
}

/** The server needs so much with the buffer pool's floor and without its
clients, and the reserve does not fit below the target beside that. Empty: it
does, or that is not known.
Caller holds `round`: nothing is parked meanwhile. @throws std::bad_alloc */
Reading need_beyond_target() {
  const Marks marks = account.marks();
  const int64_t fits = marks.target_bytes - marks.reserve_bytes;
  const uint64_t floor = balloon::floor_bytes();
  const auto has_room = [&](const Reading &present) {
    return account.kept_bytes() +
               missing_of_floor(floor, present, marks.plenty_bytes) <=
           fits;
  };
  if (!acts() || account.level() == Level::unknown || has_room(0))
    return std::nullopt;
  // The giver would do so next. jemalloc counts pages as unused that were never
  // written, so it does not tell what that gives.
  uint64_t unused_sum;
  const std::array<uint64_t, pool_count> unused = unused_bytes(&unused_sum);
  for (size_t i = 0; i < pool_count; ++i)
    if (unused[i] != 0)
      (void)purging::purge(static_cast<Pool>(i), Purge_reason::pressure);
  (void)account.read(monotonic_us());
  // To ask for the pages of a large buffer pool takes long.
  if (has_room(0)) return std::nullopt;
  const Reading present = regions::resident_bytes(Region_kind::buffer_pool);
  if (has_room(present)) return std::nullopt;
  const uint64_t frames = locked_in_memory ? 0 : balloon::parkable_bytes();
  const Reading need = sum(
      needed_at_rest(account.kept_bytes(),
                     {frames_give(frames, present, balloon::staying_bytes()),
                      bytes_of_clients()}),
      static_cast<uint64_t>(
          missing_of_floor(floor, present, marks.plenty_bytes)));
  return need && static_cast<int64_t>(*need) > fits ? need : std::nullopt;
}

/** Caller holds `round`. @throws std::bad_alloc */
void promise_floor(State *self) {
  if (!acts()) return account.promise(-self->floor.forget());
  const uint64_t floor = balloon::floor_bytes();
  const uint64_t parked = balloon::parked_bytes();
  const uint64_t began_us = monotonic_us();
  if (!self->at_work || !self->floor.is_due(floor, parked, began_us)) return;
  const Reading present = regions::resident_bytes(Region_kind::buffer_pool);
  const uint64_t now_us = monotonic_us();
  account.promise(self->floor.see(floor, parked, present,
                                  account.marks().plenty_bytes, now_us,
                                  now_us - began_us));
}

/** A shutdown has killed the clients, and most statements have ended. A thread
that waits still has asked for a block that cannot be refused. It would wait
longer than systemd or Kubernetes, which send SIGKILL after SIGTERM. Caller
holds `round`. */
bool clients_had_time(State *self, uint64_t now_us) {
  if (get_server_state() != SERVER_SHUTTING_DOWN) return false;
  if (!self->shutdown_us) self->shutdown_us = now_us;
  return now_us - *self->shutdown_us >= longest_ask_us;
}

}  // namespace

void call_giver() {
  if (!giver_is_called.exchange(true, std::memory_order_relaxed))
    state().worker.wake();
}

bool round(State *self) {
  if (self->round_wanted.load() != 0) return false;
  const std::unique_lock<std::mutex> lock(self->round, std::try_to_lock);
  if (!lock.owns_lock() || mode.load() == Target::off) return false;
  bool again = false;
  const uint64_t ended = counters.ended;
  try {
    const uint64_t now_us = monotonic_us();
    refresh_limits(self, now_us);
    if (account.read(now_us))
      say_known(self);
    else if (account.level() == Level::unknown) {
      say_unknown(self, false, "the kernel's figures cannot be read");
      // The group may have been made anew, under the same name.
      self->kept_file.clear();
    }
    let_threads_wait(self->at_work && acts() &&
                     !clients_had_time(self, now_us));
    let_threads_ask(self->at_work && acts() &&
                    account.level() >= Level::yellow);
    if (self->kills_due) kill_again(self);
    see_loose_blocks();
    promise_floor(self);
    if (self->waiters.load(std::memory_order_relaxed) != 0) learn(self);
    again = take_step(self, now_us);
  } catch (const std::bad_alloc &) {
    // The next round tries again.
  }
  const uint64_t ended_us = monotonic_us();
  self->round_us.store(ended_us, std::memory_order_relaxed);
  rounds.end_one(account.level() != Level::red || counters.ended != ended);
  if ((self->waiters.load(std::memory_order_relaxed) != 0 &&
       account.left_for_beginners_bytes() >= account.marks().reserve_bytes) ||
      ended_us - self->woken_us >= wake_us) {
    self->woken_us = ended_us;
    mysql_mutex_lock(&self->mutex);
    mysql_cond_broadcast(&self->changed);
    mysql_mutex_unlock(&self->mutex);
  }
  return again;
}

/** In parts: who sets another target waits for `round`. */
void give_back_while_off(State *self) {
  constexpr uint64_t part_bytes = 4 << 20;
  // A thread that had found memory short before may have let them.
  let_threads_ask(false);
  while (mode.load() == Target::off) {
    if (self->round_wanted.load() != 0) {
      pause_us(1'000);
      continue;
    }
    const std::lock_guard<std::mutex> guard(self->round);
    const uint64_t bytes = balloon::give_back(part_bytes);
    note_parked_total();
    if (bytes == 0) return;
  }
}

void run(Worker *worker) {
  my_thread_init();
  State &self = state();
  uint64_t wait_ms = 0;
  Rest rest;
  do {
    giver_is_called.store(false, std::memory_order_relaxed);
    if (mode.load() == Target::off) {
      give_back_while_off(&self);
      wait_ms = 0;
      continue;
    }
    // Rounds without a pause would starve those that hold the lists' mutexes.
    int gave = 0;
    while (gave < 64 && round(&self)) ++gave;
    const uint64_t look_ms =
        account.level() == Level::unknown
            ? limits_age_us / 1000
            : next_look_us(account.left_bytes(), account.marks()) / 1000;
    wait_ms = rest.next_ms(gave != 0, look_ms);
  } while (worker->wait_ms(wait_ms));
  my_thread_end();
}

void look_at_limits(State *self) {
  const uint64_t now_us = monotonic_us();
  const auto look = [self, now_us] {
    self->limits_us.reset();
    refresh_limits(self, now_us);
  };
  self->need_beyond_target.reset();
  look();
  (void)account.read(now_us);
  self->need_beyond_target = need_beyond_target();
  if (self->need_beyond_target) look();
}

int set_at_work(State *self, bool at_work) {
  if (at_work == self->at_work) return 0;
  if (at_work) {
    if (const int error = switch_on(self->owner); error != 0) return error;
    statement_gate::set(self->gate);
  } else {
    statement_gate::set(nullptr);
    switch_off();
    account.promise(-self->floor.forget());
    set_spills(self, false);
  }
  self->at_work = at_work;
  return 0;
}

void give_all_back() {
  (void)balloon::give_back(UINT64_MAX);
  note_parked_total();
}

}  // namespace memdiag::ceiling
