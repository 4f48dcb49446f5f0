# task: statistics
# accept: ok
# idea: one small result by way of pinned host memory
import torch


class ModelNew(torch.nn.Module):
    def forward(self, x):
        mean = x.mean(1)
        host = torch.empty(mean.shape, pin_memory=True)
        host.copy_(mean, non_blocking=True)
        torch.cuda.current_stream().synchronize()
        return {"mean": host.to(x.device), "largest": x.argmax(1), "positive": (x > 0.5).any(1)}
