// SPDX-License-Identifier: Apache-2.0
// deft/train/layers.hpp: layers as functions of expressions, and the losses of their weights.
#pragma once
#include <deft/train/layers_convolution.hpp>
#include <deft/train/layers_dense.hpp>
#include <deft/train/layers_dropout.hpp>
#include <deft/train/layers_embedding.hpp>
#include <deft/train/layers_normalization.hpp>
#include <deft/train/layers_recurrent.hpp>
#include <deft/train/losses.hpp>
#include <deft/train/regularizer.hpp>
