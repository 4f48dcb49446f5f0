# task: loss
# accept: ok
# idea: sums by atomics: another order each time
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        logp = torch.log_softmax(x, 1)
        out = x.new_zeros(1)
        picked = -logp.gather(1, y[:, None]).squeeze(1)
        out.index_add_(0, torch.zeros_like(y), picked)
        return (out / x.shape[0]).squeeze(0)
