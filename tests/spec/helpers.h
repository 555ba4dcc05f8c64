// What the spec tests share: texts of arrays and errors, comparison by bits.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <sstream>
#include <string>

#include "sinter/compile.h"
#include "sinter/sinter.h"
#include "support/thrown.h"

namespace spec {

using namespace sinter;
using tests::has;
using tests::thrown;

template <class T>
std::string text(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

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
