# task: scalar_out
# accept: ok
# idea: Python numbers among the outputs, summed in another order
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, t):
        return (
            float(x.square().sum(1).sum(0)),
            torch.count_nonzero(x > t),
            x.amax(),
            int(torch.count_nonzero(x > 0)),
        )
