# task: linear
# accept: ok
# idea: work split over two streams that are joined before the return
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.stream = torch.cuda.Stream()

    def right(self, x):
        return torch.relu(self.linear(x))

    def forward(self, x):
        current = torch.cuda.current_stream()
        self.stream.wait_stream(current)
        half = x.shape[0] // 2
        with torch.cuda.stream(self.stream):
            first = self.right(x[:half])
        second = self.right(x[half:])
        current.wait_stream(self.stream)
        first.record_stream(current)
        return torch.cat([first, second])
