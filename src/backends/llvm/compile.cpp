// The way from a kernel to its image: LLVM IR, machine code, flat block; and the entry of libsinter_codegen.so.
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/Cloning.h>

#include <map>
#include <mutex>
#include <tuple>

#include "backends/llvm/flatten.h"
#include "backends/llvm/lower.h"
#include "base/build.h"
#include "base/check.h"

namespace sinter::backends {

namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

// Leaves out what does not pay. Strength reduction of our addresses (base + index, which x86 adds for nothing) doubled the time to
// compile a small kernel and gained nothing.
struct Gate : llvm::OptPassGate {
  bool isEnabled() const override { return true; }
  bool shouldRunPass(const llvm::StringRef pass, llvm::StringRef) override { return pass != "Loop Strength Reduction"; }
};

// LLVM's machine for a target. Making one takes 0.4 ms, so those that nobody uses wait for the next: any threads may compile at once, and
// threads come and go.
class Machine {
 public:
  Machine(const Target& target, int level) : key_(target.cpu, target.features, level) {
    {
      std::lock_guard guard(idle().lock);
      auto& waiting = idle().machines[key_];
      if (!waiting.empty()) {
        machine_ = std::move(waiting.back());
        waiting.pop_back();
        return;
      }
    }
    machine_ = make(target, level);
  }
  ~Machine() {
    std::lock_guard guard(idle().lock);
    idle().machines[key_].push_back(std::move(machine_));
  }
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  llvm::TargetMachine& operator*() const { return *machine_; }

 private:
  using Key = std::tuple<std::string, std::string, int>;
  struct Idle {
    std::mutex lock;
    std::map<Key, std::vector<std::unique_ptr<llvm::TargetMachine>>> machines;
  };
  static Idle& idle() {
    static Idle* i = new Idle;
    return *i;
  }
  static std::unique_ptr<llvm::TargetMachine> make(const Target& target, int level) {
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

  Key key_;
  std::unique_ptr<llvm::TargetMachine> machine_;
};

void write(llvm::Module& module, llvm::TargetMachine& machine, llvm::raw_pwrite_stream& out, llvm::CodeGenFileType type) {
  llvm::legacy::PassManager passes;
  check(!machine.addPassesToEmitFile(passes, out, nullptr, type, /*DisableVerify=*/true), "codegen: the target writes no such file");
  passes.run(module);
}

runtime::Image compile(const kernel::Kernel& k, const Target& target, const CodegenOptions& options) {
  const Machine machine(target, options.level);
  llvm::TargetMachine& tm = *machine;
  Gate gate;
  llvm::LLVMContext context;
  context.setOptPassGate(gate);
  llvm::Module module(k.name, context);
  module.setTargetTriple(kTriple);
  module.setDataLayout(tm.createDataLayout());
  lower(k, target, options, module);
#ifndef NDEBUG
  std::string fault;
  llvm::raw_string_ostream faults(fault);
  if (llvm::verifyModule(module, &faults)) throw InternalError("internal: codegen: " + fault);
#endif
  if (options.llvm_ir) {
    llvm::raw_string_ostream out(*options.llvm_ir);
    module.print(out, nullptr);
  }
  if (options.assembly) {
    const auto copy = llvm::CloneModule(module);  // writing code changes a module
    llvm::SmallString<0> text;
    llvm::raw_svector_ostream out(text);
    write(*copy, tm, out, llvm::CodeGenFileType::AssemblyFile);
    *options.assembly = text.str().str();
  }
  llvm::SmallString<0> object;
  llvm::raw_svector_ostream out(object);
  write(module, tm, out, llvm::CodeGenFileType::ObjectFile);
  return flatten(object, kEntry);
}

}  // namespace

}  // namespace sinter::backends

extern "C" __attribute__((visibility("default"))) const sinter::backends::Codegen* sinter_codegen() {
  static const sinter::backends::Codegen codegen{sinter::base::build_identity(), sinter::backends::compile};
  return &codegen;
}
