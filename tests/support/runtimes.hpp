// runtimes.hpp: runtime_fixture.hpp for tests that use Criterion's assertions.
#pragma once

#include <criterion/criterion.h>

#include "support/runtime_fixture.hpp"
