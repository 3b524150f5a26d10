"""Batch identification: the constant parameters of a System from whole flights, and what those flights cannot tell."""
