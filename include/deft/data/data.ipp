// SPDX-License-Identifier: Apache-2.0
// deft/data/data.ipp: the implementation of data/, compiled once per program.
#pragma once
#include <deft/data/background.ipp>
#include <deft/data/byte_pair_tokenizer.ipp>
#include <deft/data/csv.ipp>
#include <deft/data/digits.ipp>
#include <deft/data/example.ipp>
#include <deft/data/files.ipp>
#include <deft/data/gguf.ipp>
#include <deft/data/idx.ipp>
#include <deft/data/mnist.ipp>
#include <deft/data/npy.ipp>
#include <deft/data/npz.ipp>
#include <deft/data/pipeline.ipp>
#include <deft/data/record.ipp>
#include <deft/data/tokenizer.ipp>
#include <deft/data/word_piece_tokenizer.ipp>
