# SPDX-License-Identifier: Apache-2.0
# Debian's cross compiler for aarch64, and qemu-user, which runs what it builds. The libraries are
# those of Debian's foreign architecture arm64: `scripts/setup aarch64` installs all of it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# g++ would note of packs that C++14's ABI passed them in other ways.
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Not with -L: files of / would be looked for in that folder first, also those that tests open.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# pkg-config would tell FindOpenSSL where this machine's own libraries are.
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
