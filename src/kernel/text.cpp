// The text of kernels. A value's number is its position in the body, so that text, messages and Refs agree.
#include "base/text.h"

#include <utility>

#include "base/check.h"
#include "kernel/kernel.h"

namespace sinter::kernel {
namespace {

constexpr std::string_view kLoopNames[] = {"parallel", "serial", "vector"};  // by LoopKind

struct Printer {
  const Kernel& k;
  std::string& out;
  std::size_t indent = 2;

  void integer(std::int64_t v) { text::append_integer(out, v); }
  void ref(Ref r) {
    out += '%';
    integer(r);
  }
  void dtype(Dtype t) { (out += ": ") += name(t); }
  void define(Ref r) {
    ref(r);
    out += " = ";
  }
  void option(std::string_view name, std::int64_t v) {
    out += name;
    integer(v);
  }
  void buffer(std::int64_t number, Ref index) {
    out += 'b';
    integer(number);
    out += '[';
    ref(index);
    out += ']';
  }
  void buffer(const Inst& i) { buffer(i.imm, i.in[0]); }

  void signature() {
    out += '(';
    for (std::size_t b = 0; b < k.buffers.size(); ++b) {
      out += b ? ", b" : "b";
      integer(static_cast<std::int64_t>(b));
      dtype(k.buffers[b].dtype);
      if (k.buffers[b].written) out += k.buffers[b].scratch ? " scratch" : k.buffers[b].large ? " large out" : " out";
    }
    out += "; ints ";
    integer(k.integers);
    out += "; scalars ";
    integer(k.scalars);
    out += ") {\n";
    for (Ref r = 0; r < k.body.size(); ++r) inst(r, k.body[r]);
    out += "}\n";
  }

  void inst(Ref r, const Inst& i) {
    if (i.code == Code::End && indent > 2) indent -= 2;
    out.append(indent, ' ');
    switch (i.code) {
      case Code::Arg:
        define(r);
        out += "arg ";
        integer(i.imm);
        break;
      case Code::Range:
        define(r);
        out += "range ";
        integer(i.imm);
        break;
      case Code::Scalar:
        define(r);
        out += "scalar ";
        integer(i.imm);
        dtype(i.dtype);
        break;
      case Code::Const:
        define(r);
        (out += "const ") += name(i.dtype);
        out += ' ';
        text::append_literal(out, i.dtype, static_cast<std::uint64_t>(i.imm));
        break;
      case Code::Loop:
        (out += kLoopNames[static_cast<int>(i.kind)]) += ' ';
        ref(r);
        out += " in ";
        ref(i.in[0]);
        out += "..";
        ref(i.in[1]);
        if (i.unroll != 1) option(" unroll ", i.unroll);
        if (i.prefetch != 0) option(" prefetch ", i.prefetch);
        out += " {";
        indent += 2;
        break;
      case Code::Carry:
        out += "carry ";
        ref(r);
        dtype(i.dtype);
        out += " = ";
        ref(i.in[0]);
        out += " next ";
        ref(i.in[1]);
        break;
      case Code::End: out += '}'; break;
      case Code::Compute:
      case Code::Combine:
        define(r);
        if (i.code == Code::Combine) out += "combine ";
        out += ops::info(i.op).name;
        for (int n = 0; n < 3 && i.in[n] != kNone; ++n) {
          out += n ? ", " : " ";
          ref(i.in[n]);
        }
        dtype(i.dtype);
        break;
      case Code::Cast:
        define(r);
        out += "cast ";
        ref(i.in[0]);
        dtype(i.dtype);
        break;
      case Code::Load:
        define(r);
        out += "load ";
        buffer(i);
        if (i.in[1] != kNone) {
          out += " where ";
          ref(i.in[1]);
        }
        break;
      case Code::Store:
        out += "store ";
        buffer(i);
        out += " = ";
        ref(i.in[1]);
        break;
      case Code::Tile:
        out += "tile ";
        buffer(i.to, i.in[1]);
        out += " step ";
        ref(i.in[2]);
        out += " = ";
        buffer(i);
        out += " count ";
        ref(i.in[3]);
        if (i.in[4] != kNone) {
          out += " later ";
          ref(i.in[4]);
        }
        break;
      case Code::Prefetch:
        out += i.to != 0 ? "prefetch far " : "prefetch ";
        buffer(i);
        break;
    }
    out += '\n';
  }
};

// Numbers in the text are any; they become positions here. A carry's next value is defined further on.
struct Parser {
  text::Lexer lex;
  Kernel k;
  std::vector<Ref> position;                         // by number in the text
  std::vector<std::pair<Ref, text::Token>> pending;  // carries, with the token of their next value
  int depth = 0;

