"""Where to start and which setting each move turns, per kind of device."""
