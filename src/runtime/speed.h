// Speed: how fast this machine's memory is. Layer: runtime.
#pragma once

namespace sinter::runtime {

/// GB/s, read and written together, of a copy between large buffers by all threads. Measured at the first call, in some 50 ms.
double copy_speed();

}  // namespace sinter::runtime
