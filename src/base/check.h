// Assertions about ourselves (InternalError), formatting of messages, and a non-owning function reference. Layer: base.
#pragma once
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

#include "sinter/error.h"

namespace sinter {

/// Concatenates anything printable: `str("sum: axis ", 3)`.
template <class... T>
std::string str(const T&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

/// Throws InternalError when `ok` is false: a fault of ours, not of the user.
inline void check(bool ok, const char* what) {
  if (!ok) [[unlikely]]
    throw InternalError(std::string("internal: ") + what);
}

template <class>
class FunctionRef;
/// Refers to a callable for the length of a call; never stored.
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, FunctionRef>)
  FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(&f))),
        call_([](void* o, A... a) -> R { return (*static_cast<std::remove_reference_t<F>*>(o))(std::forward<A>(a)...); }) {}
  R operator()(A... a) const { return call_(object_, std::forward<A>(a)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

}  // namespace sinter
