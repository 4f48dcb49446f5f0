# task: histogram
# accept: ok
# idea: integers and masks by another way
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, m):
        h = torch.zeros(256, dtype=torch.long).index_add_(
            0, x.view(-1), torch.ones(x.numel(), dtype=torch.long)
        )
        return h, torch.tril(torch.ones(256, 256, dtype=torch.long)) @ h, (x * m).short(), x.byte()
