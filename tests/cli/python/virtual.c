// SPDX-License-Identifier: MIT OR Unlicense
// The library of kbench on the virtual GPU, and a kernel of known duration, for virtual.py.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "virtual_gpu.h"

void launch_known(double ns, kb_stream stream);
void launch_known(double ns, kb_stream stream) {
    static const function of = { "known", 24, 0, 0, 0, 0, false };
    operation o = { KERNEL, &of, ns, NULL, NULL, NULL };
    submit(stream, o);
}

bool captures_known(kb_stream stream);
bool captures_known(kb_stream stream) {
    enum cudaStreamCaptureStatus status;
    return cudaStreamIsCapturing(stream, &status) == cudaSuccess && status == cudaStreamCaptureStatusActive;
}
