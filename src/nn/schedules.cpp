// Schedules of the learning rate. Layer: nn.
#include <algorithm>
#include <numbers>

#include "base/check.h"
#include "sinter/functions.h"
#include "sinter/optim.h"

namespace sinter::optim {
namespace {

Schedule make(Schedule::Kind kind, std::vector<double> numbers, std::vector<Schedule> parts = {}) {
  Schedule s;
  s.kind = kind;
  s.numbers = std::move(numbers);
  s.parts = std::move(parts);
  return s;
}
double positive(const char* what, std::int64_t steps) {
  if (steps < 1) throw Error(str(what, ": the number of steps is not positive; got ", steps, "; use 1 or more"));
  return static_cast<double>(steps);
}

}  // namespace

Array Schedule::operator()(const Array& step) const {
  const Array t = astype(step, float32);
  const std::vector<double>& n = numbers;
  switch (kind) {
    case Kind::constant: return Array(n.empty() ? 0.0 : n[0]);
    case Kind::linear: return n[0] + minimum(t, n[2]) * ((n[1] - n[0]) / n[2]);
    case Kind::step: return n[0] * power(Array(n[1]), floor_divide(t, n[2]));
    case Kind::exponential: return n[0] * power(Array(n[1]), t);
    case Kind::cosine: return n[1] + (n[0] - n[1]) / 2 * (1 + cos(minimum(t, n[2]) * (std::numbers::pi / n[2])));
    case Kind::joined: break;
  }
  Array rate = parts[0](step);
  for (std::size_t i = 0; i < n.size(); ++i) rate = where(t < n[i], rate, parts[i + 1](step - static_cast<std::int64_t>(n[i])));
  return rate;
}

Schedule linear_schedule(double init, double end, std::int64_t steps) {
  return make(Schedule::Kind::linear, {init, end, positive("linear_schedule", steps)});
}
Schedule step_decay(double init, double rate, std::int64_t every) {
  return make(Schedule::Kind::step, {init, rate, positive("step_decay", every)});
}
Schedule exponential_decay(double init, double rate) { return make(Schedule::Kind::exponential, {init, rate}); }
Schedule cosine_decay(double init, std::int64_t steps, double end) {
  return make(Schedule::Kind::cosine, {init, end, positive("cosine_decay", steps)});
}
Schedule join_schedules(std::vector<Schedule> parts, const std::vector<std::int64_t>& boundaries) {
  if (parts.size() != boundaries.size() + 1 ||
      std::adjacent_find(boundaries.begin(), boundaries.end(), std::greater_equal<>()) != boundaries.end())
    throw Error(str("join_schedules: the boundaries do not fit the parts; got ", boundaries.size(), " for ", parts.size(),
                    "; give one between any two, in ascending order"));
  return make(Schedule::Kind::joined, {boundaries.begin(), boundaries.end()}, std::move(parts));
}
Schedule warm_up(std::int64_t steps, const Schedule& then) {
  return join_schedules({linear_schedule(0, then(Array(0)).item<double>(), steps), then}, {steps});
}

}  // namespace sinter::optim
