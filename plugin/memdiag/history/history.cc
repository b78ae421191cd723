#include "plugin/memdiag/history/history.h"

#include "mysys/memdiag/base/worker.h"

namespace memdiag::history {

unsigned interval_ms = 1000;
unsigned capacity = 3600;

namespace {

/** Never destroyed: the server may exit while the thread runs. */
struct State {
  Worker worker;
  Recorder recorder;
};
State &state() {
  static State *const instance = new State;
  return *instance;
}

void run(Worker *worker) {
  Recorder &recorder = state().recorder;
  unsigned wait_ms;
  do {
    wait_ms = recorder.tick(__atomic_load_n(&interval_ms, __ATOMIC_RELAXED));
  } while (worker->wait_ms(wait_ms));
  // The last sample, whatever the interval.
  (void)recorder.tick(1);
}

}  // namespace

Started start(const std::string &path, uint32_t version, uint64_t server,
              Largest_session largest_session, Warn warn,
              Log_buffer log_buffer) {
  State &self = state();
  return {self.recorder.open(path, version, server, capacity, largest_session,
                             warn, log_buffer),
          self.worker.start("memdiag_history", run)};
}

void stop() {
  State &self = state();
  self.worker.stop();
  self.recorder.close();
}

void end() noexcept { state().recorder.end(); }

void interval_changed() { state().worker.wake(); }

std::vector<black_box::Sample> this_run(uint64_t since_us) {
  return state().recorder.this_run(since_us);
}

Former_runs former_runs() { return state().recorder.former_runs(); }

}  // namespace memdiag::history
