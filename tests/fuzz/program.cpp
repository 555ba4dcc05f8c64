// The text of programs.
#include "fuzz/program.h"

#include <algorithm>

#include "base/text.h"

namespace sinter::fuzz {
namespace {

template <std::size_t N>
std::size_t find_name(text::Lexer& lex, const char* const (&names)[N], const char* what) {
  for (std::size_t i = 0; i < N; ++i)
    if (lex.accept(names[i])) return i;
  lex.fail(what);
}

void append_ids(std::string& out, const std::vector<int>& ids) {
  for (int id : ids) out += str(" %", id);
}

void append(std::string& out, const Function& f, const std::string& indent) {
  for (const Step& s : f.steps) {
    out += str(indent, "%", s.id, " = ", s.name);
    append_ids(out, s.in);
    if (!s.numbers.empty()) {
      out += " {";
      for (std::size_t i = 0; i < s.numbers.size(); ++i) out += str(i ? ", " : "", s.numbers[i]);
      out += "}";
    }
    for (const Function& body : s.bodies) {
      out += " (";
      for (std::size_t i = 0; i < body.parameters.size(); ++i) out += str(i ? ", %" : "%", body.parameters[i]);
      out += ") {\n";
      append(out, body, indent + "  ");
      out += indent;
      out += "}";
    }
    out += "\n";
  }
  out += indent;
  out += "return";
  append_ids(out, f.results);
  out += "\n";
}

struct Reader {
  text::Lexer lex;
  int id() { return static_cast<int>(lex.value()); }
  std::vector<int> ids(bool commas = false) {
    std::vector<int> all;
    while (lex.peek().kind == text::Kind::Value) {
      all.push_back(id());
      if (commas && !lex.accept(",")) break;
    }
    return all;
  }
  // A result's list ends the function: a value that follows it on the next line belongs to nothing.
  Function function() {
    Function f;
    while (!lex.accept("return")) {
      Step s;
      s.id = id();
      lex.expect("=");
      s.name = lex.name();
      // A step's operands end where the next step begins: at a value before `=`.
      const auto next_step = [&] {
        text::Lexer ahead = lex;
        ahead.take();
        return ahead.at("=");
      };
      while (lex.peek().kind == text::Kind::Value && !next_step()) s.in.push_back(id());
      if (lex.accept("{"))
        while (!lex.accept("}")) {
          if (!s.numbers.empty()) lex.expect(",");
          s.numbers.push_back(lex.integer());
        }
      while (lex.accept("(")) {
        Function body;
        std::vector<int> parameters = ids(true);
        lex.expect(")");
        lex.expect("{");
        body = function();
        body.parameters = std::move(parameters);
        lex.expect("}");
        s.bodies.push_back(std::move(body));
      }
      f.steps.push_back(std::move(s));
    }
    f.results = ids();
    return f;
  }
  Leaf leaf() {
    Leaf l;
    l.id = id();
    l.role = static_cast<Role>(find_name(lex, kRoles, "expected a role"));
    l.dtype = lex.dtype();
    lex.expect("[");
    while (!lex.accept("]")) {
      if (!l.dims.empty()) lex.expect(",");
      l.dims.push_back(lex.accept("n") ? Leaf::kSizeN : lex.accept("m") ? Leaf::kSizeM : static_cast<int>(lex.integer()));
    }
    l.memory = static_cast<tests::Memory>(find_name(lex, kMemoryNames, "expected a layout"));
    l.special = lex.accept("special");
    if (lex.accept("same")) l.same = id();
    return l;
  }
  Program program() {
    Program p;
    lex.expect("program");
    p.check = lex.name();
    while (!lex.accept("|")) p.ways.emplace_back(lex.name());
    lex.expect("seed");
    p.seed = static_cast<std::uint32_t>(lex.integer());
    lex.expect("wrap");
    p.wrap = static_cast<int>(lex.integer());
    while (lex.peek().kind == text::Kind::Value) {
      text::Lexer ahead = lex;
      ahead.take();
      if (ahead.at("=")) break;
      p.leaves.push_back(leaf());
    }
    while (lex.accept("call")) {
      Call c;
      for (std::int64_t& size : c.sizes) size = lex.integer();
      lex.expect("number");
      c.number = static_cast<int>(lex.integer());
      c.fail = lex.accept("fail");
      c.hold = lex.accept("hold");
      c.move = lex.accept("move");
      p.calls.push_back(c);
    }
    p.function = function();
    if (lex.peek().kind != text::Kind::End) lex.fail("expected the end of the program");
    return p;
  }
};

}  // namespace

std::string print(const Program& p) {
  std::string out = "program " + p.check;
  for (const std::string& way : p.ways) {
    out += " ";
    out += way;
  }
  out += str(" | seed ", p.seed, " wrap ", p.wrap, "\n");
  for (const Leaf& l : p.leaves) {
    out += str("%", l.id, " ", kRoles[static_cast<int>(l.role)], " ", l.dtype, " [");
    for (std::size_t i = 0; i < l.dims.size(); ++i)
      out += str(i ? ", " : "", l.dims[i] == Leaf::kSizeN ? "n" : l.dims[i] == Leaf::kSizeM ? "m" : std::to_string(l.dims[i]));
    out += str("] ", kMemoryNames[static_cast<int>(l.memory)], l.special ? " special" : "");
    if (l.same >= 0) out += str(" same %", l.same);
    out += "\n";
  }
  for (const Call& c : p.calls)
    out += str("call ", c.sizes[0], " ", c.sizes[1], " number ", c.number, c.fail ? " fail" : "", c.hold ? " hold" : "",
               c.move ? " move" : "", "\n");
  append(out, p.function, "");
  for (const graph::Graph& g : p.graphs) out += graph::print(g) + "\n";
  return out;
}

Program parse(std::string_view text) {
  // Graphs begin at lines that open with the word and end before the next one.
  std::vector<std::size_t> begins;
  for (std::size_t at = text.find("\ngraph "); at != std::string_view::npos; at = text.find("\ngraph ", at + 1)) begins.push_back(at + 1);
  begins.push_back(text.size());
  Program p = Reader{text::Lexer(text.substr(0, begins[0]), "program text")}.program();
  for (std::size_t i = 0; i + 1 < begins.size(); ++i) p.graphs.push_back(graph::parse(text.substr(begins[i], begins[i + 1] - begins[i])));
  return p;
}

Program program_of(graph::Graph g, std::string check, std::vector<std::string> ways, std::uint32_t seed) {
  graph::verify(g);
  Program p;
  p.check = std::move(check);
  p.ways = std::move(ways);
  p.seed = seed;
  p.calls.resize(1);
  Step s{0, "graph", {}, {0}, {}};
  for (graph::Id id = 0; id < g.size(); ++id) {
    if (g[id].op != ops::Op::Input) continue;
    const auto slot = static_cast<std::size_t>(g[id].attrs[0]);
    if (p.leaves.size() <= slot) p.leaves.resize(slot + 1);
    Leaf& l = p.leaves[slot];
    l.id = static_cast<int>(slot);
    l.dtype = g[id].type.dtype;
    for (const Dim& n : g[id].type.shape) l.dims.push_back(static_cast<int>(std::int64_t{n}));
    l.special = true;
  }
  for (const Leaf& l : p.leaves) s.in.push_back(l.id);
  s.id = static_cast<int>(p.leaves.size());
  p.function.results = {s.id};
  p.function.steps.push_back(std::move(s));
  p.graphs.push_back(std::move(g));
  return p;
}

}  // namespace sinter::fuzz
