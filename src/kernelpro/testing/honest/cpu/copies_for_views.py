# task: views
# accept: ok
# idea: copies where the reference returns views
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        return (
            x.T.contiguous(),
            x[:, 0::2].clone(),
            torch.add(y, x).flatten()[5:].clone(),
            x.clone(),
        )
