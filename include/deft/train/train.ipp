// SPDX-License-Identifier: Apache-2.0
// deft/train/train.ipp: umbrella of train/.
#pragma once
#include <deft/train/checkpoint_index.ipp>
#include <deft/train/clip.ipp>
#include <deft/train/coordinator.ipp>
#include <deft/train/hook.ipp>
#include <deft/train/hooks.ipp>
#include <deft/train/layers_common.ipp>
#include <deft/train/layers_convolution.ipp>
#include <deft/train/layers_dense.ipp>
#include <deft/train/layers_dropout.ipp>
#include <deft/train/layers_embedding.ipp>
#include <deft/train/layers_normalization.ipp>
#include <deft/train/layers_recurrent.ipp>
#include <deft/train/loss_scaler.ipp>
#include <deft/train/losses.ipp>
#include <deft/train/monitored_session.ipp>
#include <deft/train/moving_average.ipp>
#include <deft/train/optimizer.ipp>
#include <deft/train/optimizers.ipp>
#include <deft/train/progress.ipp>
#include <deft/train/regularizer.ipp>
#include <deft/train/saver.ipp>
#include <deft/train/schedule.ipp>
#include <deft/train/slots.ipp>
#include <deft/train/summaries.ipp>
#include <deft/train/sync_replicas.ipp>
