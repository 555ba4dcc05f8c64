// Result: a value, or the Error that there is instead.
#pragma once
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "sinter/error.h"

namespace sinter {

template <class T>
class Result;

namespace detail {

template <class R>
inline constexpr bool is_result = false;
template <class T>
inline constexpr bool is_result<Result<T>> = true;
template <class R>
struct ValueOf {
  using type = R;
};
template <class T>
struct ValueOf<Result<T>> {
  using type = T;
};
/// What a function that returns R computes: T of a Result<T>, else R.
template <class R>
using value_of = typename ValueOf<R>::type;

/// The half of a Result that does not depend on its value.
class SINTER_API ResultBase {
 public:
  bool has_value() const noexcept { return error_ == nullptr; }
  explicit operator bool() const noexcept { return has_value(); }
  /// Throws Error where there is a value.
  const Error& error() const {
    if (has_value()) throw Error("Result: there is no error; got a value; ask has_value() first");
    return *error_;
  }
  /// The Error as it was thrown: of its own type. Null where there is a value.
  const std::exception_ptr& exception() const noexcept { return thrown_; }

 protected:
  ResultBase() = default;
  explicit ResultBase(std::exception_ptr thrown) : thrown_(std::move(thrown)) {
    try {
      std::rethrow_exception(thrown_);
    } catch (const Error& e) {
      error_ = &e;
    }
  }
  ~ResultBase() = default;
  ResultBase(const ResultBase&) = default;
  ResultBase& operator=(const ResultBase&) = default;
  void require() const {
    if (!has_value()) std::rethrow_exception(thrown_);
  }

 private:
  std::exception_ptr thrown_;
  const Error* error_ = nullptr;  // lives in thrown_
};

}  // namespace detail

/// Returned by functions that say what went wrong instead of throwing it, and by Compiled::try_call.
template <class T>
class Result : public detail::ResultBase {
 public:
  Result(T value) : value_(std::move(value)) {}
  template <class E>
    requires std::is_base_of_v<Error, std::remove_cvref_t<E>>
  Result(E&& error) : ResultBase(std::make_exception_ptr(std::forward<E>(error))) {}
  /// Of an exception that is an Error; any other is thrown at once.
  explicit Result(std::exception_ptr thrown) : ResultBase(std::move(thrown)) {}

  /// Throws the Error, where there is one, as it was.
  T& value() & { return require(), *value_; }
  const T& value() const& { return require(), *value_; }
  T&& value() && { return require(), std::move(*value_); }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::optional<T> value_;
};
template <>
class Result<void> : public detail::ResultBase {
 public:
  Result() = default;
  template <class E>
    requires std::is_base_of_v<Error, std::remove_cvref_t<E>>
  Result(E&& error) : ResultBase(std::make_exception_ptr(std::forward<E>(error))) {}
  explicit Result(std::exception_ptr thrown) : ResultBase(std::move(thrown)) {}
  void value() const { require(); }
  void operator*() const { require(); }
};

namespace detail {

/// Leaves a trace whose function returned an error.
struct Failed {
  std::exception_ptr thrown;
};

/// f(), and what it throws if that is an Error.
template <class F, class R = std::invoke_result_t<F&>, class Out = Result<value_of<R>>>
Out attempt(F&& f) {
  try {
    if constexpr (std::is_void_v<R>) {
      f();
      return Out();
    } else {
      return f();
    }
  } catch (const Error&) {
    return Out(std::current_exception());
  }
}

}  // namespace detail

}  // namespace sinter
