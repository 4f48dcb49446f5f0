"""Collects facts about how an accepted candidate ran. Judges nothing: advice is ``diagnosis``."""
