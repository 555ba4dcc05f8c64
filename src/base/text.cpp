#include "base/text.h"

#include <bit>
#include <charconv>
#include <cmath>

#include "base/check.h"

namespace sinter::text {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool starts_name(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool in_name(char c) { return starts_name(c) || is_digit(c); }

std::uint64_t mask_of(Dtype t) { return size_of(t) == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (8 * size_of(t))) - 1; }

// Halves are printed as the float32 of the same value. Exact both ways: a text is only accepted if the narrow type holds its value.
float half_value(std::uint32_t bits, Dtype t) {
  if (t == Dtype::bfloat16) return std::bit_cast<float>(bits << 16);
  const int exponent = static_cast<int>(bits >> 10) & 31, fraction = static_cast<int>(bits & 1023);
  const float magnitude =
      exponent == 0 ? std::ldexp(static_cast<float>(fraction), -24) : std::ldexp(static_cast<float>(1024 + fraction), exponent - 25);
  return std::copysign(magnitude, bits >> 15 ? -1.0f : 1.0f);
}
std::uint64_t half_bits(float v, Dtype t) {
  const std::uint32_t whole = std::bit_cast<std::uint32_t>(v);
  if (t == Dtype::bfloat16) return whole >> 16;
  const std::uint32_t sign = whole >> 31 << 15;
  if (v == 0) return sign;
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(v), &exponent);  // in [0.5, 1)
  if (exponent < -13) return sign | static_cast<std::uint32_t>(std::ldexp(fraction, exponent + 24));
  return sign | (static_cast<std::uint32_t>(exponent + 14) << 10 | (static_cast<std::uint32_t>(std::ldexp(fraction, 11)) & 1023));
}
bool half_is_finite(std::uint64_t bits, Dtype t) { return t == Dtype::bfloat16 ? (bits & 0x7f80) != 0x7f80 : (bits & 0x7c00) != 0x7c00; }

template <class T>
void append_chars(std::string& out, T v) {
  char buffer[40];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, v).ptr);
}
void append_hex(std::string& out, std::uint64_t bits) {
  char buffer[20];
  out.append("0x").append(buffer, std::to_chars(buffer, buffer + sizeof buffer, bits, 16).ptr);
}

}  // namespace

void append_integer(std::string& out, std::int64_t v) { append_chars(out, v); }

void append_literal(std::string& out, Dtype t, std::uint64_t bits) {
  switch (kind(t)) {
    case sinter::Kind::Bool:
      if (bits <= 1)
        out += bits ? "true" : "false";
      else
        append_hex(out, bits);
      return;
    case sinter::Kind::Unsigned: return append_chars(out, bits);
    case sinter::Kind::Signed: {
      const int shift = 64 - 8 * size_of(t);
      return append_chars(out, static_cast<std::int64_t>(bits << shift) >> shift);
    }
    case sinter::Kind::Floating: {
      if (t == Dtype::float64) {
        const double v = std::bit_cast<double>(bits);
        return std::isfinite(v) ? append_chars(out, v) : append_hex(out, bits);
      }
      if (is_half(t))
        return half_is_finite(bits, t) ? append_chars(out, half_value(static_cast<std::uint32_t>(bits), t)) : append_hex(out, bits);
      const float v = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
      return std::isfinite(v) ? append_chars(out, v) : append_hex(out, bits);
    }
    case sinter::Kind::Complex:
      out += '(';
      append_literal(out, Dtype::float32, bits & 0xffffffff);
      out += ", ";
      append_literal(out, Dtype::float32, bits >> 32);
      out += ')';
      return;
  }
}

void append_title(std::string& out, std::string_view name) {
  bool plain = !name.empty() && starts_name(name[0]);
  for (char c : name) plain = plain && in_name(c);
  if (plain) {
    out += name;
    return;
  }
  out += '"';
  for (char c : name) out += c == '"' || c == '\n' ? '\'' : c;
  out += '"';
}

Lexer::Lexer(std::string_view text, std::string_view what) : text_(text), what_(what) { advance(); }

Token Lexer::take() {
  Token t = token_;
  advance();
  return t;
}

