# task: gelu
# accept: ok
# idea: changes the number of threads for a moment and puts it back
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        before = torch.get_num_threads()
        torch.set_num_threads(1)
        y = torch.nn.functional.gelu(x)
        torch.set_num_threads(before)
        return y
