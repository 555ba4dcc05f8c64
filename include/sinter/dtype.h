// Dtype: the type of an array's elements. Generated from dtype.def, the only list of them.
#pragma once
#include <bit>
#include <complex>
#include <concepts>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <type_traits>

#include "sinter/error.h"

namespace sinter {

/// IEEE binary16, as stored. Arithmetic is the library's: convert to float to look at it.
struct Float16 {
  std::uint16_t bits = 0;
  friend bool operator==(Float16, Float16) = default;
};
/// bfloat16 (the upper half of a float32), as stored.
struct BFloat16 {
  std::uint16_t bits = 0;
  friend bool operator==(BFloat16, BFloat16) = default;
};

enum class Dtype : std::uint8_t {
#define DTYPE(name, text, type, kind, bytes) name,
#include "sinter/dtype.def"
#undef DTYPE
};
#define DTYPE(name, text, type, kind, bytes) inline constexpr Dtype name = Dtype::name;
#include "sinter/dtype.def"
#undef DTYPE

/// The kinds, each of which contains those before it for promotion.
enum class Kind : std::uint8_t { Bool, Unsigned, Signed, Floating, Complex };

struct DtypeInfo {
  const char* name;
  Kind kind;
  int bytes;  // of one element
};
inline constexpr DtypeInfo kDtypes[] = {
#define DTYPE(name, text, type, kind, bytes) {text, Kind::kind, bytes},
#include "sinter/dtype.def"
#undef DTYPE
};
inline constexpr int kDtypeCount = static_cast<int>(sizeof kDtypes / sizeof kDtypes[0]);

constexpr const DtypeInfo& info(Dtype t) { return kDtypes[static_cast<int>(t)]; }
constexpr const char* name(Dtype t) { return info(t).name; }
constexpr Kind kind(Dtype t) { return info(t).kind; }
/// Bytes of one element.
constexpr int size_of(Dtype t) { return info(t).bytes; }
constexpr bool is_floating(Dtype t) { return kind(t) == Kind::Floating; }
constexpr bool is_complex(Dtype t) { return kind(t) == Kind::Complex; }
/// Signed or unsigned; bool is not an integer.
constexpr bool is_integer(Dtype t) { return kind(t) == Kind::Unsigned || kind(t) == Kind::Signed; }
constexpr bool is_signed(Dtype t) { return kind(t) == Kind::Signed; }
constexpr bool is_half(Dtype t) { return t == Dtype::float16 || t == Dtype::bfloat16; }

SINTER_API std::ostream& operator<<(std::ostream& out, Dtype t);

/// The dtype of `a op b`: bool < unsigned < signed < floating < complex; among integers the narrowest that holds both (uint64
/// with a signed type gives float32); float16 with bfloat16 gives float32.
SINTER_API Dtype promote_types(Dtype a, Dtype b);

namespace detail {

// Numbers only: no character types (so no text) and no pointers (so no silent pointer -> bool).
template <class T>
concept Arithmetic = std::is_arithmetic_v<T> && !std::same_as<T, char> && !std::same_as<T, wchar_t> && !std::same_as<T, char8_t> &&
                     !std::same_as<T, char16_t> && !std::same_as<T, char32_t>;
template <class T>
concept Element = Arithmetic<T> || std::same_as<T, Float16> || std::same_as<T, BFloat16> || std::same_as<T, std::complex<float>>;

// The dtype that stores a C++ type: by width, so that `long` and `long long` are both int64.
template <Element T>
constexpr Dtype dtype_of() {
  if constexpr (std::same_as<T, bool>)
    return Dtype::bool_;
  else if constexpr (std::same_as<T, Float16>)
    return Dtype::float16;
  else if constexpr (std::same_as<T, BFloat16>)
    return Dtype::bfloat16;
  else if constexpr (std::same_as<T, std::complex<float>>)
    return Dtype::complex64;
  else if constexpr (std::floating_point<T>)
    return sizeof(T) == 4 ? Dtype::float32 : Dtype::float64;
  else {
    constexpr int log = std::countr_zero(sizeof(T));  // 1, 2, 4, 8 bytes -> 0, 1, 2, 3
    return static_cast<Dtype>(static_cast<int>(std::signed_integral<T> ? Dtype::int8 : Dtype::uint8) + log);
  }
}

}  // namespace detail
}  // namespace sinter