  void define(std::uint32_t number, const text::Token& at) {
    if (number > kLargestNumber) lex.fail(at, "a value's number is too large");
    if (position.size() <= number) position.resize(number + 1, kNone);
    if (position[number] != kNone) lex.fail(at, "a value is defined twice");
    position[number] = static_cast<Ref>(k.body.size());
  }
  Ref use(std::uint32_t number, const text::Token& at) {
    if (number >= position.size() || position[number] == kNone) lex.fail(at, "a value is used and not defined");
    return position[number];
  }
  Ref use() {
    const text::Token at = lex.peek();
    return use(lex.value(), at);
  }
  void define() {
    const text::Token at = lex.peek();
    define(lex.value(), at);
  }
  Dtype dtype() {
    lex.expect(":");
    return lex.dtype();
  }
  int number(int limit) {
    const text::Token at = lex.peek();
    const std::int64_t v = lex.integer();
    if (v < 0 || v > limit) lex.fail(at, str("expected a number from 0 to ", limit));
    return static_cast<int>(v);
  }
  // `b3[%7]`: the buffer's number, and the index
  std::size_t buffer(Ref& index) {
    const text::Token at = lex.peek();
    const std::string_view b = lex.name();
    std::size_t n = 0;
    bool ok = b.size() > 1 && b.size() < 8 && b[0] == 'b';
    for (char c : b.substr(1)) {
      ok = ok && c >= '0' && c <= '9';
      n = n * 10 + static_cast<std::size_t>(c - '0');
    }
    if (!ok || n >= k.buffers.size()) lex.fail(at, "expected a buffer");
    lex.expect("[");
    index = use();
    lex.expect("]");
    return n;
  }
  void buffer(Inst& i) {
    const std::size_t n = buffer(i.in[0]);
    i.imm = static_cast<std::int64_t>(n);
    i.dtype = k.buffers[n].dtype;
  }

  Kernel run() {
    lex.expect("kernel");
    k.name = lex.title();
    lex.expect("(");
    for (std::size_t n = 0; !lex.at(";"); ++n) {
      if (n) lex.expect(",");
      if (!lex.at(str("b", n))) lex.fail(str("expected buffer b", n));
      lex.take();
      const Dtype t = dtype();
      const bool scratch = lex.accept("scratch"), large = lex.accept("large");
      k.buffers.push_back({t, scratch || lex.accept("out"), scratch, large});
    }
    lex.expect(";");
    lex.expect("ints");
    k.integers = number(1 << 20);
    lex.expect(";");
    lex.expect("scalars");
    k.scalars = number(1 << 20);
    lex.expect(")");
    lex.expect("{");
    while (depth > 0 || !lex.at("}")) statement();
    lex.take();
    if (lex.peek().kind != text::Kind::End) lex.fail("expected the end after the kernel");
    for (const auto& [carry, at] : pending) k.body[carry].in[1] = use(number_of(at), at);
    return std::move(k);
  }

  std::uint32_t number_of(const text::Token& at) const {
    std::uint64_t v = 0;
    for (char c : at.text) v = v > kLargestNumber ? v : v * 10 + static_cast<std::uint64_t>(c - '0');
    if (v > kLargestNumber) lex.fail(at, "a value's number is too large");
    return static_cast<std::uint32_t>(v);
  }

