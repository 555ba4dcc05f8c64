// Running branches and loops: each step is a run of the body's plan. Layer: engine.
#include <cstring>

#include "engine/debug_print.h"
#include "engine/memory.h"
#include "graph/bodies.h"

namespace sinter::engine {
namespace {

using ops::Op;

const char* data_of(const Array& a) {
  const Value& v = *a.get();
  return static_cast<const char*>(v.buffer.data()) + v.layout.offset * size_of(v.dtype);
}

class Runner {
 public:
  Runner(const Region& r, Memory& memory, bool interpreted) : r_(r), memory_(memory), interpreted_(interpreted) {}

  void run() {
    switch (r_.node.op) {
      case Op::Cond: return branch();
      case Op::While: return loop();
      case Op::Print: return show();
      default: return scan();
    }
  }

 private:
  Array operand(std::size_t i) const { return memory_.array(r_.operands[i], r_.types[i]); }

  void branch() {
    std::vector<Array> arguments;
    for (std::size_t i = 1; i < r_.operands.size(); ++i) arguments.push_back(operand(i));
    const bool yes = *memory_.at(r_.operands[0]) != 0;
    std::vector<Array> results = r_.bodies[yes ? 0 : 1]->run(arguments, {}, {}, interpreted_);
    for (const Region::Result& result : r_.results) take(result, results[result.index]);
  }

  void loop() {
    const std::size_t constants = graph::count_attribute(r_.node, 0);
    for (std::size_t i = 0; i < r_.operands.size(); ++i) arguments_.push_back(operand(i));
    while (*data_of(r_.bodies[0]->run(arguments_, {}, {}, interpreted_)[0]) != 0) step(*r_.bodies[1], constants);
    for (const Region::Result& result : r_.results) take_carry(result, constants);
  }

  void show() {
    const std::int64_t depth = r_.node.attrs[0];
    if (depth >= 0) {
      std::int64_t lines = 1;
      std::vector<graph::Type> types(r_.types.begin() + 1, r_.types.end());  // of an element
      for (std::int64_t axis = 0; axis < depth; ++axis) {
        lines *= types[0].shape[0];
        for (graph::Type& t : types) t = graph::element_of(t);
      }
      const std::string text = graph::print_text(r_.node);
      for (std::int64_t line = 0; line < lines; ++line) {
        std::vector<Array> values;
        for (std::size_t i = 0; i < types.size(); ++i)
          values.push_back(memory_.array(r_.operands[i + 1], types[i], line * types[i].shape.product()));
        write_line(text, values);
      }
    }
    arguments_.push_back(operand(0));
    for (const Region::Result& result : r_.results) take_carry(result, 0);
  }

  void scan() {
    const graph::ScanParts p(r_.node);
    const std::int64_t length = p.length;
    for (std::size_t i = 0; i < p.constants + p.carries; ++i) arguments_.push_back(operand(i));
    for (std::int64_t done = 0; done < length; ++done) {
      const std::int64_t at = p.reverse ? length - 1 - done : done;
      for (const Region::Result& result : r_.results)
        if (result.index >= p.carries + p.outputs) store(result, at, arguments_[p.constants + result.index - p.carries - p.outputs]);
      for (std::size_t i = p.constants + p.carries; i < r_.operands.size(); ++i) {
        const graph::Type element = graph::element_of(r_.types[i]);
        arguments_.push_back(memory_.array(r_.operands[i], element, at * element.shape.product()));
      }
      std::vector<Array> outputs = step(*r_.bodies[0], p.constants, p.carries);
      for (const Region::Result& result : r_.results)
        if (result.index >= p.carries && result.index < p.carries + p.outputs) store(result, at, outputs[result.index]);
    }
    for (const Region::Result& result : r_.results)
      if (result.index < p.carries) take_carry(result, p.constants);
  }

  // Runs the body on the arguments; its first outputs become the carries. A carry of an earlier step is ours alone: the next may take its
  // memory.
  std::vector<Array> step(const Plan& body, std::size_t constants, std::size_t carries = ~std::size_t{0}) {
    carries = std::min(carries, arguments_.size() - constants);
    std::vector<int> owned(arguments_.size(), 0);
    if (stepped_) std::fill_n(owned.begin() + static_cast<std::ptrdiff_t>(constants), carries, 1);
    std::vector<Array> outputs = body.run(arguments_, owned, {}, interpreted_);
    std::move(outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(carries),
              arguments_.begin() + static_cast<std::ptrdiff_t>(constants));
    arguments_.resize(constants + carries);
    stepped_ = true;
    return outputs;
  }

  void take(const Region::Result& result, const Array& a) { memory_.buffers[result.slot.number] = a.get()->buffer; }
  void take_carry(const Region::Result& result, std::size_t constants) {
    const Array& a = arguments_[constants + result.index];
    if (stepped_) return take(result, a);
    const auto bytes = static_cast<std::size_t>(bytes_of(r_.types[constants + result.index]));
    runtime::BufferRef copy = runtime::allocate(bytes);
    if (bytes > 0) std::memcpy(copy.data(), data_of(a), bytes);
    memory_.buffers[result.slot.number] = std::move(copy);
  }
  void store(const Region::Result& result, std::int64_t at, const Array& element) {
    const auto bytes = static_cast<std::size_t>(bytes_of({element.dtype(), element.shape()}));
    if (bytes > 0) std::memcpy(memory_.at(result.slot) + static_cast<std::size_t>(at) * bytes, data_of(element), bytes);
  }

  const Region& r_;
  Memory& memory_;
  const bool interpreted_;
  std::vector<Array> arguments_;  // of the next step: constants, carries, and while it runs an element of each sequence
  bool stepped_ = false;
};

}  // namespace

void run_region(const Region& r, Memory& memory, bool interpreted) {
  if (r.node.op == Op::Blocks) return run_blocks(r, memory, interpreted);
  Runner(r, memory, interpreted).run();
}

}  // namespace sinter::engine
