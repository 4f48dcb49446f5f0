"""Chat models of any provider behind one protocol. Knows nothing of kernels, prompts or runs."""
