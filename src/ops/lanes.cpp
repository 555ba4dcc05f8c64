// The primitives in C++: one definition each, over the C++ type of a machine dtype. Layer: ops.
#include "ops/lanes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

namespace sinter::ops {
namespace {

using Word = std::uint64_t;

template <class T>
T load(Word w) {
  if constexpr (std::is_same_v<T, bool>)
    return w != 0;
  else if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<float>(static_cast<std::uint32_t>(w));
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<double>(w);
  else
    return static_cast<T>(w);
}
template <class T>
Word store(T v) {
  if constexpr (std::is_same_v<T, float>)
    return std::bit_cast<std::uint32_t>(v);
  else if constexpr (std::is_same_v<T, double>)
    return std::bit_cast<Word>(v);
  else if constexpr (std::is_same_v<T, bool>)
    return v ? 1 : 0;
  else
    return static_cast<std::make_unsigned_t<T>>(v);
}

template <class T>
struct Tag {
  using type = T;
};
// Calls f(Tag<T>) with the C++ type of a machine dtype.
template <class F>
void with_type(Dtype t, F f) {
  switch (t) {
#define DTYPE(name, text, type, kind, bytes)                         \
  case Dtype::name:                                                  \
    if constexpr (std::is_arithmetic_v<type>) return f(Tag<type>{}); \
    break;
#include "sinter/dtype.def"
#undef DTYPE
  }
  throw InternalError(str("internal: ", t, " is not a machine dtype"));
}

// What a primitive is not defined for. A fault of ours: math.h and expand.cpp guard.
[[noreturn]] void unguarded(const char* what) { throw InternalError(str("internal: a primitive has an unguarded operand: ", what)); }

// Integers compute in 64 unsigned bits and wrap when stored; the narrow operands are sign- or zero-extended by load.
template <class T, class F>
T wrap(T a, T b, F f) {
  return static_cast<T>(f(static_cast<Word>(a), static_cast<Word>(b)));
}

std::uint16_t half_of(float v) {
  const auto bits = std::bit_cast<std::uint32_t>(v);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t magnitude = bits & 0x7fffffff;
  if (magnitude > 0x7f800000) return static_cast<std::uint16_t>(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));  // NaN: quiet, upper payload
  if (magnitude >= 0x47800000) return sign | 0x7c00;                                                         // 2^16 and more
  if (magnitude < 0x38800000) {
    // Below 2^-14 the unit is 2^-24: adding 0.5, whose unit in float32 is 2^-24, rounds there. Ties go to even.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5F;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(rounded) - 0x3f000000));
  }
  const std::uint32_t rounded = magnitude + 0xfff + (magnitude >> 13 & 1) - (112U << 23);  // a carry may reach infinity, rightly
  return static_cast<std::uint16_t>(sign | rounded >> 13);
}

float value_of_half(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000) << 16;
  const std::uint32_t magnitude = bits & 0x7fff;
  if (magnitude >= 0x7c00) return std::bit_cast<float>(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  if (magnitude >= 0x400) return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
  const float value = static_cast<float>(magnitude) * 0x1p-24F;
  return sign != 0 ? -value : value;
}

template <class To, class From>
To convert_to(From v) {
  if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    const From whole = std::trunc(v);
    // 2^digits is exact in From; the minimum too.
    if (!(whole >= static_cast<From>(std::numeric_limits<To>::min()) && whole < std::ldexp(From(1), std::numeric_limits<To>::digits)))
      unguarded("convert out of range");
    return static_cast<To>(whole);
  } else {
    return static_cast<To>(v);
  }
}

template <class T>
T divide(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    if (b == 0 || (std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min())) unguarded("div");
  }
  return static_cast<T>(a / b);
}

template <class T>
int amount(T b) {
  if (b < 0 || b >= static_cast<T>(8 * sizeof(T))) unguarded("shift");
  return static_cast<int>(b);
}

template <class T>
T scale(T a, T b) {
  constexpr T kLimit = 4 * (std::numeric_limits<T>::max_exponent - 1);
  if (std::isnan(b)) return b;
  if (std::abs(b) > kLimit || b != std::rint(b)) unguarded("scale");
  return std::ldexp(a, static_cast<int>(b));
}

// `first_of_equals` matters for zeros alone, which differ in sign.
template <class T>
T max_or_min(T a, T b, bool first, bool first_of_equals) {
  if (std::isnan(a)) return a;
  return first || (a == b && first_of_equals) ? a : b;
}