  void statement() {
    Inst i{};
    if (lex.accept("}")) {
      i.code = Code::End;
      --depth;
    } else if (lex.accept("carry")) {
      i.code = Code::Carry;
      define();
      i.dtype = dtype();
      lex.expect("=");
      i.in[0] = use();
      lex.expect("next");
      pending.emplace_back(static_cast<Ref>(k.body.size()), lex.peek());
      lex.value();
    } else if (lex.accept("store")) {
      i.code = Code::Store;
      buffer(i);
      lex.expect("=");
      i.in[1] = use();
    } else if (lex.accept("prefetch")) {
      i.code = Code::Prefetch;
      i.to = lex.accept("far");
      buffer(i);
    } else if (lex.accept("tile")) {
      i.code = Code::Tile;
      i.to = static_cast<std::uint16_t>(buffer(i.in[1]));
      lex.expect("step");
      i.in[2] = use();
      lex.expect("=");
      buffer(i);
      lex.expect("count");
      i.in[3] = use();
      if (lex.accept("later")) i.in[4] = use();
    } else if (lex.peek().kind == text::Kind::Value) {
      const text::Token at = lex.peek();
      const std::uint32_t defined = lex.value();
      lex.expect("=");
      assign(i);
      define(defined, at);
    } else {
      loop(i);
    }
    k.body.push_back(i);
  }

  void loop(Inst& i) {
    i.code = Code::Loop;
    for (int kind = 0;; ++kind) {
      if (kind == 3) lex.fail("expected an instruction");
      if (lex.accept(kLoopNames[kind])) {
        i.kind = static_cast<LoopKind>(kind);
        break;
      }
    }
    const text::Token at = lex.peek();
    const std::uint32_t defined = lex.value();
    lex.expect("in");
    i.in[0] = use();
    lex.expect("..");
    i.in[1] = use();
    define(defined, at);
    if (lex.accept("unroll")) i.unroll = static_cast<std::uint8_t>(number(255));
    if (lex.accept("prefetch")) i.prefetch = static_cast<std::uint16_t>(number(65535));
    lex.expect("{");
    ++depth;
  }

  void assign(Inst& i) {
    if (lex.accept("arg")) {
      i.code = Code::Arg;
      i.imm = number(1 << 20);
    } else if (lex.accept("range")) {
      i.code = Code::Range;
      i.imm = number(1);
    } else if (lex.accept("scalar")) {
      i.code = Code::Scalar;
      i.imm = number(1 << 20);
      i.dtype = dtype();
    } else if (lex.accept("const")) {
      i.code = Code::Const;
      i.dtype = lex.dtype();
      i.imm = static_cast<std::int64_t>(lex.literal(i.dtype));
    } else if (lex.accept("load")) {
      i.code = Code::Load;
      buffer(i);
      if (lex.accept("where")) i.in[1] = use();
    } else if (lex.accept("cast")) {
      i.code = Code::Cast;
      i.in[0] = use();
      i.dtype = dtype();
    } else {
      i.code = lex.accept("combine") ? Code::Combine : Code::Compute;
      const text::Token at = lex.peek();
      const std::string op(lex.name());
      try {
        i.op = ops::find_op(op);
      } catch (const Error&) {
        lex.fail(at, "there is no such operation");
      }
      for (int n = 0; n < 3; ++n) {
        i.in[n] = use();
        if (!lex.accept(",")) break;
      }
      i.dtype = dtype();
    }
  }

  static constexpr std::uint32_t kLargestNumber = 1u << 24;
};

}  // namespace

void append_key(const Kernel& k, std::string& out) {
  out.reserve(out.size() + 64 + 32 * k.body.size());
  Printer{k, out}.signature();
}

std::string print(const Kernel& k) {
  std::string out = "kernel ";
  text::append_title(out, k.name);
  append_key(k, out);
  return out;
}

Kernel parse(std::string_view text) { return Parser{text::Lexer(text, "kernel text"), {}, {}, {}}.run(); }

}  // namespace sinter::kernel
