// SPDX-License-Identifier: Apache-2.0
// A program that uses nothing of what it includes.
#include <deft/deft.hpp>

int main() {}
