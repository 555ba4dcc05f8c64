// The tables as data, look-up by name, and the dtype rules. Layer: ops.
#include "ops/op.h"

#include <unordered_map>

#include "base/check.h"
#include "base/once.h"

namespace sinter::ops {
namespace {

#define INTERVAL(low, high) low, high
#define OP1(Name, function, dtype, traits, domain, value, dx) {#function, 1, OpKind::Elementwise, Rule::dtype, traits, INTERVAL domain},
#define OP2(Name, function, dtype, traits, domain, value, dx, dy) {#function, 2, OpKind::Elementwise, Rule::dtype, traits, INTERVAL domain},
#define OP3(Name, function, dtype, traits, domain, value, dx, dy, dz) \
  {#function, 3, OpKind::Elementwise, Rule::dtype, traits, INTERVAL domain},
#define STRUCTURED(Name, function, operands, attributes, kind) {#function, operands, OpKind::kind, Rule::Any, kNone, 0, 0, attributes},
constexpr OpInfo kOps[] = {
#include "ops/elementwise.def"
#include "ops/structured.def"
};
#undef INTERVAL
#undef OP1
#undef OP2
#undef OP3
#undef STRUCTURED

bool takes_complex(Op op) {
  static constexpr auto kTakes = [] {
    std::array<bool, std::size(kOps)> takes{};
#define COMPLEX(Name, ...) takes[static_cast<std::size_t>(Op::Name)] = true;
#include "ops/complex.def"
#undef COMPLEX
    return takes;
  }();
  return kTakes[static_cast<std::size_t>(op)];
}

// What a rule's operation takes, for messages.
const char* takes(Rule rule) {
  switch (rule) {
    case Rule::Number: return "takes numbers, not bool";
    case Rule::Real: return "takes integers or floating dtypes";
    case Rule::Integer: return "takes bool or integers";
    case Rule::Shift: return "takes integers";
    default: return "does not take complex64";
  }
}

bool accepts(Op op, Rule rule, Dtype t) {
  if (is_complex(t) && rule != Rule::Logical && !takes_complex(op)) return false;
  switch (rule) {
    case Rule::Number: return kind(t) != Kind::Bool;
    case Rule::Real: return kind(t) != Kind::Bool;
    case Rule::Integer: return is_integer(t) || kind(t) == Kind::Bool;
    case Rule::Shift: return is_integer(t);
    default: return true;
  }
}

[[noreturn]] void reject(Op op, Rule rule, Dtype promoted, std::span<const Dtype> operands) {
  std::ostringstream out;
  const bool complex_only = is_complex(promoted) && rule != Rule::Integer && rule != Rule::Shift && rule != Rule::Real;
  out << info(op).name << ": " << (complex_only ? "does not take complex64" : takes(rule)) << "; got ";
  if (rule == Rule::Where) operands = operands.subspan(1);
  for (std::size_t i = 0; i < operands.size(); ++i) {
    out << (i == 0 ? "" : i + 1 < operands.size() ? ", " : " and ") << operands[i];
  }
  out << (is_complex(promoted) ? "; take its real() or imag() first" : "; convert with astype first");
  throw DtypeError(out.str());
}

}  // namespace

const OpInfo& info(Op op) { return kOps[static_cast<std::size_t>(op)]; }
std::span<const OpInfo> all_ops() { return kOps; }

Op find_op(std::string_view name) {
  using ByName = std::unordered_map<std::string_view, Op>;
  static constinit std::atomic<ByName*> place{nullptr};
  const ByName& by_name = base::once(place, [] {
    ByName made;
    for (std::size_t i = 0; i < std::size(kOps); ++i) made.emplace(kOps[i].name, static_cast<Op>(i));
    return made;
  });
  const auto found = by_name.find(name);
  if (found == by_name.end())
    throw Error(str("operation: there is none of this name; got '", name, "'; see elementwise.def and structured.def"));
  return found->second;
}

ElementwiseType elementwise_type(Op op, std::span<const Dtype> operands) {
  const Rule rule = info(op).rule;
  check(is_elementwise(op) && operands.size() == static_cast<std::size_t>(info(op).operands), "elementwise_type: wrong number of operands");
  const std::size_t first = rule == Rule::Where ? 1 : 0;
  Dtype promoted = operands[first];
  for (const Dtype t : operands.subspan(first + 1)) promoted = promote_types(promoted, t);
  if (!accepts(op, rule, promoted)) reject(op, rule, promoted, operands);
  Dtype compute = promoted;
  if (rule == Rule::Float && !is_floating(promoted)) compute = Dtype::float32;
  if (rule == Rule::Logical) compute = Dtype::bool_;
  return {compute, result_dtype(op, compute)};
}

Dtype result_dtype(Op op, Dtype compute) {
  switch (info(op).rule) {
    case Rule::Compare:
    case Rule::Equal:
    case Rule::Logical:
    case Rule::Test: return Dtype::bool_;
    case Rule::Part: return is_complex(compute) ? Dtype::float32 : compute;
    default: return compute;
  }
}

}  // namespace sinter::ops
