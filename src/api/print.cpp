// How arrays print. Layer: api.
#include <charconv>
#include <cmath>
#include <iostream>
#include <mutex>

#include "api/common.h"
#include "base/fork_mutex.h"
#include "sinter/io.h"

namespace sinter {
namespace {

struct Options {
  ForkMutex mutex{LockRank::Leaf};
  PrintOptions value;
};
Options& options() {
  static Options& o = *new Options;
  return o;
}
[[maybe_unused]] const auto& made_at_load = options();  // see ForkMutex

// Walks the elements that are shown, where they lie, and appends them: a view may show more elements than fit any memory.
class Printer {
 public:
  Printer(const Array& x, const PrintOptions& o) : x_(x), v_(*x.get()), o_(o), bytes_(size_of(x.dtype())) {}

  std::string print() {
    text_ = "array(";
    if (x_.ndim() == 0)
      element(v_.layout.offset);
    else
      axis(0, v_.layout.offset);
    return text_ + ", dtype=" + name(x_.dtype()) + ")";
  }

 private:
  // One axis from the element at `first` of the buffer on.
  void axis(std::size_t dim, std::int64_t first) {
    const std::int64_t n = x_.shape()[dim], step = v_.layout.strides[dim];
    const bool last = dim + 1 == x_.shape().size(), cut = n > o_.threshold && n > 2 * static_cast<std::int64_t>(o_.edgeitems);
    text_ += '[';
    for (std::int64_t i = 0; i < n; ++i) {
      if (i > 0) text_ += last ? ", " : ",\n" + std::string(7 + dim, ' ');
      if (cut && i == o_.edgeitems) {
        text_ += "...";
        i = n - o_.edgeitems - 1;
      } else if (last) {
        element(first + i * step);
      } else {
        axis(dim + 1, first + i * step);
      }
    }
    text_ += ']';
  }

  void element(std::int64_t i) {
    const void* at = static_cast<const char*>(v_.buffer.data()) + i * bytes_;
    const Dtype t = x_.dtype();
    char digits[32];
    if (t == Dtype::bool_) {
      text_ += *static_cast<const unsigned char*>(at) != 0 ? "true" : "false";
    } else if (is_integer(t)) {
      std::uint64_t v = 0;
      api::convert(at, t, &v, is_signed(t) ? Dtype::int64 : Dtype::uint64, 1);
      const auto end = is_signed(t) ? std::to_chars(digits, digits + sizeof digits, static_cast<std::int64_t>(v))
                                    : std::to_chars(digits, digits + sizeof digits, v);
      text_.append(digits, end.ptr);
    } else if (is_complex(t)) {
      const float* parts = static_cast<const float*>(at);
      real(parts[0]);
      if (!std::signbit(parts[1]) || std::isnan(parts[1])) text_ += '+';
      real(parts[1]);
      text_ += 'j';
    } else {
      double v = 0;
      api::convert(at, t, &v, Dtype::float64, 1);
      real(v);
    }
  }

  void real(double v) {
    if (std::isnan(v)) {
      text_ += "nan";
      return;
    }
    char digits[512];
    text_.append(digits, std::to_chars(digits, digits + sizeof digits, v, std::chars_format::general, o_.precision).ptr);
  }

  const Array& x_;
  const detail::Value& v_;
  const PrintOptions o_;
  const std::int64_t bytes_;
  std::string text_;
};

}  // namespace

void set_printoptions(const PrintOptions& o) {
  if (o.precision < 1 || o.precision > 100 || o.threshold < 0 || o.edgeitems < 0) {
    throw Error(str("set_printoptions: an option is out of range; got precision ", o.precision, ", threshold ", o.threshold, ", edgeitems ",
                    o.edgeitems, "; use a precision of 1 to 100, and 0 or more for the others"));
  }
  std::lock_guard lock(options().mutex);
  options().value = o;
}

PrintOptions get_printoptions() {
  std::lock_guard lock(options().mutex);
  return options().value;
}

std::string to_string(const Array& x) {
  if (!x.valid()) return "array(unset)";
  engine::evaluate({&x, 1}, "print");
  return Printer(x, get_printoptions()).print();
}

std::ostream& operator<<(std::ostream& out, const Array& x) { return out << to_string(x); }

void print(const Array& x) { std::cout << to_string(x) << '\n'; }

}  // namespace sinter
