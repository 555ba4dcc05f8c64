// Batches: rows gathered on the host, by another thread where asked for. Layer: nn.
#include "sinter/data.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <mutex>
#include <numeric>
#include <thread>

#include "base/check.h"
#include "engine/value.h"
#include "sinter/random.h"

namespace sinter::data {

namespace {
std::vector<std::int64_t> ascending(std::int64_t n) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  return order;
}
std::vector<std::int64_t> shuffled(std::int64_t n, const Array& key) {
  const std::vector<std::uint32_t> order = random::permutation(n, key).to_vector<std::uint32_t>();
  return {order.begin(), order.end()};
}
}  // namespace

// Arrays by rows, in memory that they keep.
struct Batches::Source {
  std::vector<Array> arrays;  // evaluated, row-major
  std::int64_t n = 0, size = 0;
  BatchOptions options;

  std::int64_t count() const { return options.drop_last ? n / size : (n + size - 1) / size; }

  std::vector<Array> gather(std::span<const std::int64_t> rows) const {
    std::vector<Array> batch;
    for (const Array& a : arrays) {
      const sinter::detail::Value& v = *a.get();
      const std::size_t width = static_cast<std::size_t>(a.nbytes() / std::max<std::int64_t>(n, 1));
      const char* from = static_cast<const char*>(v.buffer.data()) + static_cast<std::size_t>(v.layout.offset * size_of(v.dtype));
      runtime::BufferRef to = runtime::allocate(rows.size() * width);
      char* at = static_cast<char*>(to.data());
      for (std::int64_t row : rows) {
        std::memcpy(at, from + static_cast<std::size_t>(row) * width, width);
        at += width;
      }
      Shape shape = v.shape;
      shape[0] = rows.size();
      batch.push_back(engine::make_ready(std::move(to), {0, graph::row_major(shape)}, v.dtype, shape));
    }
    return batch;
  }
};

struct Batches::Epoch::State {
  std::shared_ptr<const Source> source;
  std::vector<std::int64_t> order;
  std::int64_t given = 0;  // batches

  // Of the other thread, where there is one.
  std::thread worker;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::vector<Array>> ready;
  std::exception_ptr failure;
  bool stop = false;

  ~State() {
    if (!worker.joinable()) return;
    {
      std::lock_guard lock(mutex);
      stop = true;
    }
    changed.notify_all();
    worker.join();
  }
  std::vector<Array> make(std::int64_t i) const {
    const std::int64_t first = i * source->size, last = std::min(first + source->size, source->n);
    return source->gather(std::span(order).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first)));
  }
  void work() noexcept {
    for (std::int64_t i = 0; i < source->count(); ++i) {
      std::vector<Array> batch;
      std::exception_ptr thrown;
      try {
        batch = make(i);
      } catch (...) {
        thrown = std::current_exception();
      }
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return stop || static_cast<int>(ready.size()) < source->options.prefetch; });
      if (stop) return;
      failure = thrown;
      ready.push_back(std::move(batch));
      changed.notify_all();
      if (thrown) return;
    }
  }
};

Batches::Batches(std::vector<Array> arrays, std::int64_t size, const BatchOptions& options) {
  if (size < 1) throw Error(str("Batches: the size is not positive; got ", size, "; use 1 or more"));
  if (arrays.empty()) throw Error("Batches: there are no arrays; got none; give one or more");
  auto source = std::make_shared<Source>();
  for (const Array& a : arrays) {
    if (a.ndim() == 0) throw ShapeError("Batches: an array has no axes; got shape (); give it a first axis, that of the elements");
    if (a.shape(0) != arrays[0].shape(0))
      throw ShapeError(str("Batches: the first axes differ; got ", arrays[0].shape(), " and ", a.shape(), "; make them equal"));
  }
  engine::evaluate(arrays, "Batches");
  for (const Array& a : arrays) source->arrays.push_back(engine::contiguous(a));
  source->n = arrays[0].shape(0);
  source->size = size;
  source->options = options;
  source_ = std::move(source);
}
std::int64_t Batches::count() const { return source_->count(); }
std::int64_t Batches::size() const { return source_->n; }

Batches::Epoch Batches::start(std::vector<std::int64_t> order) const {
  auto state = std::make_shared<Epoch::State>();
  state->source = source_;
  state->order = std::move(order);
  if (source_->options.prefetch > 0) state->worker = std::thread([s = state.get()] { s->work(); });
  return Epoch(std::move(state));
}
Batches::Epoch Batches::epoch(const Array& key) const {
  return start(source_->options.shuffle ? shuffled(source_->n, key) : ascending(source_->n));
}
Batches::Epoch Batches::in_order() const { return start(ascending(source_->n)); }

bool Batches::Epoch::next(std::vector<Array>& batch) {
  State& s = *state_;
  if (s.given == s.source->count()) return false;
  if (!s.worker.joinable()) {
    batch = s.make(s.given++);
    return true;
  }
  std::unique_lock lock(s.mutex);
  s.changed.wait(lock, [&s] { return !s.ready.empty(); });
  if (s.failure && s.ready.size() == 1) std::rethrow_exception(s.failure);
  batch = std::move(s.ready.front());
  s.ready.pop_front();
  ++s.given;
  s.changed.notify_all();
  return true;
}

}  // namespace sinter::data
