// What Python says of threads.

#include "parallel.h"

// Nothing else is seen from outside.
#pragma GCC visibility push(default)
// How many threads a kernel may use, from now on.
extern "C" void dovetail_set_most_threads(int64_t count) { dovetail::most_threads = count; }
#pragma GCC visibility pop