void Lexer::advance() {
  auto here = [&](std::size_t i) { return i < text_.size() ? text_[i] : '\0'; };
  for (;; ++at_) {
    if (here(at_) == ';' && here(at_ + 1) == ';') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    }
    const char c = here(at_);
    if (c == '\n') {
      ++line_;
      line_start_ = at_ + 1;
    } else if (c != ' ' && c != '\t' && c != '\r') {
      break;
    }
  }
  token_ = {Kind::End, {}, line_, static_cast<int>(at_ - line_start_) + 1};
  if (at_ >= text_.size()) return;
  std::size_t end = at_ + 1, skip = 0;
  const char c = text_[at_];
  if (starts_name(c)) {
    token_.kind = Kind::Name;
    while (in_name(here(end))) ++end;
  } else if (is_digit(c) || (c == '-' && is_digit(here(end)))) {
    token_.kind = Kind::Number;  // a point only before a digit, so that `0..4` is a range
    while (in_name(here(end)) || (here(end) == '.' && is_digit(here(end + 1))) ||
           ((here(end) == '-' || here(end) == '+') && here(end - 1) == 'e' && is_digit(here(end + 1)))) {
      ++end;
    }
  } else if (c == '%' && is_digit(here(end))) {
    token_.kind = Kind::Value;
    skip = 1;
    while (is_digit(here(end))) ++end;
  } else if (c == '"') {
    token_.kind = Kind::String;
    while (end < text_.size() && text_[end] != '"' && text_[end] != '\n') ++end;
    token_.text = text_.substr(at_ + 1, end - at_ - 1);
    if (here(end) != '"') fail("the string has no closing quote");
    at_ = end + 1;
    return;
  } else {
    token_.kind = Kind::Punctuation;
    if (c == '.' && here(end) == '.') ++end;
  }
  token_.text = text_.substr(at_ + skip, end - at_ - skip);
  at_ = end;
}

void Lexer::fail(const Token& at, std::string_view wrong) const {
  const std::string got = at.kind == Kind::End ? "the end" : str('\'', at.kind == Kind::Value ? "%" : "", at.text, '\'');
  throw Error(str(what_, ": ", wrong, "; got ", got, " at line ", at.line, ", column ", at.column, "; correct the text there"));
}

bool Lexer::accept(std::string_view text) {
  if (!at(text)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view text) {
  if (!accept(text)) fail(str("expected '", text, "'"));
}

std::string_view Lexer::name() {
  if (token_.kind != Kind::Name) fail("expected a name");
  return take().text;
}

std::string_view Lexer::title() {
  if (token_.kind != Kind::Name && token_.kind != Kind::String) fail("expected a name or a string");
  return take().text;
}

std::int64_t Lexer::integer() {
  std::int64_t v = 0;
  const char* end = token_.text.data() + token_.text.size();
  const auto read = std::from_chars(token_.text.data(), end, v);
  if (token_.kind != Kind::Number || read.ec != std::errc() || read.ptr != end) fail("expected a 64-bit integer");
  advance();
  return v;
}

std::uint32_t Lexer::value() {
  std::uint32_t v = 0;
  const char* end = token_.text.data() + token_.text.size();
  const auto read = std::from_chars(token_.text.data(), end, v);
  if (token_.kind != Kind::Value || read.ec != std::errc() || read.ptr != end) fail("expected a value such as %0");
  advance();
  return v;
}

Dtype Lexer::dtype() {
  if (token_.kind == Kind::Name) {
    for (int i = 0; i < kDtypeCount; ++i) {
      if (token_.text == kDtypes[i].name) {
        advance();
        return static_cast<Dtype>(i);
      }
    }
  }
  fail("expected a dtype");
}

std::uint64_t Lexer::literal(Dtype t) {
  if (is_complex(t)) {
    expect("(");
    const std::uint64_t re = literal(Dtype::float32);
    expect(",");
    const std::uint64_t im = literal(Dtype::float32);
    expect(")");
    return re | im << 32;
  }
  if (t == Dtype::bool_ && (at("true") || at("false"))) return take().text == "true";
  const Token token = take();
  const std::string wrong = str("expected a literal of ", sinter::name(t));
  if (token.kind != Kind::Number) fail(token, wrong);
  const char *begin = token.text.data(), *end = begin + token.text.size();
  auto read = [&](auto v, auto... base) {
    const auto got = std::from_chars(begin, end, v, base...);
    if (got.ec != std::errc() || got.ptr != end) fail(token, wrong);
    return v;
  };
  if (token.text.starts_with("0x")) {
    begin += 2;
    const std::uint64_t bits = read(std::uint64_t{0}, 16);
    if (bits & ~mask_of(t)) fail(token, wrong);
    return bits;
  }
  if (t == Dtype::float64) return std::bit_cast<std::uint64_t>(read(0.0));
  if (is_floating(t)) {
    const float v = read(0.0f);
    if (t == Dtype::float32) return std::bit_cast<std::uint32_t>(v);
    if (std::isfinite(v) && std::fabs(v) <= 3.4e38f && (t == Dtype::bfloat16 || std::fabs(v) <= 65504)) {
      const std::uint64_t bits = half_bits(v, t);
      if (half_value(static_cast<std::uint32_t>(bits), t) == v) return bits;
    }
    fail(token, wrong);
  }
  const bool negative = token.text[0] == '-';
  const std::uint64_t bits = negative ? static_cast<std::uint64_t>(read(std::int64_t{0})) : read(std::uint64_t{0});
  std::string back;
  append_literal(back, t, bits & mask_of(t));
  if (back != token.text) fail(token, wrong);
  return bits & mask_of(t);
}

}  // namespace sinter::text
