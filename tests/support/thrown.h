// What an expression throws. Used by tests of messages.
#pragma once
#include <string>

namespace sinter::tests {

/// The text of the exception of type E that f throws; "" when it throws none. Others pass through.
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

}  // namespace sinter::tests
