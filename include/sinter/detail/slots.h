// Signatures, and the parameters and the result of one call. Nothing here is for users.
#pragma once
#include <optional>
#include <string>

#include "sinter/detail/core.h"
#include "sinter/result.h"

namespace sinter::detail {

// ---- signatures -------------------------------------------------------------------------------------------------------------------

template <class R, class... P>
struct Sig {};
struct Generic {};  // templates and overload sets: known only at the call

template <class M>
struct MemberSig;
#define SINTER_MEMBER(qualifiers, self)                            \
  template <class R, class C, class... P, bool N>                  \
  struct MemberSig<R (C::*)(P...) qualifiers noexcept(N)> {        \
    using call = Sig<R, P...>;         /* of operator() */         \
    using invoke = Sig<R, self, P...>; /* of the member pointer */ \
  };
SINTER_MEMBER(, C&)
SINTER_MEMBER(&, C&)
SINTER_MEMBER(&&, C&&)
SINTER_MEMBER(const, const C&)
SINTER_MEMBER(const&, const C&)
SINTER_MEMBER(const&&, const C&)
#undef SINTER_MEMBER

template <class F>
struct SignatureOf {
  using type = Generic;
};
template <class R, class... P, bool N>
struct SignatureOf<R (*)(P...) noexcept(N)> {
  using type = Sig<R, P...>;
};
template <class F>
  requires std::is_member_function_pointer_v<F>
struct SignatureOf<F> {
  using type = typename MemberSig<F>::invoke;
};
template <class F>
  requires requires { &F::operator(); }
struct SignatureOf<F> {
  using type = typename MemberSig<decltype(&F::operator())>::call;
};
template <class F>
using signature_of = typename SignatureOf<F>::type;

template <class P>
inline constexpr bool is_state = std::is_lvalue_reference_v<P> && !std::is_const_v<std::remove_reference_t<P>>;
template <class S>
inline constexpr bool first_is_state = true;
template <class R>
inline constexpr bool first_is_state<Sig<R>> = false;
template <class R, class P, class... Q>
inline constexpr bool first_is_state<Sig<R, P, Q...>> = is_state<P>;

// What a parameter is kept as while tracing: views own their data.
template <class T>
struct Stored {
  using type = T;
};
template <class E, std::size_t N>
struct Stored<std::span<E, N>> {
  static_assert(std::is_const_v<E>,
                "sinter: take std::span<const T>: the elements of a span cannot be state; use std::vector<T>& for that");
  using type = std::vector<std::remove_cv_t<E>>;
};
template <>
struct Stored<std::string_view> {
  using type = std::string;
};
template <>
struct Stored<Operand> {
  using type = Array;
};

// ---- one parameter during one call -----------------------------------------------------------------------------------------------

template <class P, bool InPlace = false>
class Parameter final : public Slot {
 public:
  using Bare = std::remove_cvref_t<P>;
  using T = typename Stored<Bare>::type;
  static constexpr bool is_state_parameter = is_state<P>;
  static constexpr bool is_view = !std::same_as<T, Bare>;
  static constexpr bool can_copy = std::is_copy_constructible_v<T>;
  static constexpr bool traced_in_place = InPlace || (is_state_parameter && !can_copy);
  static_assert(is_state_parameter || can_copy, "sinter: an argument that is not state must be copyable");
  static_assert(!is_state_parameter || std::is_nothrow_move_assignable_v<T>,
                "sinter: a state must be nothrow move assignable, so that a call that throws leaves it as it was");
  static_assert(!is_state_parameter || !is_view, "sinter: a view cannot be state");
  using User = std::conditional_t<is_state_parameter, T, const Bare>;

  explicit Parameter(User* user) : user_(user) {
    require_tree<T>();
    address = user;
    bytes = sizeof(Bare);
    type = tag_of<Bare>();
    state = is_state_parameter;
    owned = !std::is_reference_v<P> && !is_view;
    plain = std::same_as<P, const Array&>;
    in_place = traced_in_place;
    copyable = can_copy;
  }