// x = m 2^e, 3/4 <= m < 3/2.
struct Parts {
  float exponent, mantissa;
};
Parts parts_of(float x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (x == 0) return {-kInfinity, std::copysign(1.0F, x)};
  if (x == kInfinity) return {kInfinity, 1};
  if (!(x > 0)) {
    const float nan = x < 0 ? -std::numeric_limits<float>::quiet_NaN() : x;
    return {nan, nan};
  }
  int e = 0;
  const float m = std::frexp(x, &e);
  return m < 0.75F ? Parts{static_cast<float>(e - 1), 2 * m} : Parts{static_cast<float>(e), m};
}

}  // namespace

Val Lanes::make(Dtype dtype, std::size_t size) {
  slots_.push_back({words_.size(), size});
  words_.resize(words_.size() + size);
  return {this, static_cast<std::uint32_t>(slots_.size() - 1), dtype};
}

Val Lanes::constant(Dtype dtype, Word word) {
  const Val v = make(dtype, 1);
  with_type(dtype, [&](auto tag) { words_.back() = store(load<typename decltype(tag)::type>(word)); });
  return v;
}

Val Lanes::vector(Dtype dtype, std::span<const Word> words) {
  check(words.size() == static_cast<std::size_t>(lanes_), "Lanes::vector takes a word a lane");
  const Val v = make(dtype, words.size());
  with_type(dtype, [&](auto tag) {
    Word* out = words_.data() + slots_[v.id].start;
    for (const Word w : words) *out++ = store(load<typename decltype(tag)::type>(w));
  });
  return v;
}

Val Lanes::emit(Prim prim, Dtype result, std::span<const Val> operands) {
  std::size_t size = 1;
  for (const Val& v : operands) size = std::max(size, slots_[v.id].size);
  const Val made = make(result, size);
  Word* const out = words_.data() + slots_[made.id].start;
  if (prim == Prim::lookup) {
    const Word* const index = words_.data() + slots_[operands[0].id].start;
    for (std::size_t i = 0; i < size; ++i) out[i] = bits(operands[1 + index[i] % 16], 0);
    return made;
  }
  const Word* in[3] = {};
  std::size_t step[3] = {};
  for (std::size_t k = 0; k < operands.size(); ++k) {
    in[k] = words_.data() + slots_[operands[k].id].start;
    step[k] = slots_[operands[k].id].size == 1 ? 0 : 1;
  }
  const auto each1 = [&](auto tag, auto f) {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < size; ++i) out[i] = store(f(load<T>(in[0][i * step[0]])));
  };
  const auto each2 = [&](auto tag, auto f) {
    using T = typename decltype(tag)::type;
    for (std::size_t i = 0; i < size; ++i) out[i] = store(f(load<T>(in[0][i * step[0]]), load<T>(in[1][i * step[1]])));
  };
  // Words that are moved and not looked into.
  switch (prim) {
    case Prim::select:
      for (std::size_t i = 0; i < size; ++i) out[i] = in[0][i * step[0]] != 0 ? in[1][i * step[1]] : in[2][i * step[2]];
      return made;
    case Prim::bitcast:
      check(size_of(result) == size_of(operands[0].dtype), "bitcast keeps the width");
      for (std::size_t i = 0; i < size; ++i) out[i] = in[0][i * step[0]];
      return made;
    default: break;
  }
  with_type(operands[0].dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr bool kFloat = std::is_floating_point_v<T>;
    constexpr bool kInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;
    switch (prim) {
      case Prim::eq: return each2(tag, [](T a, T b) { return a == b; });
      case Prim::lt: return each2(tag, [](T a, T b) { return a < b; });
      case Prim::le: return each2(tag, [](T a, T b) { return a <= b; });
      case Prim::convert:
        return with_type(result, [&](auto to) {
          using To = typename decltype(to)::type;
          each1(tag, [](T a) { return convert_to<To>(a); });
        });
      default: break;
    }
    if constexpr (kFloat) {
      switch (prim) {
        case Prim::add: return each2(tag, [](T a, T b) { return a + b; });
        case Prim::sub: return each2(tag, [](T a, T b) { return a - b; });
        case Prim::mul: return each2(tag, [](T a, T b) { return a * b; });
        case Prim::div: return each2(tag, [](T a, T b) { return a / b; });
        case Prim::max: return each2(tag, [](T a, T b) { return max_or_min(a, b, a > b, std::signbit(b)); });
        case Prim::min: return each2(tag, [](T a, T b) { return max_or_min(a, b, a < b, std::signbit(a)); });
        case Prim::neg: return each1(tag, [](T a) { return -a; });
        case Prim::abs: return each1(tag, [](T a) { return std::abs(a); });
        case Prim::sqrt: return each1(tag, [](T a) { return std::sqrt(a); });
        case Prim::floor: return each1(tag, [](T a) { return std::floor(a); });
        case Prim::ceil: return each1(tag, [](T a) { return std::ceil(a); });
        case Prim::trunc: return each1(tag, [](T a) { return std::trunc(a); });
        case Prim::rint: return each1(tag, [](T a) { return std::nearbyint(a); });
        case Prim::scale: return each2(tag, [](T a, T b) { return scale(a, b); });
        case Prim::fma:
          for (std::size_t i = 0; i < size; ++i)
            out[i] = store(std::fma(load<T>(in[0][i * step[0]]), load<T>(in[1][i * step[1]]), load<T>(in[2][i * step[2]])));
          return;
        default: break;
      }
    }
    if constexpr (kInteger) {
      switch (prim) {
        case Prim::add: return each2(tag, [](T a, T b) { return wrap(a, b, [](Word x, Word y) { return x + y; }); });
        case Prim::sub: return each2(tag, [](T a, T b) { return wrap(a, b, [](Word x, Word y) { return x - y; }); });
        case Prim::mul: return each2(tag, [](T a, T b) { return wrap(a, b, [](Word x, Word y) { return x * y; }); });
        case Prim::div: return each2(tag, [](T a, T b) { return divide(a, b); });
        case Prim::rem: return each2(tag, [](T a, T b) { return static_cast<T>(a - divide(a, b) * b); });
        case Prim::shl: return each2(tag, [](T a, T b) { return static_cast<T>(static_cast<Word>(a) << amount(b)); });
        case Prim::shr: return each2(tag, [](T a, T b) { return static_cast<T>(a >> amount(b)); });
        default: break;
      }
    }
    if constexpr (!kFloat) {
      switch (prim) {
        case Prim::bit_and: return each2(tag, [](T a, T b) { return static_cast<T>(a & b); });
        case Prim::bit_or: return each2(tag, [](T a, T b) { return static_cast<T>(a | b); });
        case Prim::bit_xor: return each2(tag, [](T a, T b) { return static_cast<T>(a ^ b); });
        case Prim::bit_not:
          if constexpr (kInteger)
            return each1(tag, [](T a) { return static_cast<T>(~a); });
          else
            return each1(tag, [](T a) { return !a; });
        default: break;
      }
    }
    if constexpr (std::is_same_v<T, float>) {
      if (prim == Prim::f16_bits) return each1(tag, half_of);
      if (prim == Prim::exponent) return each1(tag, [](float x) { return parts_of(x).exponent; });
      if (prim == Prim::mantissa) return each1(tag, [](float x) { return parts_of(x).mantissa; });
    }
    if constexpr (std::is_same_v<T, std::uint16_t>) {
      if (prim == Prim::f16_value) return each1(tag, value_of_half);
    }
    throw InternalError(str("internal: no primitive ", static_cast<int>(prim), " on ", operands[0].dtype));
  });
  return made;
}

