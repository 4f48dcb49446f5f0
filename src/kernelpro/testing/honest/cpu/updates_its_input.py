# task: cache_update
# accept: ok
# idea: updates the cache in place like the reference
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, cache, k, q):
        cache[:, 7, :].copy_(k)
        return torch.bmm(cache, q.unsqueeze(2)).squeeze(2)
