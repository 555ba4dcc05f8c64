#include "backends/llvm/machine.h"

#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <vector>

#include "base/check.h"

namespace sinter::backends {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

// What LLVM's code generation does for code that we never write: each costs a walk, or an analysis, for nothing.
// clang-format off
constexpr std::array kNeedless = std::to_array<llvm::StringRef>({
    // atomic and wide integers, comparisons of memory, calls to libraries, predicated vectors
    "Expand large div/rem", "Expand large fp convert", "Expand Atomic instructions", "Merge contiguous icmps into a memcmp",
    "Expand memcmp() to load/stores", "Lower constant intrinsics", "Replace intrinsics with calls to vector library",
    "Partially inline calls to library functions", "Expand vector predication intrinsics", "TLS Variable Hoist", "Interleaved Access Pass",
    "X86 Partial Reduction", "Expand indirectbr instructions", "Local Dynamic TLS Access Clean-up",
    "X86 PIC Global Base Reg Initialization",
    // garbage collection, exceptions, probes, debuggers
    "Create Garbage Collector Module Metadata", "Lower Garbage Collection Instructions", "Shadow Stack GC Lowering",
    "Analyze Machine Code For Garbage Collection", "Exception handling preparation", "Prepare callbr", "Fixup Statepoint Caller Saved",
    "StackMap Liveness Analysis", "Contiguously Lay Out Funclets", "Check CFA info and insert CFI instructions if needed",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)", "Insert fentry calls", "Insert XRay ops",
    "Implement the 'patchable-function' attribute", "Pseudo Probe Inserter", "Remove Redundant DEBUG_VALUE analysis",
    "Live DEBUG_VALUE analysis", "Stack Frame Layout Analysis", "Machine Sanitizer Binary Metadata",
    // protection of programs from each other
    "Safe Stack instrumentation pass", "X86 Windows Fixup Buffer Security Check", "X86 speculative load hardening",
    "X86 Load Value Injection (LVI) Load Hardening", "X86 Load Value Injection (LVI) Ret-Hardening", "Insert KCFI indirect call checks",
    "X86 Indirect Branch Tracking", "X86 Speculative Execution Side Effect Suppression", "X86 Indirect Thunks", "X86 Return Thunks",
    // matrix tiles, the x87 unit, other processors
    "Lower AMX intrinsics", "Lower AMX type for load/store", "Tile Register Pre-configure", "Tile Register Configure",
    "X86 Lower Tile Copy", "X86 FP Stackifier", "Argument Stack Rebase", "X86 DynAlloca Expander", "X86 Atom pad short functions",
    "X86 insert wait instruction", "X86 Discriminate Memory Operands", "X86 Insert Cache Prefetches", "Init Undef Pass",
    "Register Allocation Pass Scoring", "Unpack machine instruction bundles",
    // what changes nothing in our kernels: loops without jumps in them, few integers, no bytes or words, no objects on the stack
    "Constant Hoisting", "Insert stack protectors", "X86 Domain Reassignment Pass", "Optimize machine instruction PHIs",
    "Merge disjoint stack slots", "Local Stack Slot Allocation", "Early If-Conversion", "Machine InstCombiner", "X86 cmov Conversion",
    "X86 Fixup SetCC", "X86 LEA Optimize", "X86 Avoid Store Forwarding Blocks", "Detect Dead Lanes", "Tail Duplication",
    "Post RA top-down list latency scheduler", "X86 Byte/Word Instruction Fixup",
    // Our addresses are base + index, which x86 adds for nothing: strength reduction doubled the time to compile a small kernel and gained
    // nothing.
    "Canonicalize Freeze Instructions in Loops", "Induction Variable Users", "Loop Strength Reduction",
});
// clang-format on

class Passes final : public llvm::legacy::PassManager {
 public:
  void add(llvm::Pass* pass) override {
    const llvm::StringRef name = pass->getPassName();
    if (name == "Loop Strength Reduction") llvm::legacy::PassManager::add(llvm::createLoopSimplifyPass());  // which it asks for
    if (std::find(kNeedless.begin(), kNeedless.end(), name) != kNeedless.end())
      delete pass;
    else
      llvm::legacy::PassManager::add(pass);
  }
};

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Target& target, int level) {
  static std::once_flag once;
  std::call_once(once, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  std::string error;
  const llvm::Target* x86 = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (!x86) throw InternalError("internal: codegen: " + error);
  return std::unique_ptr<llvm::TargetMachine>(x86->createTargetMachine(kTriple, target.cpu, target.features, llvm::TargetOptions(),
                                                                       llvm::Reloc::PIC_, llvm::CodeModel::Small,
                                                                       static_cast<llvm::CodeGenOptLevel>(level)));
}

void add_passes(Passes& passes, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out, llvm::CodeGenFileType type) {
  check(!machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true), "codegen: the target writes no such file");
}

}  // namespace

struct Machine::Parts {
  Parts(const Target& target, int level)
      : cpu(target.cpu), features(target.features), level(level), machine(make_target_machine(target, level)) {
    add_passes(passes, *machine, out, llvm::CodeGenFileType::ObjectFile);
  }
  bool serves(const Target& target, int of) const { return level == of && cpu == target.cpu && features == target.features; }

  const std::string cpu, features;
  const int level;
  const std::unique_ptr<llvm::TargetMachine> machine;
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream out{bytes};
  Passes passes;
};

namespace {

struct Idle {
  std::mutex lock;
  std::vector<std::unique_ptr<Machine::Parts>> all;
};
Idle& idle() {
  static Idle* i = new Idle;
  return *i;
}

}  // namespace

Machine::Machine(const Target& target, int level) {
  {
    Idle& waiting = idle();
    std::lock_guard guard(waiting.lock);
    const auto it = std::find_if(waiting.all.begin(), waiting.all.end(), [&](const auto& p) { return p->serves(target, level); });
    if (it != waiting.all.end()) {
      parts_ = std::move(*it);
      waiting.all.erase(it);
      return;
    }
  }
  parts_ = std::make_unique<Parts>(target, level);
}

Machine::~Machine() {
  std::lock_guard guard(idle().lock);
  try {
    idle().all.push_back(std::move(parts_));
  } catch (const std::bad_alloc&) {  // the next one makes its own
  }
}

void Machine::prepare(llvm::Module& module) const {
  module.setTargetTriple(kTriple);
  module.setDataLayout(parts_->machine->createDataLayout());
}

llvm::StringRef Machine::object(llvm::Module& module) {
  parts_->bytes.clear();
  parts_->passes.run(module);
  return parts_->bytes;
}

std::string Machine::assembly(const llvm::Module& module) const {
  const auto copy = llvm::CloneModule(module);  // writing code changes a module
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  Passes passes;
  add_passes(passes, *parts_->machine, out, llvm::CodeGenFileType::AssemblyFile);
  passes.run(*copy);
  return text.str().str();
}

}  // namespace sinter::backends