std::vector<Val> Lanes::loop(std::vector<Val> state, FunctionRef<Val(std::span<const Val>)> condition,
                             FunctionRef<std::vector<Val>(std::span<const Val>)> body) {
  // The state lives outside the arena between turns, so that what a turn makes can be released.
  const auto lanes = static_cast<std::size_t>(lanes_);
  std::vector<std::vector<Word>> values;
  for (const Val& v : state) values.emplace_back(words(v).begin(), words(v).end());
  const Mark start = mark();
  for (;;) {
    for (std::size_t k = 0; k < state.size(); ++k) {
      state[k] = make(state[k].dtype, values[k].size());
      std::copy(values[k].begin(), values[k].end(), words_.end() - static_cast<std::ptrdiff_t>(values[k].size()));
    }
    const Val active = condition(state);
    bool any = false;
    for (const Word w : words(active)) any = any || w != 0;
    if (!any) return state;
    const std::vector<Val> next = body(state);
    check(next.size() == state.size(), "a loop's body returns as many values as its state has");
    for (std::size_t k = 0; k < state.size(); ++k) {
      check(next[k].dtype == state[k].dtype, "a loop's state keeps its dtypes");
      if (!is_uniform(active) || !is_uniform(next[k])) values[k].resize(lanes, values[k][0]);
      for (std::size_t i = 0; i < values[k].size(); ++i) {
        const int lane = static_cast<int>(i);
        if (bits(active, lane) != 0) values[k][i] = bits(next[k], lane);
      }
    }
    release(start);
  }
}

}  // namespace sinter::ops
