"""Learned residuals for runtimes of neural networks.

residual_files.py   residual.onnx with its names, units and training ranges, and an example
residual_graph.py   the graph: the heads of a residual as operators of ONNX
"""
