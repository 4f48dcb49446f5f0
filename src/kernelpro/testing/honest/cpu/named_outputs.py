# task: statistics
# accept: ok
# idea: a dictionary in another order of work
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        positive = (x > 0.5).any(1)
        largest = torch.max(x, 1).indices
        return {"mean": x.sum(1) / x.shape[1], "largest": largest, "positive": positive}
