# task: linear
# accept: ok
# idea: packs weights in a hook of load_state_dict
import torch


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(256, 256)
        self.register_buffer("packed", torch.empty(256, 256), persistent=False)
        self.pack()
        self.register_load_state_dict_post_hook(lambda module, keys: module.pack())

    def pack(self):
        with torch.no_grad():
            self.packed.copy_(self.linear.weight.t())

    def forward(self, x):
        return torch.relu(torch.addmm(self.linear.bias, x, self.packed))
