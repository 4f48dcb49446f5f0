# task: loss
# accept: ok
# idea: the loss from its parts, in another order
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        picked = x.gather(1, y[:, None]).squeeze(1)
        return (torch.logsumexp(x, 1) - picked).mean()
