// The text of graphs. A value's number is its id. Inputs stand in the signature, by slot; wherever an input's id is smaller than that
// of a statement, the input comes before it.
#include "base/text.h"

#include <algorithm>
#include <utility>

#include "base/symbols.h"
#include "graph/graph.h"
#include "ops/infer.h"

namespace sinter::graph {
namespace {

using ops::Op;

struct Parser {
  text::Lexer lex;
  Graph g;
  std::vector<Id> by_number;  // ids by number in the text
  std::vector<std::pair<std::uint32_t, Node>> inputs;
  std::size_t inputs_added = 0;

  void define(std::uint32_t number, Node node, const text::Token& at) {
    if (number > kLargestNumber) lex.fail(at, "a value's number is too large");
    if (by_number.size() <= number) by_number.resize(number + 1, kKeep);
    if (by_number[number] != kKeep) lex.fail(at, "a value is defined twice");
    by_number[number] = g.add(std::move(node));
  }
  Id use() {
    const text::Token at = lex.peek();
    const std::uint32_t number = lex.value();
    if (number >= by_number.size() || by_number[number] == kKeep) lex.fail(at, "a value is used and not defined");
    return by_number[number];
  }
  std::vector<Id> uses() {
    std::vector<Id> ids;
    if (lex.peek().kind != text::Kind::Value) return ids;
    do ids.push_back(use());
    while (lex.accept(","));
    return ids;
  }
  Type type() {
    Type t;
    t.dtype = lex.dtype();
    lex.expect("[");
    while (!lex.at("]")) {
      if (!t.shape.empty()) lex.expect(",");
      t.shape.push_back(lex.integer());
    }
    lex.take();
    return t;
  }
  // Inputs numbered below `number` come before it.
  void add_inputs(std::uint32_t number, const text::Token& at) {
    while (inputs_added < inputs.size() && inputs[inputs_added].first < number) {
      auto& [input, node] = inputs[inputs_added++];
      define(input, std::move(node), at);
    }
  }

  Graph whole() {
    Graph made = graph();
    if (lex.peek().kind != text::Kind::End) lex.fail("expected the end after the graph");
    return made;
  }
  Graph graph() {
    lex.expect("graph");
    g.name = lex.title();
    lex.expect("(");
    while (!lex.at(")")) {
      if (!inputs.empty()) lex.expect(",");
      const std::uint32_t number = lex.value();
      lex.expect(":");
      const auto slot = static_cast<std::int64_t>(inputs.size());
      inputs.emplace_back(number, Node{Op::Input, {}, {slot}, type()});
    }
    lex.take();
    std::sort(inputs.begin(), inputs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    lex.expect("{");
    while (!lex.at("return")) {
      const text::Token at = lex.peek();
      const std::uint32_t number = lex.value();
      add_inputs(number, at);
      define(number, statement(), at);
    }
    const text::Token at = lex.take();
    add_inputs(kLargestNumber, at);
    g.set_outputs(uses());
    lex.expect("}");
    return std::move(g);
  }

  Node statement() {
    lex.expect("=");
    Node n{};
    const text::Token at = lex.peek();
    const std::string op(lex.name());
    try {
      n.op = ops::find_op(op);
    } catch (const Error&) {
      lex.fail(at, "there is no such operation");
    }
    n.in = uses();
    const text::Lexer attributes_at = lex;  // read after the type, which says how to read them
    const bool has_attributes = lex.accept("{");
    while (has_attributes && !lex.accept("}")) {
      if (lex.take().kind == text::Kind::End) lex.fail("the attributes have no closing '}'");
    }
    lex.expect(":");
    n.type = type();
    if (has_attributes) {
      const text::Lexer after = std::exchange(lex, attributes_at);
      attributes(n);
      lex = after;
    }
    while (lex.at("graph")) {
      Parser body{lex, {}, {}, {}, 0};
      n.bodies.push_back(body.graph());
      lex = body.lex;
    }
    return n;
  }

  void attributes(Node& n) {
    lex.expect("{");
    for (std::string_view names = ops::info(n.op).attributes; !names.empty();) {
      const ops::AttributeName a = ops::take_attribute_name(names);
      lex.expect(a.name);
      lex.expect("=");
      const std::size_t count = a.count == '*' ? n.type.shape.size() : a.count == '+' ? ~std::size_t{0} : 1;
      for (std::size_t i = 0; i < count && !lex.at("}"); ++i) {
        if (i > 0 && !lex.accept(",")) break;
        if (a.name == "dtype")
          n.attrs.push_back(static_cast<std::int64_t>(lex.dtype()));
        else if (a.name == "bits")
          n.attrs.push_back(static_cast<std::int64_t>(lex.literal(n.type.dtype)));
        else
          n.attrs.push_back(lex.integer());
      }
    }
    lex.expect("}");
  }

  static constexpr std::uint32_t kLargestNumber = 1u << 24;
};

class Printer {
 public:
  Printer(std::string& out, const base::Symbols* symbols) : out_(out), symbols_(symbols) {}

