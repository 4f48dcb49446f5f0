# task: recurrent
# accept: ok
# idea: an LSTM from cells of its own, under the same names
# devices: cpu
import torch


class ModelNew(torch.nn.Module):
    def __init__(self, size):
        super().__init__()
        self.lstm = torch.nn.LSTM(size, size, batch_first=True)
        self.head = torch.nn.Linear(size, size)

    def forward(self, x):
        l = self.lstm
        gates = torch.nn.functional.linear(x, l.weight_ih_l0, l.bias_ih_l0 + l.bias_hh_l0)
        h = x.new_zeros(x.shape[0], l.hidden_size)
        c = h.clone()
        for t in range(x.shape[1]):
            i, f, g, o = torch.addmm(gates[:, t], h, l.weight_hh_l0.t()).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
        return self.head(h), h.unsqueeze(0), c.unsqueeze(0)
