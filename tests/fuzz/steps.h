// Steps: the public functions that a program's steps call, and running a function of steps on arrays.
#pragma once
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "fuzz/program.h"
#include "sinter/sinter.h"

namespace sinter::fuzz {

using Arrays = std::vector<Array>;

struct State {
  Arrays arrays, list;
  int count = 0;
  SINTER_FIELDS(arrays, list, count)
};
struct Inputs {
  Arrays list;
  std::map<std::string, Array> named;
  int number = 0;
  bool fail = false;
  SINTER_FIELDS(list, named, number, fail)
};

/// What a step sees: values by id (of a step that gives several arrays, all), the state and the arguments.
struct Environment {
  const Program* program = nullptr;
  State* state = nullptr;
  const Inputs* inputs = nullptr;
  bool reference = false;  // graphs are interpreted
  /// For those who draw programs: called for a step's function that has no results yet, when it is about to run.
  std::function<void(const Function&, Environment&)> draw = {};
  std::map<int, Arrays> values;
};

/// The function's results, after its steps. Throws what they throw.
Arrays run(const Function& f, Environment& e);
/// Runs one step and keeps its value.
void run(const Step& s, Environment& e);

/// A function of the table, for those who draw steps.
struct StepKind {
  std::string name;
  char group;  // e: elementwise, z: of sizes, v: views, r: reductions, g: reading and writing by index, n: networks, products, sorting,
               // d: random numbers, s: state, b: with a body
  int operands = 1;
};
std::span<const StepKind> step_kinds();

}  // namespace sinter::fuzz
