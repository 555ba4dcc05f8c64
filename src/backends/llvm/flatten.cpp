#include "backends/llvm/flatten.h"

#include <llvm/BinaryFormat/ELF.h>
#include <llvm/Object/ELFObjectFile.h>

#include <cstring>
#include <map>

#include "base/check.h"

namespace sinter::backends {

namespace {

using namespace llvm::object;

template <class T>
T must(llvm::Expected<T> value) {
  if (!value) throw InternalError("internal: codegen: " + llvm::toString(value.takeError()));
  return std::move(*value);
}

// In memory at run time, as opposed to symbol tables and unwinding notes.
bool is_loaded(const SectionRef& s) {
  const ELFSectionRef elf(s);
  return (elf.getFlags() & llvm::ELF::SHF_ALLOC) && s.getSize() > 0 && elf.getType() == llvm::ELF::SHT_PROGBITS &&
         must(s.getName()) != ".eh_frame";
}

}  // namespace

runtime::Image flatten(llvm::StringRef object, llvm::StringRef entry) {
  const auto owner = must(ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(object, "kernel")));
  const ObjectFile& file = *owner;
  runtime::Image image;
  std::map<SectionRef, std::size_t> places;
  for (bool code : {true, false}) {
    for (const SectionRef& s : file.sections()) {
      if (!is_loaded(s) || s.isText() != code) continue;
      if (ELFSectionRef(s).getFlags() & llvm::ELF::SHF_WRITE)
        throw InternalError(str("internal: codegen: writable section ", must(s.getName()).str()));
      const std::size_t align = s.getAlignment().value();
      image.alignment = std::max(image.alignment, align);
      image.bytes.resize((image.bytes.size() + align - 1) / align * align);
      places[s] = image.bytes.size();
      const llvm::StringRef contents = must(s.getContents());
      image.bytes.insert(image.bytes.end(), contents.begin(), contents.end());
    }
  }
  bool found = false;
  for (const ELFSymbolRef symbol : file.symbols()) {
    const llvm::StringRef name = must(symbol.getName());
    if (must(symbol.getFlags()) & SymbolRef::SF_Undefined) throw InternalError(str("internal: codegen: undefined symbol ", name.str()));
    if (name != entry) continue;
    image.entry = places.at(*must(symbol.getSection())) + must(symbol.getValue());
    found = true;
  }
  check(found, "codegen: no entry point");

  for (const SectionRef& s : file.sections()) {
    const auto patched = must(s.getRelocatedSection());
    if (patched == file.section_end() || !places.count(*patched)) continue;
    for (const ELFRelocationRef relocation : s.relocations()) {
      const SymbolRef symbol = *relocation.getSymbol();
      const auto target = places.find(*must(symbol.getSection()));
      const bool relative = relocation.getType() == llvm::ELF::R_X86_64_PC32 || relocation.getType() == llvm::ELF::R_X86_64_PLT32;
      if (!relative || target == places.end()) {
        throw InternalError(str("internal: codegen: relocation of type ", relocation.getType(), " to ", must(symbol.getName()).str()));
      }
      const std::size_t place = places.at(*patched) + relocation.getOffset();
      const auto goal = static_cast<std::int64_t>(target->second + must(symbol.getValue())) + must(relocation.getAddend());
      const auto distance = static_cast<std::int32_t>(goal - static_cast<std::int64_t>(place));
      std::memcpy(&image.bytes[place], &distance, sizeof distance);
    }
  }
  return image;
}

}  // namespace sinter::backends