  void walk_user(Walker& w) override {
    if constexpr (std::same_as<Bare, Operand>) {
      T array = stored();
      walk(array, w);
    } else if constexpr (std::same_as<T, std::string> && is_view) {
      T text(*user_);
      w.text(text);
    } else if constexpr (is_view) {
      w.length(user_->size());
      std::size_t i = 0;
      for (const auto& x : *user_) walk_item(const_cast<std::remove_cvref_t<decltype(x)>&>(x), w, i++);
    } else {
      walk_const(*user_, w);
    }
  }
  void make_copy() override {
    if constexpr (can_copy) copy_.emplace(stored());
  }
  void walk_traced(Walker& w) override {
    if constexpr (traced_in_place)
      walk(*user_, w);
    else
      walk(*copy_, w);
  }
  void walk_copy(Walker& w) override {
    if constexpr (can_copy)
      walk(*copy_, w);
    else
      walk(*user_, w);
  }
  void drop_copy() noexcept override { copy_.reset(); }
  void commit_copy() noexcept override {
    if constexpr (is_state_parameter && can_copy) *user_ = std::move(*copy_);
  }
  P&& pass() {
    if constexpr (traced_in_place) {
      return *user_;
    } else if constexpr (is_view) {
      return static_cast<P&&>(view_.emplace(*copy_));
    } else {
      if constexpr (std::same_as<P, const Array&>)
        if (alias) return *alias;
      return static_cast<P&&>(*copy_);
    }
  }

 private:
  T stored() const {
    if constexpr (std::same_as<Bare, Operand>) {
      if (user_->array()) return *user_->array();
      const Number& n = user_->number();
      return is_complex(n.dtype())       ? Array(std::complex<float>(static_cast<float>(n.real()), static_cast<float>(n.imag())))
             : n.dtype() == Dtype::bool_ ? Array(n.integer() != 0)
             : is_floating(n.dtype())    ? Array(n.real(), n.dtype())
             : is_signed(n.dtype())      ? Array(static_cast<std::int64_t>(n.integer()), n.dtype())
                                         : Array(n.integer(), n.dtype());
    } else if constexpr (is_view) {
      return T(user_->begin(), user_->end());
    } else {
      return T(*user_);
    }
  }

  User* user_;
  struct Nothing {
    void reset() {}
  };
  std::conditional_t<can_copy, std::optional<T>, Nothing> copy_;
  std::optional<std::conditional_t<is_view, Bare, char>> view_;
};

template <class T>
struct CapturedTreeOf final : CapturedTree {
  explicit CapturedTreeOf(T* t) : tree(t) {}
  std::unique_ptr<Slot> slot() override { return std::make_unique<Parameter<T&, true>>(tree); }
  T* tree;
};
/// Trees that a function reaches by reference: see captured().
template <class... T>
struct Captured {
  std::tuple<T*...> trees;
};

// ---- the result during one call ---------------------------------------------------------------------------------------------------

template <class Out>
class OutcomeOf final : public Outcome {
 public:
  static_assert(std::is_copy_constructible_v<Out>, "sinter: the result of a compiled function must be copyable");
  void walk(Walker& w) override { detail::walk(*value_, w); }
  std::unique_ptr<Kept> keep() override {
    auto kept = std::make_unique<KeptAs>(std::move(*value_));
    value_.reset();
    return kept;
  }
  void copy(const Kept* prototype) override { value_.emplace(static_cast<const KeptAs*>(prototype)->value); }
  template <class F, class... P>
  void store(const F& f, P&&... args) {
    if constexpr (is_result<std::invoke_result_t<const F&, P...>>) {
      auto result = f(static_cast<P&&>(args)...);
      if (!result) throw Failed{result.exception()};
      value_.emplace(*std::move(result));
    } else {
      value_.emplace(f(static_cast<P&&>(args)...));
    }
  }
  Out take() { return std::move(*value_); }

 private:
  struct KeptAs final : Kept {
    explicit KeptAs(Out&& v) : value(std::move(v)) {}
    Out value;
  };
  std::optional<Out> value_;
};
template <>
class OutcomeOf<void> final : public Outcome {
 public:
  void walk(Walker&) override {}
  std::unique_ptr<Kept> keep() override { return nullptr; }
  void copy(const Kept*) override {}
  template <class F, class... P>
  void store(const F& f, P&&... args) {
    if constexpr (is_result<std::invoke_result_t<const F&, P...>>) {
      if (auto result = f(static_cast<P&&>(args)...); !result) throw Failed{result.exception()};
    } else {
      f(static_cast<P&&>(args)...);
    }
  }
  void take() {}
};

}  // namespace sinter::detail
