// SPDX-License-Identifier: Apache-2.0
// deft/kernels/gpu/cuda/cudnn.hpp: what is used of cuDNN's C interface, version 9, declared anew:
// its header does not come with nvcc. Enumerations are ints and what is opaque is void*; a test
// compares all of it with the header where that is.
#pragma once
#include <cstddef>

namespace deft::ext::gpu::cuda::cudnn {

enum status : int { success = 0 };
enum data_type : int { real_32 = 0, real_64 = 1 };
enum format : int { channels_last = 1 };
enum mode : int { correlation = 1 };
enum determinism : int { same_every_time = 1 };
/// default_math lets float take TF32, fma_math does not.
enum math : int { default_math = 0, fma_math = 3 };

/// An algorithm, as the library recommends it.
struct recommendation {
  int algorithm = 0;
  int state = success;  ///< a status
  float time = 0;
  std::size_t workspace = 0;  ///< bytes
  int determined = 0;         ///< a determinism
  int math = default_math;
  int reserved[3] = {};
};

/// Of a convolution and of its gradients, whose arguments are alike: the descriptors of two
/// operands, of the convolution and of the result.
using find_function = int (*)(void* handle, void* a, void* b, void* convolution, void* to, int most,
                              int* found, recommendation*);
/// Queues to = alpha (a convolved with b) + beta to.
using run_function = int (*)(void* handle, const void* alpha, void* layout_a, const void* a,
                             void* layout_b, const void* b, void* convolution, int algorithm,
                             void* workspace, std::size_t bytes, const void* beta, void* layout_to,
                             void* to);

/// The functions. All but status_string return a status.
struct functions {
  const char* (*status_string)(int) = nullptr;
  int (*create)(void** handle) = nullptr;
  int (*destroy)(void* handle) = nullptr;
  int (*set_stream)(void* handle, void* stream) = nullptr;
  int (*create_tensor)(void**) = nullptr;
  int (*destroy_tensor)(void*) = nullptr;
  /// Extents are always given as images, channels, height, width, whatever the format.
  int (*set_tensor)(void*, int format, int type, int n, int c, int h, int w) = nullptr;
  int (*set_strided_tensor)(void*, int type, int n, int c, int h, int w, int stride_n, int stride_c,
                            int stride_h, int stride_w) = nullptr;
  int (*create_filter)(void**) = nullptr;
  int (*destroy_filter)(void*) = nullptr;
  int (*set_filter)(void*, int type, int format, int outputs, int c, int h, int w) = nullptr;
  int (*create_convolution)(void**) = nullptr;
  int (*destroy_convolution)(void*) = nullptr;
  int (*set_convolution)(void*, int pad_h, int pad_w, int stride_h, int stride_w, int dilation_h,
                         int dilation_w, int mode, int type) = nullptr;
  int (*set_math)(void* convolution, int math) = nullptr;
  /// Queues to = alpha from + beta to, each in its own layout.
  int (*transform)(void* handle, const void* alpha, void* layout_from, const void* from,
                   const void* beta, void* layout_to, void* to) = nullptr;
  // By image_convolution::kind. Operands of the gradients: filter and dy, x and dy.
  find_function find[3] = {};
  run_function run[3] = {};

  /// f(name in the library, function) for each.
  template <class F>
  void each(F f) {
    f("cudnnGetErrorString", status_string);
    f("cudnnCreate", create);
    f("cudnnDestroy", destroy);
    f("cudnnSetStream", set_stream);
    f("cudnnCreateTensorDescriptor", create_tensor);
    f("cudnnDestroyTensorDescriptor", destroy_tensor);
    f("cudnnSetTensor4dDescriptor", set_tensor);
    f("cudnnSetTensor4dDescriptorEx", set_strided_tensor);
    f("cudnnCreateFilterDescriptor", create_filter);
    f("cudnnDestroyFilterDescriptor", destroy_filter);
    f("cudnnSetFilter4dDescriptor", set_filter);
    f("cudnnCreateConvolutionDescriptor", create_convolution);
    f("cudnnDestroyConvolutionDescriptor", destroy_convolution);
    f("cudnnSetConvolution2dDescriptor", set_convolution);
    f("cudnnSetConvolutionMathType", set_math);
    f("cudnnTransformTensor", transform);
    f("cudnnGetConvolutionForwardAlgorithm_v7", find[0]);
    f("cudnnGetConvolutionBackwardDataAlgorithm_v7", find[1]);
    f("cudnnGetConvolutionBackwardFilterAlgorithm_v7", find[2]);
    f("cudnnConvolutionForward", run[0]);
    f("cudnnConvolutionBackwardData", run[1]);
    f("cudnnConvolutionBackwardFilter", run[2]);
  }
};

}  // namespace deft::ext::gpu::cuda::cudnn
