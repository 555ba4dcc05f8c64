// What the spec tests share: texts of arrays and errors, comparison by bits.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <string>

#include "sinter/compile.h"
#include "sinter/sinter.h"

namespace spec {

using namespace sinter;

template <class T>
std::string text(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

/// The text of the exception of type E that f throws; "" when it throws none, and a failure when it throws another.
template <class E, class F>
std::string thrown(F f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

inline bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Equal dtype, shape and bits (NaNs are equal).
inline ::testing::AssertionResult same(const Array& a, const Array& b) {
  if (!a.valid() || !b.valid())
    return a.valid() == b.valid() ? ::testing::AssertionSuccess() : ::testing::AssertionFailure() << "one is unset";
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape()))
    return ::testing::AssertionFailure() << a.dtype() << a.shape() << " and " << b.dtype() << b.shape();
  if (array_equal(a, b, true).item<bool>()) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << a << " and " << b;
}

/// Compile is enabled before and after.
struct EnabledScope {
  EnabledScope() { set_compile_mode(CompileMode::enabled); }
  ~EnabledScope() { set_compile_mode(CompileMode::enabled); }
};

}  // namespace spec
