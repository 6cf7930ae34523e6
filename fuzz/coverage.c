// GCC instruments C code by calls of one function, which libFuzzer knows but ignores. It reads a
// section of counters of one's own, though: a place in the code is a counter there.
#include <stdint.h>

#define COUNTERS (1 << 16)

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[COUNTERS];

void __wrap___sanitizer_cov_trace_pc(void) {
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    uint8_t *counter = &counters[(caller * 0x9E3779B97F4A7C15u) >> 48];
    // Saturated: a counter that wraps around would tell a busy place from none by chance.
    *counter += *counter != UINT8_MAX;
}
