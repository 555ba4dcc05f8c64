// Errors thrown by Sinter, and nothing else.
//
// Every text has the form `<operation>: <what is wrong>; got <values>; <what to do>`. An Error is thrown by the call that is
// wrong, never later at evaluation, and leaves every array, state and cache as it was.
#pragma once
#include <stdexcept>

#define SINTER_API __attribute__((visibility("default")))

namespace sinter {

/// Something the user can fix. Base of all exceptions that the library throws on purpose, except InternalError.
class SINTER_API Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
#define SINTER_ERROR(Name, Base)        \
  class SINTER_API Name : public Base { \
   public:                              \
    using Base::Base;                   \
  };
/// Shapes, axes or sizes that do not fit.
SINTER_ERROR(ShapeError, Error)
/// A dtype that the operation does not take.
SINTER_ERROR(DtypeError, Error)
/// An index out of range.
SINTER_ERROR(IndexError, Error)
/// A placeholder was looked at while tracing, or used after its trace.
SINTER_ERROR(TraceError, Error)
/// A compiled function uses an array that is neither an argument, nor state, nor held by value.
SINTER_ERROR(CaptureError, Error)
/// A device is missing or failed.
SINTER_ERROR(DeviceError, Error)
/// Memory is exhausted.
SINTER_ERROR(OutOfMemory, Error)
/// A file cannot be read or written, or its contents are malformed.
SINTER_ERROR(IoError, Error)
#undef SINTER_ERROR

/// A fault of the library itself. Not an Error: catching Error does not hide it.
class SINTER_API InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

}  // namespace sinter
