"""The writer made of chat models: one role per file, one way to call them all."""