  void append_graph(const Graph& g, std::size_t depth) {
    const std::string margin(2 * depth, ' ');
    out_ += "graph ";
    text::append_title(out_, g.name);
    std::vector<Id> inputs;
    for (Id id = 0; id < g.size(); ++id) {
      if (g[id].op == Op::Input) inputs.push_back(id);
    }
    std::sort(inputs.begin(), inputs.end(), [&](Id a, Id b) { return g[a].attrs[0] < g[b].attrs[0]; });
    out_ += '(';
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i) out_ += ", ";
      append_id(inputs[i]);
      out_ += ": ";
      append_type(g[inputs[i]].type);
    }
    out_ += ") {\n";
    for (Id id = 0; id < g.size(); ++id) {
      const Node& n = g[id];
      if (n.op == Op::Input) continue;
      out_ += margin;
      out_ += "  ";
      append_id(id);
      (out_ += " = ") += ops::info(n.op).name;
      append_ids(n.in);
      append_attributes(n);
      out_ += " : ";
      append_type(n.type);
      for (const Body& body : n.bodies) {
        out_ += '\n';
        out_ += margin;
        out_ += "    ";
        append_graph(*body, depth + 2);
      }
      out_ += '\n';
    }
    out_ += margin;
    out_ += "  return";
    append_ids(g.outputs());
    out_ += '\n';
    out_ += margin;
    out_ += '}';
  }

 private:
  void append_id(Id id) {
    out_ += '%';
    text::append_integer(out_, id);
  }

  void append_size(const Dim& d) {
    if (symbols_)
      out_ += symbols_->text(d);
    else
      text::append_integer(out_, base::peek(d));
  }

  void append_type(const Type& t) {
    (out_ += name(t.dtype)) += '[';
    for (std::size_t i = 0; i < t.shape.size(); ++i) {
      if (i) out_ += ',';
      append_size(t.shape[i]);
    }
    out_ += ']';
  }

  void append_ids(std::span<const Id> ids) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      out_ += i ? ", " : " ";
      append_id(ids[i]);
    }
  }

  void append_bits(Dtype t, const Dim& bits) {
    if (symbols_ && symbols_->follows(bits))
      out_ += symbols_->text(bits);
    else
      text::append_literal(out_, t, static_cast<std::uint64_t>(base::peek(bits)));
  }

  void append_attributes(const Node& n) {
    if (ops::info(n.op).attributes.empty()) return;
    char before = '{';
    out_ += ' ';
    ops::for_each_attribute(n.op, n.attrs, n.type.shape.size(), [&](const ops::Attribute& a) {
      out_ += before;
      (out_ += a.name) += '=';
      for (std::size_t i = 0; i < a.values.size(); ++i) {
        if (i) out_ += ',';
        if (a.name == "dtype")
          out_ += name(static_cast<Dtype>(base::peek(a.values[i])));
        else if (a.name == "bits")
          append_bits(n.type.dtype, a.values[i]);
        else
          append_size(a.values[i]);
      }
      before = ' ';
    });
    out_ += '}';
  }

  std::string& out_;
  const base::Symbols* const symbols_;
};

}  // namespace

std::string print(const Graph& g, const base::Symbols* symbols) {
  std::string out;
  out.reserve(64 * (g.size() + 2));
  Printer(out, symbols).append_graph(g, 0);
  out += '\n';
  return out;
}

Graph parse(std::string_view text) { return Parser{text::Lexer(text, "graph text"), {}, {}, {}, 0}.whole(); }

}  // namespace sinter::graph
