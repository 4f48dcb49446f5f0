# task: relu
# accept: ok
# idea: a shared library built with the system's compiler and ctypes
# devices: cpu
import ctypes
import os
import subprocess
import tempfile

import torch

SOURCE = (
    "void relu(float*y,const float*x,long n){for(long i=0;i<n;++i)y[i]=x[i]>0||x[i]!=x[i]?x[i]:0;}"
)
FOLDER = tempfile.mkdtemp()
with open(os.path.join(FOLDER, "relu.c"), "w") as file:
    file.write(SOURCE)
subprocess.run(["cc", "-O3", "-shared", "-fPIC", "relu.c", "-o", "relu.so"], cwd=FOLDER, check=True)
LIBRARY = ctypes.CDLL(os.path.join(FOLDER, "relu.so"))


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        LIBRARY.relu(
            ctypes.c_void_p(y.data_ptr()), ctypes.c_void_p(x.data_ptr()), ctypes.c_long(x.numel())
        )
        return y
