// GCC instruments C code with calls of one function, which libFuzzer accepts but ignores. It does read
// a custom section of counters, so each place in the code gets a counter there.
#include <stdint.h>

#define COUNTERS (1 << 16)

__attribute__((section("__libfuzzer_extra_counters"))) static uint8_t counters[COUNTERS];

void __wrap___sanitizer_cov_trace_pc(void) {
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    uint8_t *counter = &counters[(caller * 0x9E3779B97F4A7C15u) >> 48];
    // Saturated: a counter that wraps around to zero would look like code that never ran.
    *counter += *counter != UINT8_MAX;
}
