#include "plugin/memdiag/server/threads/ceiling.h"

#include <atomic>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "mutex_lock.h"
#include "my_sys.h"
#include "plugin/memdiag/base/reason.h"
#include "plugin/memdiag/server/bridge/error_log.h"
#include "plugin/memdiag/server/threads/ceiling_state.h"
#include "plugin/memdiag/server/threads/kept_programs.h"

namespace memdiag::ceiling {

char *wish = nullptr;

namespace {

constexpr Owner owner{.call_giver = call_giver,
                      .is_large = is_large,
                      .client_is_idle = client_is_idle,
                      .session_begins = new_session,
                      .is_parsing = is_parsing,
                      .is_in_parser = is_in_parser,
                      .is_before_parser = is_before_parser,
                      .never_waits = never_waits,
                      .replica_block = replica_block,
                      .text_comes = text_comes,
                      .goes_on = goes_on,
                      .has_account = has_account,
                      .nobody_waits = nobody_waits,
                      .longest_wait_us = wait_us,
                      .leaves_lock = leaves_lock,
                      .takes_lock = takes_lock,
                      .is_killed = is_killed,
                      .keeps_value = keeps_value,
                      .drops_of_values = drops_of_values,
                      .is_executing = is_executing,
                      .writes_for_good = writes_for_good,
                      .ends_at_once = ends_at_once,
                      .transaction = transaction,
                      .must_succeed = must_succeed,
                      .holds_lock = holds_lock,
                      .breaks_off = breaks_off,
                      .gives_up = gives_up,
                      .refused = refused,
                      .went_on = went_on};

}  // namespace

std::string doubt() try {
  const Reading need = state().need_beyond_target;
  if (!need) return "";
  const Marks marks = account.marks();
  return "memdiag_memory_target: the server stays below " +
         std::to_string(marks.target_bytes) + " bytes, and needs " +
         std::to_string(*need) + " bytes at rest and " +
         std::to_string(marks.reserve_bytes) +
         " for a statement. Large statements run one at a time, and may end. "
         "Raise the target or the limit, or lower innodb_buffer_pool_size";
} catch (const std::bad_alloc &) {
  return "";
}

bool is_target(std::string_view text) { return parse_target(text).has_value(); }

void start() {
  started = true;
  kept_programs::begin();
  register_stage();
  const std::string text = wish == nullptr ? "" : wish;
  std::string wrong;
  if (!is_target(text))
    wrong = '\'' + text +
            "' is neither OFF, WATCH, AUTO nor a number of bytes from 16M on, "
            "which K, M, G or T may follow";
  else if (const int error = changed(text); error != 0)
    wrong = "error " + reason(error);
  if (!wrong.empty()) {
    static char off[] = "OFF";  // SET does not free what a start has set
    wish = off;
    error_log::warn("memdiag_memory_target stays OFF: " + wrong);
  } else if (const std::string text_of_doubt = doubt(); !text_of_doubt.empty())
    error_log::warn(text_of_doubt);
}

int changed(std::string_view text) {
  const std::optional<Target> target = parse_target(text);
  if (!started || !target) return 0;
  if (target->mode == Target::off && mode.load() == Target::off) return 0;
  State &self = state();
  wanted_bytes.store(target->target_bytes);
  if (target->mode != Target::off && mode.load() == Target::off) {
    const int error = self.worker.start("memdiag_ceiling", run);
    if (error != 0 && error != EALREADY) return error;
  }
  {
    const Between_rounds guard(&self);
    self.owner = &owner;
    self.gate = &gate;
    mode.store(target->mode);
    counters.on.store(target->mode != Target::off);
    counters.acts.store(acts());
    if (target->mode == Target::off) {
      (void)set_at_work(&self, false);
      self.need_beyond_target.reset();
      self.said_frames_stay = false;
    } else {
      try {
        look_at_limits(&self);
      } catch (const std::bad_alloc &) {
        // The giver tries again.
      }
    }
  }
  self.worker.wake();
  return 0;
}

void stop() {
  if (!started.exchange(false)) return;
  mode.store(Target::off);
  State &self = state();
  {
    const Between_rounds guard(&self);
    (void)set_at_work(&self, false);
  }
  self.worker.stop();
  const Between_rounds guard(&self);
  give_all_back();
}

std::vector<Row> actions() {
  // To allocate may be to wait for memory. The giver needs the mutex.
  const auto copy = std::make_unique<Log>();
  {
    MUTEX_LOCK(locked, &state().mutex);
    *copy = state().log;
  }
  return copy->rows();
}

}  // namespace memdiag::ceiling
