// Text: the lexer, and the exact printing of numbers, that both IRs use. Layer: base.
//
// Tokens are names (`add`, `b0`, `float32`), numbers (`-3`, `1.5e-7`, `0x7fc00000`), values (`%12`), strings ("model.cpp:41") and
// punctuation (`..` or one character). `;;` opens a comment that lasts to the end of the line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "sinter/dtype.h"

namespace sinter::text {

enum class Kind : std::uint8_t { Name, Number, Value, String, Punctuation, End };
struct Token {
  Kind kind = Kind::End;
  std::string_view text;  // of a Value without the '%', of a String without the quotes
  int line = 1, column = 1;
};

/// Reads tokens one ahead. Every failure is an Error `<what>: <expected>; got <token> at line L, column C; <advice>`.
class Lexer {
 public:
  /// `what` names the kind of text in messages: "graph text".
  Lexer(std::string_view text, std::string_view what);

  const Token& peek() const { return token_; }
  bool at(std::string_view text) const { return token_.text == text && (token_.kind == Kind::Name || token_.kind == Kind::Punctuation); }
  Token take();
  /// Takes the token if it is this name or punctuation.
  bool accept(std::string_view text);
  void expect(std::string_view text);
  std::string_view name();
  /// A name, or a string.
  std::string_view title();
  std::int64_t integer();
  /// The number of a value: 12 for `%12`.
  std::uint32_t value();
  Dtype dtype();
  /// A literal of `t` as append_literal writes it; returns the bits of its stored form.
  std::uint64_t literal(Dtype t);

  [[noreturn]] void fail(const Token& at, std::string_view wrong) const;
  [[noreturn]] void fail(std::string_view wrong) const { fail(token_, wrong); }

 private:
  void advance();
  std::string_view text_, what_;
  std::size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  Token token_;
};

void append_integer(std::string& out, std::int64_t v);
/// A literal by the bits of its stored form, exactly: integers in decimal, finite floats as the shortest decimal that reads back
/// equal, NaN and infinity as hexadecimal bits, complex64 as `(re, im)`.
void append_literal(std::string& out, Dtype t, std::uint64_t bits);
/// As a name where it reads back as one, else as a string.
void append_title(std::string& out, std::string_view name);

}  // namespace sinter::text
