#include "plugin/memdiag/server/threads/meters.h"

#include <mysql/psi/mysql_metric.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "mysys/memdiag/base/clock.h"
#include "plugin/memdiag/history/history.h"
#include "plugin/memdiag/history/limits.h"
#include "plugin/memdiag/history/trend.h"
#include "plugin/memdiag/host/kernel_file.h"
#include "plugin/memdiag/host/kernel_text.h"
#include "plugin/memdiag/ledger/ledger_reader.h"
#include "plugin/memdiag/server/bridge/buffer_pool_pages.h"
#include "plugin/memdiag/tables/meter_list.h"
#include "sql/mysqld.h"
#include "sql/mysqld_cs.h"

namespace memdiag::meters {
namespace {

/** Longer than a consumer takes for all metrics. */
constexpr uint64_t round_us = 500'000;

/** What a sample would have now, without its trend. */
History_row read_process(const limits::Figures &limits) {
  std::string text;
  if (kernel_file::read("/proc/self/status", &text) != 0) text.clear();
  History_row row{};
  row.rss_bytes = kernel_text::amount_of(text, "VmRSS");
  row.rss_peak_bytes = kernel_text::amount_of(text, "VmHWM");
  row.limit_bytes = limits.limit_bytes;
  return row;
}

Readings take_readings() {
  Readings readings;
  const std::optional<Snapshot> taken = try_take_snapshot();
  if (taken) {
    readings.pools = taken->pools;
    // The ledger is made from figures of the present.
    readings.ledger =
        ledger::reader()
            .take(*taken, buffer_pool_pages(), ledger::Precision::cheap)
            .rows;
  } else if (const auto last = last_snapshot()) {
    readings.pools = last->pools;
  }
  const uint64_t now_us = clock_us(CLOCK_REALTIME);
  history_rows(history::this_run(now_us - trend_us),
               [&readings](const History_row &row) {
                 readings.sample = row;
                 return true;
               });
  readings.limits = limits::now(round_us);
  readings.ceiling = ceiling::figures();
  if (!readings.sample || !is_of_now(readings.sample->time_us, now_us))
    readings.sample = read_process(readings.limits);
  return readings;
}

/** The readings of the round that goes on; nullptr: there are none. */
std::shared_ptr<const Readings> recent_readings() {
  static std::mutex mutex;
  static std::shared_ptr<const Readings> last;
  static uint64_t taken_us = 0;
  static bool is_being_read = false;

  const uint64_t now_us = clock_us(CLOCK_MONOTONIC);
  {
    const std::lock_guard<std::mutex> guard(mutex);
    const uint64_t age_us = now_us - taken_us;
    if (last && age_us < round_us) return last;
    if (is_being_read) return age_us < max_age_us ? last : nullptr;
    is_being_read = true;
  }
  std::shared_ptr<const Readings> readings;
  try {
    readings = std::make_shared<const Readings>(take_readings());
  } catch (const std::bad_alloc &) {
    // The next round tries again.
  }
  const std::lock_guard<std::mutex> guard(mutex);
  is_being_read = false;
  last = readings;
  taken_us = clock_us(CLOCK_MONOTONIC);
  return readings;
}

/** Hands values to the consumer. */
class Delivery final : public Sink {
 public:
  Delivery(measurement_delivery_callback_t consumer, void *context)
      : m_consumer(consumer), m_context(context) {}

  void add(int64_t value, Attributes attributes) override {
    deliver(value, attributes, m_consumer->value_int64,
            m_consumer->value_int64_attrs);
  }

  void add(double value, Attributes attributes) override {
    deliver(value, attributes, m_consumer->value_double,
            m_consumer->value_double_attrs);
  }

 private:
  static constexpr size_t max_attributes = 3;

  template <typename Value, typename Alone, typename With_attributes>
  void deliver(Value value, Attributes attributes, Alone alone,
               With_attributes with_attributes) {
    const char *names[max_attributes];
    const char *values[max_attributes];
    if (const size_t count = split(attributes, names, values); count != 0)
      with_attributes(m_context, value, names, values, count);
    else
      alone(m_context, value);
  }

  /** An attribute without a value is left out. */
  static size_t split(Attributes attributes, const char **names,
                      const char **values) {
    size_t count = 0;
    for (const Attribute &attribute : attributes) {
      if (count == max_attributes || *attribute.value == '\0') continue;
      names[count] = attribute.name;
      values[count++] = attribute.value;
    }
    return count;
  }

  const measurement_delivery_callback_t m_consumer;
  void *const m_context;
};

void measure(void *metric, measurement_delivery_callback_t consumer,
             void *context) {
  if (get_server_state() != SERVER_OPERATING) return;
  const auto readings = recent_readings();
  if (!readings) return;
  Delivery delivery(consumer, context);
  static_cast<const Metric *>(metric)->measure(*readings, &delivery);
}

constexpr MetricOTELType otel_type(Kind kind) {
  switch (kind) {
    case Kind::counter:
      return ASYNC_COUNTER;
    case Kind::up_down_counter:
      return ASYNC_UPDOWN_COUNTER;
    case Kind::gauge:
      return ASYNC_GAUGE_COUNTER;
  }
  return ASYNC_GAUGE_COUNTER;
}

PSI_metric_info_v1 info_of(const Metric &metric) {
  return {metric.name,
          metric.unit,
          metric.description,
          otel_type(metric.kind),
          metric.is_double ? METRIC_DOUBLE : METRIC_INTEGER,
          0,
          0,
          measure,
          const_cast<Metric *>(&metric)};
}

template <size_t... i>
auto make_infos(std::index_sequence<i...>) {
  return std::array<PSI_metric_info_v1, sizeof...(i)>{info_of(metrics[i])...};
}

/** Performance Schema writes keys into it. */
PSI_meter_info_v1 &meter() {
  static auto infos = make_infos(std::make_index_sequence<metrics.size()>{});
  static PSI_meter_info_v1 meter{
      meter_name, meter_description, 10, 0, 0, infos.data(), infos.size(),
  };
  return meter;
}

}  // namespace

void register_them() { mysql_meter_register(&meter(), 1); }

void unregister_them() { mysql_meter_unregister(&meter(), 1); }

}  // namespace memdiag::meters
