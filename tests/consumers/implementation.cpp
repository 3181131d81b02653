// SPDX-License-Identifier: Apache-2.0
#define DEFT_IMPLEMENTATION
#include <deft/deft.hpp>
